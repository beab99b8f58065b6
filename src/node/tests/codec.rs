//! Every command survives its way into the log and out of it, and nothing else is taken for one.

use crate::node::entry::{EntryError, decode, encode};
use crate::state::{
    Authenticate, Caller, Command, Compare, Credential, DeleteRange, Identity, Op, Operand,
    PasswordHash, Permission, PermissionKind, Put, Range, RawRange, Relation, RoleName, SortOrder,
    SortTarget, TokenKey, TokenKind, TokenLimits, Txn, TxnOp, UserAdd, UserName,
};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_decoded_entry_is_the_encoded_command(command in command()) {
        prop_assert_eq!(decode(&encode(&command)), Ok(command));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&Bytes::from([&[1], &bytes[..]].concat()));
        let _ = decode(&Bytes::from(bytes));
    }

    #[test]
    fn a_cut_entry_is_not_taken_for_another(command in command(), cut in any::<prop::sample::Index>()) {
        let entry = encode(&command);
        let cut = entry.slice(..cut.index(entry.len()));
        prop_assert_ne!(decode(&cut), Ok(command));
    }
}

#[test]
fn a_newer_format_is_named() {
    let refused = decode(&Bytes::from_static(&[2, 0]));
    assert_eq!(refused, Err(EntryError::NewerVersion { found: 2 }));
}

#[test]
fn a_login_written_before_there_were_limits_has_none() {
    // Header with request id 7; a login of `a` with its hash and epoch 2, and no field beyond.
    let hash = [1_u8; 32];
    let fields = [&[0x0a, 1, b'a', 0x52, 32][..], &hash, &[0x58, 2]].concat();
    let entry = [&[1, 0xa2, 0x06, 2, 8, 7, 0xa2, 0x3f, 39][..], &fields].concat();
    let login = Authenticate {
        user: UserName::from("a"),
        epoch: 2,
        kind: TokenKind::Simple,
        prefix_hash: hash,
        limits: TokenLimits::default(),
    };
    let command = Command {
        request_id: 7,
        caller: Caller::ANONYMOUS,
        op: Op::Authenticate(login),
    };
    assert_eq!(decode(&Bytes::from(entry)), Ok(command));
}

#[test]
fn an_empty_entry_is_malformed() {
    assert!(matches!(
        decode(&Bytes::new()),
        Err(EntryError::Malformed { .. })
    ));
    assert!(matches!(
        decode(&Bytes::from_static(&[1])),
        Err(EntryError::Malformed { .. })
    ));
}

fn command() -> impl Strategy<Value = Command> {
    (any::<u64>(), caller(), op()).prop_map(|(request_id, caller, op)| Command {
        request_id,
        caller,
        op,
    })
}

fn caller() -> impl Strategy<Value = Caller> {
    let credential = prop_oneof![
        (token_key(), any::<u64>()).prop_map(|(key, epoch)| Credential::SimpleToken(key, epoch)),
        any::<u64>().prop_map(Credential::Jwt),
        Just(Credential::Certificate),
    ];
    let identity = prop_oneof![
        Just(Identity::Anonymous),
        Just(Identity::Internal),
        (user(), credential).prop_map(|(user, credential)| Identity::User(user, credential)),
    ];
    (identity, any::<u64>()).prop_map(|(identity, auth_revision)| Caller {
        identity,
        auth_revision,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        put().prop_map(Op::Put),
        delete_range().prop_map(Op::DeleteRange),
        txn().prop_map(Op::Txn),
        any::<i64>().prop_map(Op::Compact),
        Just(Op::AuthEnable),
        Just(Op::AuthDisable),
        authenticate().prop_map(Op::Authenticate),
        (user(), password(), any::<bool>()).prop_map(|(name, password, no_password)| {
            Op::UserAdd(UserAdd {
                name,
                password,
                no_password,
            })
        }),
        user().prop_map(Op::UserDelete),
        (user(), password()).prop_map(|(user, password)| Op::UserChangePassword(user, password)),
        (user(), role()).prop_map(|(user, role)| Op::UserGrantRole(user, role)),
        (user(), role()).prop_map(|(user, role)| Op::UserRevokeRole(user, role)),
        role().prop_map(Op::RoleAdd),
        role().prop_map(Op::RoleDelete),
        (role(), proptest::option::of(permission()))
            .prop_map(|(role, permission)| Op::RoleGrantPermission(role, permission)),
        (role(), raw_range()).prop_map(|(role, range)| Op::RoleRevokePermission(role, range)),
        vec(token_key(), 0..4).prop_map(Op::TokenRefresh),
        vec((token_key(), any::<u64>()), 0..4).prop_map(Op::TokenExpire),
    ]
}

fn token_key() -> impl Strategy<Value = TokenKey> {
    (any::<u64>(), any::<[u8; 32]>())
        .prop_map(|(index, prefix_hash)| TokenKey { index, prefix_hash })
}

fn authenticate() -> impl Strategy<Value = Authenticate> {
    let kind = prop_oneof![Just(TokenKind::Simple), Just(TokenKind::Jwt)];
    let limits = any::<(u64, u64)>().prop_map(|(per_user, total)| TokenLimits { per_user, total });
    (user(), any::<u64>(), kind, any::<[u8; 32]>(), limits).prop_map(
        |(user, epoch, kind, prefix_hash, limits)| Authenticate {
            user,
            epoch,
            kind,
            prefix_hash,
            limits,
        },
    )
}

fn user() -> impl Strategy<Value = UserName> {
    ".{0,8}".prop_map(UserName)
}

fn role() -> impl Strategy<Value = RoleName> {
    ".{0,8}".prop_map(RoleName)
}

fn password() -> impl Strategy<Value = PasswordHash> {
    "[!-~]{0,60}".prop_map(|text| PasswordHash(Bytes::from(text)))
}

fn permission() -> impl Strategy<Value = Permission> {
    let kind = prop_oneof![
        Just(PermissionKind::Read),
        Just(PermissionKind::Write),
        Just(PermissionKind::ReadWrite),
        (3..i32::MAX).prop_map(PermissionKind::Unknown),
        (i32::MIN..0).prop_map(PermissionKind::Unknown),
    ];
    (kind, raw_range()).prop_map(|(kind, range)| Permission { kind, range })
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..12).prop_map(Bytes::from)
}

