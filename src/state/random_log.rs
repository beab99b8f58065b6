//! Random logs: what must hold for every sequence of entries, however senseless. The universe is small (three users,
//! three roles, five keys), so that entries meet each other, and half of them come from the cluster itself, so that
//! enough of them are allowed.

use super::*;
use folded_store::FoldedStore;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

const KEYS: [&[u8]; 5] = [b"\0", b"a", b"a\0", b"b", b"\xff"];
const ENDS: [&[u8]; 6] = [b"", b"\0", b"a\0", b"b", b"b\0", b"\xff"];

/// Who asks, in terms that fit any state.
#[derive(Clone, Debug)]
enum Who {
    Internal,
    Anonymous,
    /// By certificate, resolved this many auth revisions ago.
    Certificate(UserName, u64),
    /// By a signed token whose claim is this many auth revisions old.
    Jwt(UserName, u64),
    /// By one of the tokens ever issued, if there is one.
    Token(usize),
}

/// One entry to be.
#[derive(Clone, Debug)]
enum Step {
    Ask(Who, Op),
    /// A login that read the user's epoch, or this much less.
    Login(UserName, u64, TokenKind, TokenLimits),
    /// A report that some of the tokens ever issued have been used.
    Refresh(Who, Vec<usize>),
    /// Some of the tokens ever issued, with the count of reported uses, or this much less.
    Expire(Who, Vec<(usize, u64)>),
    /// Raft's own entry.
    Empty,
}

fn user() -> impl Strategy<Value = UserName> {
    select(vec!["root", "alice", "bob"]).prop_map(UserName::from)
}

fn role() -> impl Strategy<Value = RoleName> {
    select(vec!["root", "r", "s"]).prop_map(RoleName::from)
}

fn key() -> impl Strategy<Value = Bytes> {
    select(KEYS.to_vec()).prop_map(Bytes::from_static)
}

fn raw_range() -> impl Strategy<Value = RawRange> {
    let end = select(ENDS.to_vec()).prop_map(Bytes::from_static);
    (key(), end).prop_map(|(key, range_end)| RawRange { key, range_end })
}

fn permission() -> impl Strategy<Value = Permission> {
    let kinds = [
        PermissionKind::Read,
        PermissionKind::Write,
        PermissionKind::ReadWrite,
        PermissionKind::Unknown(9),
    ];
    (select(kinds.to_vec()), raw_range()).prop_map(|(kind, range)| Permission { kind, range })
}

fn hash() -> impl Strategy<Value = PasswordHash> {
    select(vec!["", "h1", "h2"]).prop_map(|text| PasswordHash(text.into()))
}

fn put() -> impl Strategy<Value = Put> {
    let flags = (
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
    );
    (key(), select(vec!["", "1", "2"]), flags).prop_map(|(key, value, flags)| {
        let (prev_kv, ignore_lease, ignore_value, leased) = flags;
        let value = value.into();
        Put {
            key,
            value,
            lease: i64::from(leased),
            prev_kv,
            ignore_value,
            ignore_lease,
        }
    })
}

fn delete_range() -> impl Strategy<Value = DeleteRange> {
    (raw_range(), any::<bool>()).prop_map(|(range, prev_kv)| DeleteRange { range, prev_kv })
}

fn compare() -> impl Strategy<Value = Compare> {
    let relations = [
        Relation::Equal,
        Relation::NotEqual,
        Relation::Greater,
        Relation::Less,
    ];
    let operand = prop_oneof![
        (0..3i64).prop_map(Operand::Version),
        (0..9i64).prop_map(Operand::Mod),
        select(vec!["", "1"]).prop_map(|value| Operand::Value(value.into())),
    ];
    let parts = (raw_range(), select(relations.to_vec()), operand);
    parts.prop_map(|(range, relation, operand)| Compare {
        range,
        relation,
        operand,
    })
}

