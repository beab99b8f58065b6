//! Reads transcripts. Anything that is not understood panics: a row that is skipped would be a test that cannot fail.

use crate::state::*;
use bytes::Bytes;

/// One row.
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) caller: String,
    pub(super) command: String,
    pub(super) result: String,
}

/// What a row asks for.
pub(super) enum Request {
    Apply(Op),
    Login(Login),
    /// Names of tokens.
    Refresh(Vec<String>),
    /// Names of tokens, each with the count that the proposer saw.
    Expire(Vec<(String, u64)>),
    Tokens,
    Get {
        range: Range,
        detailed: bool,
    },
    ReadTxn(Txn),
    UserGet(UserName),
    UserList,
    RoleGet(RoleName),
    RoleList,
    LoginRecord(UserName),
    CheckAdmin,
    CheckIdentity,
    Show,
}

/// `login USER [epoch=E] [jwt] [as TOKEN] [per-user=N] [total=N]`.
pub(super) struct Login {
    pub(super) name: UserName,
    pub(super) epoch: Option<u64>,
    pub(super) kind: TokenKind,
    pub(super) token: String,
    pub(super) limits: TokenLimits,
}

/// The rows of a transcript; empty lines and lines with `#` in front are skipped.
pub(super) fn rows(transcript: &str) -> Vec<Row> {
    let lines = transcript
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(row)
        .collect()
}

fn row((line, text): (usize, &str)) -> Row {
    let (left, result) = text
        .split_once('→')
        .unwrap_or_else(|| panic!("line {line}: no arrow"));
    let (caller, command) = left.trim().split_once(' ').expect("caller, then command");
    let own = |text: &str| text.trim().to_owned();
    Row {
        line,
        caller: own(caller),
        command: own(command),
        result: own(result),
    }
}

/// Understands a command.
pub(super) fn request(command: &str) -> Request {
    let mut words = Words {
        words: command.split_whitespace().collect(),
        at: 0,
    };
    let request = verb(&mut words);
    assert!(words.peek().is_none(), "superfluous words in {command:?}");
    request
}

fn verb(words: &mut Words<'_>) -> Request {
    match words.next() {
        "get" => {
            let range = range(words);
            Request::Get {
                range,
                detailed: words.skip("detailed"),
            }
        }
        "put" => Request::Apply(Op::Put(put(words))),
        "del" => Request::Apply(Op::DeleteRange(delete_range(words))),
        "txn" => Request::Apply(Op::Txn(txn(words))),
        "read-txn" => Request::ReadTxn(txn(words)),
        "compact" => {
            let revision = words.text().parse().expect("a revision is a number");
            Request::Apply(Op::Compact(revision))
        }
        "enable" => Request::Apply(Op::AuthEnable),
        "disable" => Request::Apply(Op::AuthDisable),
        "login" => Request::Login(login(words)),
        "refresh" => Request::Refresh(words.rest()),
        "expire" => Request::Expire(words.rest().iter().map(|word| due(word)).collect()),
        "tokens" => Request::Tokens,
        "user-add" => Request::Apply(Op::UserAdd(user_add(words))),
        "user-delete" => Request::Apply(Op::UserDelete(words.text().into())),
        "passwd" => Request::Apply(Op::UserChangePassword(
            words.text().into(),
            PasswordHash(words.bytes()),
        )),
        "user-grant" => Request::Apply(Op::UserGrantRole(words.text().into(), words.text().into())),
        "user-revoke" => {
            Request::Apply(Op::UserRevokeRole(words.text().into(), words.text().into()))
        }
        "role-add" => Request::Apply(Op::RoleAdd(words.text().into())),
        "role-delete" => Request::Apply(Op::RoleDelete(words.text().into())),
        "role-grant" => {
            let role = words.text().into();
            Request::Apply(Op::RoleGrantPermission(role, permission(words)))
        }
        "role-revoke" => Request::Apply(Op::RoleRevokePermission(
            words.text().into(),
            raw_range(words),
        )),
        "user-get" => Request::UserGet(words.text().into()),
        "user-list" => Request::UserList,
        "role-get" => Request::RoleGet(words.text().into()),
        "role-list" => Request::RoleList,
        "login-record" => Request::LoginRecord(words.text().into()),
        "check-admin" => Request::CheckAdmin,
        "check-identity" => Request::CheckIdentity,
        "show" => Request::Show,
        verb => panic!("unknown command {verb:?}"),
    }
}