fn raw_range() -> impl Strategy<Value = RawRange> {
    (bytes(), bytes()).prop_map(|(key, range_end)| RawRange { key, range_end })
}

fn put() -> impl Strategy<Value = Put> {
    (bytes(), bytes(), any::<i64>(), any::<[bool; 3]>()).prop_map(|(key, value, lease, flags)| {
        let [prev_kv, ignore_value, ignore_lease] = flags;
        Put {
            key,
            value,
            lease,
            prev_kv,
            ignore_value,
            ignore_lease,
        }
    })
}

fn delete_range() -> impl Strategy<Value = DeleteRange> {
    (raw_range(), any::<bool>()).prop_map(|(range, prev_kv)| DeleteRange { range, prev_kv })
}

fn range() -> impl Strategy<Value = Range> {
    let target = prop_oneof![
        Just(SortTarget::Key),
        Just(SortTarget::Version),
        Just(SortTarget::Create),
        Just(SortTarget::Mod),
        Just(SortTarget::Value),
    ];
    let order = prop_oneof![Just(SortOrder::Ascend), Just(SortOrder::Descend)];
    let sort = proptest::option::of((target, order));
    (raw_range(), sort, any::<[i64; 6]>(), any::<[bool; 2]>()).prop_map(
        |(range, sort, numbers, [keys_only, count_only])| Range {
            range,
            limit: numbers[0],
            revision: numbers[1],
            sort,
            keys_only,
            count_only,
            mod_revision: (numbers[2], numbers[3]),
            create_revision: (numbers[4], numbers[5]),
        },
    )
}

fn compare() -> impl Strategy<Value = Compare> {
    let relation = prop_oneof![
        Just(Relation::Equal),
        Just(Relation::Greater),
        Just(Relation::Less),
        Just(Relation::NotEqual),
    ];
    let operand = prop_oneof![
        any::<i64>().prop_map(Operand::Version),
        any::<i64>().prop_map(Operand::Create),
        any::<i64>().prop_map(Operand::Mod),
        bytes().prop_map(Operand::Value),
        any::<i64>().prop_map(Operand::Lease),
    ];
    (raw_range(), relation, operand).prop_map(|(range, relation, operand)| Compare {
        range,
        relation,
        operand,
    })
}

fn txn() -> impl Strategy<Value = Txn> {
    let flat = prop_oneof![
        range().prop_map(TxnOp::Range),
        put().prop_map(TxnOp::Put),
        delete_range().prop_map(TxnOp::DeleteRange),
    ];
    let op = flat.prop_recursive(2, 8, 3, |op| {
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
    (vec(compare(), 0..3), vec(op.clone(), 0..4), vec(op, 0..4)).prop_map(
        |(compares, success, failure)| Txn {
            compares,
            success,
            failure,
        },
    )
}