fn txn() -> impl Strategy<Value = Txn> {
    let leaf = prop_oneof![
        (raw_range(), -1..9i64).prop_map(|(range, revision)| {
            TxnOp::Range(Range {
                range,
                revision,
                ..Range::default()
            })
        }),
        put().prop_map(TxnOp::Put),
        delete_range().prop_map(TxnOp::DeleteRange),
    ];
    let op = leaf.prop_recursive(2, 8, 3, |op| {
        (vec(compare(), 0..2), vec(op.clone(), 0..3), vec(op, 0..3)).prop_map(
            |(compares, success, failure)| {
                TxnOp::Txn(Txn {
                    compares,
                    success,
                    failure,
                })
            },
        )
    });
    (vec(compare(), 0..2), vec(op.clone(), 0..4), vec(op, 0..4)).prop_map(
        |(compares, success, failure)| Txn {
            compares,
            success,
            failure,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => put().prop_map(Op::Put),
        2 => delete_range().prop_map(Op::DeleteRange),
        2 => txn().prop_map(Op::Txn),
        1 => Just(Op::AuthEnable),
        1 => prop::bool::weighted(0.3).prop_map(|off| if off { Op::AuthDisable } else { Op::AuthEnable }),
        2 => (user(), hash(), any::<bool>()).prop_map(|(name, password, no_password)| {
            Op::UserAdd(UserAdd { name, password, no_password })
        }),
        1 => user().prop_map(Op::UserDelete),
        1 => (user(), hash()).prop_map(|(name, password)| Op::UserChangePassword(name, password)),
        3 => (user(), role()).prop_map(|(name, role)| Op::UserGrantRole(name, role)),
        1 => (user(), role()).prop_map(|(name, role)| Op::UserRevokeRole(name, role)),
        2 => role().prop_map(Op::RoleAdd),
        1 => role().prop_map(Op::RoleDelete),
        4 => (role(), option::weighted(0.95, permission()))
            .prop_map(|(role, permission)| Op::RoleGrantPermission(role, permission)),
        2 => (role(), raw_range()).prop_map(|(role, range)| Op::RoleRevokePermission(role, range)),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        5 => Just(Who::Internal),
        1 => Just(Who::Anonymous),
        2 => (user(), 0..2u64).prop_map(|(name, lag)| Who::Certificate(name, lag)),
        1 => (user(), 0..4u64).prop_map(|(name, lag)| Who::Jwt(name, lag)),
        2 => any::<usize>().prop_map(Who::Token),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = select(vec![TokenKind::Simple, TokenKind::Jwt]);
    let limits = (0..3u64, 0..5u64).prop_map(|(per_user, total)| TokenLimits { per_user, total });
    let lag = || prop::bool::weighted(0.2).prop_map(u64::from);
    let login = (user(), lag(), kind, limits);
    let step = prop_oneof![
        22 => (who(), op()).prop_map(|(who, op)| Step::Ask(who, op)),
        4 => login.prop_map(|(name, lag, kind, limits)| Step::Login(name, lag, kind, limits)),
        2 => (who(), vec(any::<usize>(), 0..4)).prop_map(|(who, used)| Step::Refresh(who, used)),
        1 => (who(), vec((any::<usize>(), lag()), 0..3)).prop_map(|(who, due)| Step::Expire(who, due)),
        1 => (who(), 0..12i64).prop_map(|(who, revision)| Step::Ask(who, Op::Compact(revision))),
        1 => Just(Step::Empty),
    ];
    vec(step, 0..70)
}

/// A member that applies entries and stores what they write.
#[derive(Clone)]
struct Member {
    state: State,
    store: FoldedStore,
    issued: Vec<(UserName, TokenKey, u64)>,
}

impl Member {
    /// A member with auth on, where `alice` may log in.
    fn new() -> Member {
        let state = State::restore(Image::default());
        let mut member = Member {
            state,
            store: FoldedStore::default(),
            issued: Vec::new(),
        };
        for op in [
            user_add("root"),
            user_add("alice"),
            root_grant(),
            Op::AuthEnable,
        ] {
            member.step(&Step::Ask(Who::Internal, op)).result.unwrap();
        }
        member
    }

    /// The same member after a restart.
    fn restarted(&self) -> Member {
        Member {
            state: State::restore(self.store.image()),
            ..self.clone()
        }
    }

    fn step(&mut self, step: &Step) -> Applied {
        let index = self.state.meta().applied_index + 1;
        let command = self.entry(step).map(|(caller, op)| Command {
            request_id: index,
            caller,
            op,
        });
        let applied = self.state.apply(index, 1, command, &self.store).unwrap();
        self.store.commit(&applied, self.state.meta());
        if let Ok(Response::Authenticated(key)) = applied.result {
            let token = self.state.token(&key).unwrap();
            self.issued.push((token.user.clone(), key, token.epoch));
        }
        applied
    }

    fn entry(&self, step: &Step) -> Option<(Caller, Op)> {
        match step {
            Step::Ask(who, op) => Some((self.caller(who), op.clone())),
            Step::Refresh(who, used) => {
                let keys = used.iter().filter_map(|which| self.token(*which)).collect();
                Some((self.caller(who), Op::TokenRefresh(keys)))
            }
            Step::Expire(who, due) => {
                let key = |(which, lag): &(usize, u64)| {
                    let key = self.token(*which)?;
                    let count = self
                        .state
                        .token(&key)
                        .map_or(0, |token| token.refresh_count);
                    Some((key, count.saturating_sub(*lag)))
                };
                let due = due.iter().filter_map(key).collect();
                Some((self.caller(who), Op::TokenExpire(due)))
            }
            Step::Login(user, lag, kind, limits) => {
                let epoch = self
                    .state
                    .login_record(user)
                    .map_or(0, |record| record.epoch);
                let user = user.clone();
                let (epoch, prefix_hash) = (epoch.saturating_sub(*lag), [1; 32]);
                let login = Authenticate {
                    user,
                    epoch,
                    kind: *kind,
                    prefix_hash,
                    limits: *limits,
                };
                Some((Caller::ANONYMOUS, Op::Authenticate(login)))
            }
            Step::Empty => None,
        }
    }

    /// One of the tokens ever issued, if there is one.
    fn token(&self, which: usize) -> Option<TokenKey> {
        let which = which.checked_rem(self.issued.len())?;
        Some(self.issued[which].1)
    }

    fn caller(&self, who: &Who) -> Caller {
        let now = self.state.auth_revision();
        let (identity, auth_revision) = match who {
            Who::Internal => (Identity::Internal, 0),
            Who::Anonymous => return Caller::ANONYMOUS,
            Who::Certificate(user, lag) => {
                let identity = Identity::User(user.clone(), Credential::Certificate);
                (identity, now.saturating_sub(*lag))
            }
            Who::Jwt(user, lag) => {
                let claim = now.saturating_sub(*lag);
                (Identity::User(user.clone(), Credential::Jwt(claim)), claim)
            }
            Who::Token(_) if self.issued.is_empty() => return Caller::ANONYMOUS,
            Who::Token(which) => {
                let (user, key, epoch) = &self.issued[which % self.issued.len()];
                let credential = Credential::SimpleToken(*key, *epoch);
                (Identity::User(user.clone(), credential), now)
            }
        };
        Caller {
            identity,
            auth_revision,
        }
    }
}

fn user_add(name: &str) -> Op {
    let password = PasswordHash("hash".into());
    Op::UserAdd(UserAdd {
        name: name.into(),
        password,
        no_password: false,
    })
}

fn root_grant() -> Op {
    Op::UserGrantRole(ROOT.into(), ROOT.into())
}

/// Whether a user's records allow a kind of access to a key, said without intervals and without caches.
fn records_allow(image: &Image, user: &UserName, key: &[u8], wanted: PermissionKind) -> bool {
    let Some(user) = image.users.get(user) else {
        return false;
    };
    let gives = |permission: &Permission| {
        let kind = permission.kind == wanted || permission.kind == PermissionKind::ReadWrite;
        let RawRange {
            key: start,
            range_end,
        } = &permission.range;
        kind && match &range_end[..] {
            [] => key == start,
            [0] => key >= &start[..],
            end => key >= &start[..] && key < end,
        }
    };
    let role_gives = |role: &RoleName| {
        role.as_str() == ROOT
            || image
                .roles
                .get(role)
                .is_some_and(|role| role.iter().any(gives))
    };
    user.roles.iter().any(role_gives)
}

/// Claims that every user's access to every single key is what the records say.
fn assert_decisions_follow_records(member: &Member) {
    let image = member.state.image();
    if !image.meta.auth_enabled {
        return;
    }
    for user in ["root", "alice", "bob", "nobody"].map(UserName::from) {
        let caller = member.caller(&Who::Certificate(user.clone(), 0));
        for key in KEYS {
            let range = RawRange {
                key: Bytes::from_static(key),
                range_end: Bytes::new(),
            };
            let read = Range {
                range: range.clone(),
                ..Range::default()
            };
            let read = member.state.range(&caller, &read, &member.store).is_ok();
            assert_eq!(
                read,
                records_allow(&image, &user, key, PermissionKind::Read)
            );
            let mut trial = member.clone();
            let delete = Op::DeleteRange(DeleteRange {
                range,
                prev_kv: false,
            });
            let written = trial
                .step(&Step::Ask(Who::Certificate(user.clone(), 0), delete))
                .result;
            assert_eq!(
                written.is_ok(),
                records_allow(&image, &user, key, PermissionKind::Write)
            );
        }
    }
}

/// What the auth hash is about.
fn auth_part(image: &Image) -> impl PartialEq + use<> {
    let Meta {
        auth_enabled,
        auth_revision,
        generation,
        epoch_floor,
        ..
    } = image.meta;
    let meta = (auth_enabled, auth_revision, generation, epoch_floor);
    (
        meta,
        image.users.clone(),
        image.roles.clone(),
        image.tokens.clone(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_restored_state_is_the_state(steps in steps()) {
        let mut member = Member::new();
        for step in &steps {
            let before = member.state.clone();
            let applied = member.step(step);
            prop_assert_eq!(&member.state, &State::restore(member.state.image()));
            prop_assert_eq!(&member.state, &member.restarted().state);
            let changed = auth_part(&before.image()) != auth_part(&member.state.image());
            prop_assert_eq!(changed, before.auth_hash() != member.state.auth_hash());
            prop_assert_eq!(before.meta().kv_revision != applied.revision,
                applied.writes.iter().any(|write| matches!(write, Write::Kv(..))));
        }
    }

    #[test]
    fn a_restart_anywhere_in_the_log_changes_nothing(steps in steps(), at in 0..60usize) {
        let mut member = Member::new();
        let (first, rest) = steps.split_at(at.min(steps.len()));
        for step in first {
            member.step(step);
        }
        let mut restarted = member.restarted();
        for step in rest {
            prop_assert_eq!(member.step(step), restarted.step(step));
        }
        prop_assert_eq!(member.state, restarted.state);
    }

    #[test]
    fn decisions_follow_the_records(steps in steps()) {
        let mut member = Member::new();
        for (at, step) in steps.iter().enumerate() {
            member.step(step);
            if at % 8 == 0 {
                assert_decisions_follow_records(&member);
            }
        }
        assert_decisions_follow_records(&member);
    }

    #[test]
    fn limits_hold_and_nobody_logs_another_user_out(steps in steps()) {
        let mut member = Member::new();
        for step in &steps {
            let before = member.state.image().tokens;
            let applied = member.step(step);
            let (Step::Login(user, _, _, limits), Ok(Response::Authenticated(key))) = (step, &applied.result) else {
                continue;
            };
            let after = member.state.image().tokens;
            let held = after.values().filter(|token| token.user == *user).count() as u64;
            prop_assert!(limits.per_user == 0 || held <= limits.per_user);
            prop_assert!(limits.total == 0 || after.len() as u64 <= limits.total);
            let gone: Vec<_> = before.iter().filter(|(key, _)| !after.contains_key(key)).collect();
            prop_assert!(gone.iter().all(|(_, token)| token.user == *user));
            // Whoever made room had been unused for longer than whoever stayed.
            let stayed = after.iter().filter(|(held, token)| *held != key && token.user == *user);
            let last_gone = gone.iter().map(|(_, token)| token.refresh_index).max().unwrap_or(0);
            prop_assert!(stayed.map(|(_, token)| token.refresh_index).all(|index| index >= last_gone));
        }
    }

    #[test]
    fn grant_then_revoke_is_identity(steps in steps(), permission in permission()) {
        let mut member = Member::new();
        for step in &steps {
            member.step(step);
        }
        let before = member.state.image();
        let known = before.roles.get(&RoleName::from("r"));
        prop_assume!(known.is_some_and(|role| role.iter().all(|known| known.range != permission.range)));
        let range = permission.range.clone();
        let grant = Op::RoleGrantPermission("r".into(), Some(permission));
        prop_assume!(member.step(&Step::Ask(Who::Internal, grant)).result.is_ok());
        let revoke = Op::RoleRevokePermission("r".into(), range);
        prop_assert_eq!(member.step(&Step::Ask(Who::Internal, revoke)).result, Ok(Response::Done));
        let after = member.state.image();
        prop_assert_eq!(&after.roles, &before.roles);
        prop_assert_eq!(&after.users, &before.users);
        prop_assert_eq!(&member.state, &State::restore(after));
        assert_decisions_follow_records(&member);
    }

    #[test]
    fn a_compaction_changes_nothing_that_can_still_be_read(steps in steps(), at in 0..12i64) {
        let mut member = Member::new();
        for step in &steps {
            member.step(step);
        }
        let everything = RawRange { key: Bytes::from_static(b"\0"), range_end: Bytes::from_static(b"\0") };
        let cluster = member.caller(&Who::Internal);
        let meta = member.state.meta();
        let read = |member: &Member, revision| {
            let then = Range { range: everything.clone(), revision, ..Range::default() };
            member.state.range(&cluster, &then, &member.store)
        };
        let all = 1..=meta.kv_revision;
        let before: Vec<_> = all.clone().map(|revision| read(&member, revision)).collect();
        let applied = member.step(&Step::Ask(Who::Internal, Op::Compact(at)));
        if at <= meta.compact_revision {
            prop_assert_eq!(applied.result, Err(ApplyError::Compacted));
            return Ok(());
        }
        if at > meta.kv_revision {
            prop_assert_eq!(applied.result, Err(ApplyError::FutureRevision));
            return Ok(());
        }
        prop_assert_eq!(applied.result, Ok(Response::Done));
        prop_assert_eq!(applied.revision, meta.kv_revision);
        for (revision, before) in all.zip(before) {
            let gone = Err(ReadError::Refused(ApplyError::Compacted));
            prop_assert_eq!(read(&member, revision), if revision < at { gone } else { before });
        }
        // Of each key at most one version lies at or below the revision, and it is alive.
        let kept = member.state.image().history;
        let old: Vec<_> = kept.iter().filter(|(place, _)| place.main <= at).collect();
        let keys: std::collections::BTreeSet<_> = old.iter().map(|(_, record)| &record.key).collect();
        prop_assert_eq!(keys.len(), old.len());
        prop_assert!(old.iter().all(|(_, record)| !record.tombstone));
    }

    #[test]
    fn the_past_does_not_change(steps in steps()) {
        let mut member = Member::new();
        let everything = RawRange { key: Bytes::from_static(b"\0"), range_end: Bytes::from_static(b"\0") };
        let cluster = member.caller(&Who::Internal);
        let mut past = BTreeMap::new();
        for step in &steps {
            let compacted = member.state.meta().compact_revision;
            member.step(step);
            if member.state.meta().compact_revision != compacted {
                past.clear(); // Hashes cover what is kept; reads after a compaction have a test of their own.
            }
            let revision = member.state.meta().kv_revision;
            let now = Range { range: everything.clone(), ..Range::default() };
            let found = member.state.range(&cluster, &now, &member.store);
            past.insert(revision, (found, member.state.kv_hash(0, &member.store)));
        }
        for (revision, (found, hash)) in &past {
            let then = Range { range: everything.clone(), revision: *revision, ..Range::default() };
            prop_assert_eq!(&member.state.range(&cluster, &then, &member.store), found);
            prop_assert_eq!(&member.state.kv_hash(*revision, &member.store), hash);
        }
        let hashes: Vec<_> = past.values().map(|(_, hash)| hash.clone().unwrap()).collect();
        prop_assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]), "a revision left the hash alone");
    }
}