/// The words of a command, read one by one.
struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> &'a str {
        let word = self.peek().expect("a word is missing");
        self.at += 1;
        word
    }

    /// Skips `word` if it comes next.
    fn skip(&mut self, word: &str) -> bool {
        let skipped = self.peek() == Some(word);
        self.at += usize::from(skipped);
        skipped
    }

    /// The rest of the next word, if it starts with `name=`.
    fn option(&mut self, name: &str) -> Option<&'a str> {
        let value = self.peek()?.strip_prefix(name)?.strip_prefix('=')?;
        self.at += 1;
        Some(value)
    }

    fn number(&mut self, name: &str) -> Option<i64> {
        self.option(name)
            .map(|value| value.parse().expect("an option is a number"))
    }

    /// Every word that is left.
    fn rest(&mut self) -> Vec<String> {
        let rest = self.words[self.at..].iter().map(|word| (*word).to_owned());
        let rest = rest.collect();
        self.at = self.words.len();
        rest
    }

    fn bytes(&mut self) -> Bytes {
        bytes(self.next())
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("names are text")
    }
}

fn bytes(word: &str) -> Bytes {
    if word == "''" {
        return Bytes::new();
    }
    let mut bytes = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\\0") {
            bytes.push(0);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\\xff") {
            bytes.push(0xff);
            rest = after;
        } else {
            bytes.extend(first.to_string().bytes());
            rest = &rest[first.len_utf8()..];
        }
    }
    Bytes::from(bytes)
}

/// A key and, unless a keyword or an option comes next, a range end.
fn raw_range(words: &mut Words<'_>) -> RawRange {
    let key = words.bytes();
    let ends = |word: &str| {
        let closes = ["prev", "detailed", "keys-only", "count-only", ";", "}", "]"];
        !closes.contains(&word) && !word.contains('=') && !["<", ">"].contains(&word)
    };
    let range_end = match words.peek() {
        Some(word) if ends(word) => words.bytes(),
        _ => Bytes::new(),
    };
    RawRange { key, range_end }
}

fn range(words: &mut Words<'_>) -> Range {
    let mut range = Range {
        range: raw_range(words),
        ..Range::default()
    };
    loop {
        if let Some(limit) = words.number("limit") {
            range.limit = limit;
        } else if let Some(revision) = words.number("rev") {
            range.revision = revision;
        } else if let Some(sort) = words.option("sort") {
            range.sort = Some(sort_by(sort));
        } else if let Some(lowest) = words.number("min-mod") {
            range.mod_revision.0 = lowest;
        } else if let Some(highest) = words.number("max-mod") {
            range.mod_revision.1 = highest;
        } else if let Some(lowest) = words.number("min-create") {
            range.create_revision.0 = lowest;
        } else if let Some(highest) = words.number("max-create") {
            range.create_revision.1 = highest;
        } else if words.skip("keys-only") {
            range.keys_only = true;
        } else if words.skip("count-only") {
            range.count_only = true;
        } else {
            return range;
        }
    }
}

fn sort_by(text: &str) -> (SortTarget, SortOrder) {
    let (target, order) = text.split_once(':').expect("sort=target:order");
    let target = match target {
        "key" => SortTarget::Key,
        "version" => SortTarget::Version,
        "create" => SortTarget::Create,
        "mod" => SortTarget::Mod,
        "value" => SortTarget::Value,
        target => panic!("unknown sort target {target:?}"),
    };
    let order = match order {
        "up" => SortOrder::Ascend,
        "down" => SortOrder::Descend,
        order => panic!("unknown order {order:?}"),
    };
    (target, order)
}

