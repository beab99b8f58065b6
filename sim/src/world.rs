//! What clients and faults of one run share: the plan, the servers, the record, the labels.

use crate::cluster::Cluster;
use crate::labels::Labels;
use crate::plan::{MemberName, Members, Plan};
use crate::recorder::Recorder;
use crate::rng::Rng;
use std::sync::Arc;

/// One run.
pub(crate) struct World {
    /// What is run.
    pub(crate) plan: Arc<Plan>,
    /// The seed.
    pub(crate) seed: u64,
    /// The servers.
    pub(crate) cluster: Cluster,
    /// What happens.
    pub(crate) recorder: Recorder,
    /// How steps wait for each other.
    pub(crate) labels: Labels,
}

impl World {
    /// The member that `members` means now. `turn` says which of a list is next, and moves on.
    pub(crate) fn choose(&self, members: &Members, turn: &mut usize, rng: &mut Rng) -> u64 {
        let size = self.cluster.size();
        match members {
            Members::One(member) => *member,
            Members::Rotate(list) => {
                let member = list[*turn % list.len()];
                *turn += 1;
                member
            }
            Members::Named(MemberName::Any) => rng.between(1, size),
            Members::Named(MemberName::Leader) => {
                // Drawn even if it is not needed: whether there is a leader must not shift later draws.
                let any = rng.between(1, size);
                self.recorder.leader().unwrap_or(any)
            }
            Members::Named(MemberName::Follower) => {
                let followers = self.followers();
                rng.pick(&followers).copied().unwrap_or(1)
            }
            Members::Named(MemberName::LastFollower) => {
                self.followers().last().copied().unwrap_or(1)
            }
        }
    }

    /// Every member but the leader; the one member of a cluster of one.
    fn followers(&self) -> Vec<u64> {
        let leader = self.recorder.leader();
        let all = 1..=self.cluster.size();
        all.filter(|member| self.cluster.size() == 1 || leader != Some(*member))
            .collect()
    }
}
