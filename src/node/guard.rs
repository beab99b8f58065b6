//! Looks at messages before raft does. raft-rs panics on a message that contradicts what it knows; such a message is
//! either rubbish, which is dropped, or proof that this member's disk lost something, and then the member stops.

use super::failure::MemberError;
use super::log::Log;
use raft::RawNode;
use raft::eraftpb::{Message, MessageType};

/// Whether raft may see `message`.
///
/// # Errors
/// [`MemberError::LostEntries`] and [`MemberError::Forked`].
pub(super) fn admit(raft: &RawNode<Log>, message: &Message) -> Result<bool, MemberError> {
    match message.get_msg_type() {
        MessageType::MsgAppend => admit_append(raft, message),
        MessageType::MsgHeartbeat => admit_heartbeat(raft, message),
        // raft takes the context out of the only entry.
        MessageType::MsgReadIndex | MessageType::MsgReadIndexResp => Ok(message.entries.len() == 1),
        // A member cannot have stored in this term what this leader has not sent in it.
        MessageType::MsgAppendResponse => {
            let stale = message.term != raft.raft.term;
            Ok(stale || message.reject || message.index <= raft.raft.raft_log.last_index())
        }
        MessageType::MsgRequestVote
        | MessageType::MsgRequestVoteResponse
        | MessageType::MsgRequestPreVote
        | MessageType::MsgRequestPreVoteResponse
        | MessageType::MsgHeartbeatResponse => Ok(true),
        // Proposals and snapshots come as calls of their own; there are no transfers of leadership yet; the rest is raft
        // talking to itself.
        MessageType::MsgPropose
        | MessageType::MsgSnapshot
        | MessageType::MsgTransferLeader
        | MessageType::MsgTimeoutNow
        | MessageType::MsgHup
        | MessageType::MsgBeat
        | MessageType::MsgUnreachable
        | MessageType::MsgSnapStatus
        | MessageType::MsgCheckQuorum => Ok(false),
    }
}

fn admit_append(raft: &RawNode<Log>, message: &Message) -> Result<bool, MemberError> {
    if message.term < raft.raft.term {
        return Ok(true);
    }
    let (mut index, mut term) = (message.index, message.log_term);
    for entry in &message.entries {
        let follows = entry.index == index + 1 && entry.term >= term && entry.term <= message.term;
        if !follows {
            return Ok(false);
        }
        (index, term) = (entry.index, entry.term);
        if entry.index > raft.raft.raft_log.committed {
            continue;
        }
        let committed = raft.raft.raft_log.term(entry.index)?;
        // 0 stands for an entry that has been compacted.
        if committed != 0 && committed != entry.term {
            let (index, leaders) = (entry.index, entry.term);
            return Err(MemberError::Forked {
                index,
                committed,
                leaders,
            });
        }
    }
    Ok(true)
}

fn admit_heartbeat(raft: &RawNode<Log>, message: &Message) -> Result<bool, MemberError> {
    let last_index = raft.raft.raft_log.last_index();
    // A leader names no commit index beyond what this member has acknowledged.
    if message.term >= raft.raft.term && message.commit > last_index {
        return Err(MemberError::LostEntries {
            acknowledged: message.commit,
            last_index,
        });
    }
    Ok(true)
}