fn put(words: &mut Words<'_>) -> Put {
    let mut put = Put {
        key: words.bytes(),
        value: words.bytes(),
        ..Put::default()
    };
    loop {
        if let Some(lease) = words.number("lease") {
            put.lease = lease;
        } else if words.skip("prev") {
            put.prev_kv = true;
        } else if words.skip("ignore-value") {
            put.ignore_value = true;
        } else if words.skip("ignore-lease") {
            put.ignore_lease = true;
        } else {
            return put;
        }
    }
}

fn delete_range(words: &mut Words<'_>) -> DeleteRange {
    DeleteRange {
        range: raw_range(words),
        prev_kv: words.skip("prev"),
    }
}

/// `[ compare ; … ] { op ; … } { op ; … }`, the last pair of braces being the failure branch.
fn txn(words: &mut Words<'_>) -> Txn {
    Txn {
        compares: list(words, "[", "]", compare),
        success: list(words, "{", "}", txn_op),
        failure: list(words, "{", "}", txn_op),
    }
}

fn list<T>(
    words: &mut Words<'_>,
    open: &str,
    close: &str,
    item: impl Fn(&mut Words<'_>) -> T,
) -> Vec<T> {
    assert!(words.skip(open), "{open} is missing");
    let mut items = Vec::new();
    while !words.skip(close) {
        items.push(item(words));
        words.skip(";");
    }
    items
}

fn txn_op(words: &mut Words<'_>) -> TxnOp {
    match words.next() {
        "get" => TxnOp::Range(range(words)),
        "put" => TxnOp::Put(put(words)),
        "del" => TxnOp::DeleteRange(delete_range(words)),
        "txn" => TxnOp::Txn(txn(words)),
        verb => panic!("unknown operation {verb:?}"),
    }
}

/// `field key [end] relation operand`.
fn compare(words: &mut Words<'_>) -> Compare {
    let field = words.next();
    let range = raw_range(words);
    let relation = match words.next() {
        "=" => Relation::Equal,
        "!=" => Relation::NotEqual,
        ">" => Relation::Greater,
        "<" => Relation::Less,
        relation => panic!("unknown relation {relation:?}"),
    };
    let mut number = || words.next().parse().expect("the operand is a number");
    let operand = match field {
        "version" => Operand::Version(number()),
        "create" => Operand::Create(number()),
        "mod" => Operand::Mod(number()),
        "lease" => Operand::Lease(number()),
        "value" => Operand::Value(words.bytes()),
        field => panic!("unknown field {field:?}"),
    };
    Compare {
        range,
        relation,
        operand,
    }
}

/// `token=count`.
fn due(word: &str) -> (String, u64) {
    let (token, count) = word.split_once('=').expect("a due token is token=count");
    (
        token.to_owned(),
        count.parse().expect("the count is a number"),
    )
}

fn login(words: &mut Words<'_>) -> Login {
    let name = words.text().into();
    let epoch = words
        .option("epoch")
        .map(|epoch| epoch.parse().expect("the epoch is a number"));
    let kind = if words.skip("jwt") {
        TokenKind::Jwt
    } else {
        TokenKind::Simple
    };
    let token = if words.skip("as") {
        words.text()
    } else {
        "unnamed".to_owned()
    };
    let mut limit = |option| {
        let limit = words.number(option).unwrap_or(0);
        u64::try_from(limit).expect("a limit is not negative")
    };
    let (per_user, total) = (limit("per-user"), limit("total"));
    Login {
        name,
        epoch,
        kind,
        token,
        limits: TokenLimits { per_user, total },
    }
}

fn user_add(words: &mut Words<'_>) -> UserAdd {
    let name = words.text().into();
    let no_password = words.skip("no-password");
    let password = if words.peek().is_some() {
        words.bytes()
    } else {
        Bytes::new()
    };
    UserAdd {
        name,
        password: PasswordHash(password),
        no_password,
    }
}

fn permission(words: &mut Words<'_>) -> Option<Permission> {
    let kind = match words.peek()? {
        "read" => PermissionKind::Read,
        "write" => PermissionKind::Write,
        "both" => PermissionKind::ReadWrite,
        number => PermissionKind::Unknown(number.parse().expect("read, write, both or a number")),
    };
    words.next();
    Some(Permission {
        kind,
        range: raw_range(words),
    })
}
