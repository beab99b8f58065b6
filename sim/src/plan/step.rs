//! One step of a client: an operation, when it runs, where it goes and whose token goes with it.

use super::split::split;
use super::{Members, Span};
use gatehouse_judge::history::{Op, Outcome};
use gatehouse_judge::model::Refusal;
use serde::{Deserialize, Deserializer, Serialize};

/// How long a call may take from its client's view when the step does not say, milliseconds.
pub const TIMEOUT_MS: u64 = 2_000;

/// The session of a client that logs in once.
pub const DEFAULT_SESSION: &str = "default";

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// What is asked.
    #[serde(flatten)]
    pub op: Op,
    /// The rest.
    #[serde(flatten)]
    pub when: When,
}

/// When a step runs, where it goes and whose token goes with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Pause before the call, milliseconds; after the wait, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<Span>,
    /// A name under which other steps and faults wait for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Waits until the step of this label has returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// Waits until the step of this label has been sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_start: Option<String>,
    /// Where it goes, instead of the client's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<Members>,
    /// A login stores its token in this session of the client; any other step presents the session's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Presents no token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// Presents the token that the login of this label gave, whoever logged in; waits for that login. If it gave
    /// none, the step is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_token_of: Option<String>,
    /// How often the step runs, each time with new draws; 1 if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u64>,
    /// How long the whole call may take, milliseconds; [`TIMEOUT_MS`] if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The scenario's own expectation; an unknown outcome meets any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
}

/// Names of the fields of [`When`]; a test keeps the two in step.
const WHEN_FIELDS: [&str; 11] = [
    "after_ms",
    "label",
    "wait_for",
    "wait_for_start",
    "member",
    "session",
    "anonymous",
    "use_token_of",
    "repeat",
    "timeout_ms",
    "expect",
];

/// What a scenario expects of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// It is done.
    Ok,
    /// It is refused, for whatever reason.
    Refused,
    /// It is refused for lack of a right.
    Denied,
    /// Its token is refused as invalid.
    InvalidToken,
    /// The cluster could not, now.
    Unavailable,
}

impl Expected {
    /// As plans write it.
    pub fn name(self) -> &'static str {
        match self {
            Expected::Ok => "ok",
            Expected::Refused => "refused",
            Expected::Denied => "denied",
            Expected::InvalidToken => "invalid-token",
            Expected::Unavailable => "unavailable",
        }
    }

    /// Whether `outcome` is what was expected; an unknown one may be anything.
    pub fn met_by(self, outcome: &Outcome) -> bool {
        let (code, message) = match outcome {
            Outcome::Unknown { .. } => return true,
            Outcome::Ok(_) => return self == Expected::Ok,
            Outcome::Refused { code, message } => (code.as_str(), message.as_str()),
        };
        let says = |refusal| Refusal::from_message(message) == Some(refusal);
        match self {
            Expected::Ok => false,
            Expected::Refused => true,
            Expected::Denied => code == "PermissionDenied",
            Expected::InvalidToken => says(Refusal::InvalidToken),
            Expected::Unavailable => code == "Unavailable",
        }
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Step, D::Error> {
        let (when, op) = split(deserializer, &WHEN_FIELDS)?;
        Ok(Step { op, when })
    }
}

impl Step {
    /// A step that only says what is asked.
    pub fn plain(op: Op) -> Step {
        Step {
            op,
            when: When::default(),
        }
    }

    /// How often it runs.
    pub fn times(&self) -> u64 {
        self.when.repeat.unwrap_or(1)
    }

    /// The labels it waits for.
    pub fn awaited(&self) -> impl Iterator<Item = &str> {
        self.waits().map(|(_, label)| label)
    }

    /// The labels it waits for, each with the field that names it.
    pub fn waits(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("wait_for", &self.when.wait_for),
            ("wait_for_start", &self.when.wait_for_start),
            ("use_token_of", &self.when.use_token_of),
        ]
        .into_iter()
        .filter_map(|(field, label)| Some((field, label.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> When {
        When {
            after_ms: Some(Span { low: 1, high: 2 }),
            label: Some("a".into()),
            wait_for: Some("b".into()),
            wait_for_start: Some("c".into()),
            member: Some(Members::One(1)),
            session: Some("s".into()),
            anonymous: true,
            use_token_of: Some("d".into()),
            repeat: Some(2),
            timeout_ms: Some(3),
            expect: Some(Expected::Denied),
        }
    }

    #[test]
    fn the_list_of_fields_is_complete() {
        let table = toml::Table::try_from(everything()).unwrap();
        let mut names: Vec<&str> = WHEN_FIELDS.to_vec();
        names.sort_unstable();
        assert_eq!(table.keys().map(String::as_str).collect::<Vec<_>>(), names);
    }

    #[test]
    fn an_expectation_is_named_as_plans_write_it() {
        for expected in [
            Expected::Ok,
            Expected::Refused,
            Expected::Denied,
            Expected::InvalidToken,
            Expected::Unavailable,
        ] {
            let written = toml::Value::try_from(expected).unwrap();
            assert_eq!(written.as_str(), Some(expected.name()));
        }
    }

    #[test]
    fn a_step_survives_being_written_and_read() {
        let step = Step {
            op: Op::Login {
                user: "alice".into(),
                password: "old".into(),
            },
            when: everything(),
        };
        let text = toml::to_string(&step).unwrap();
        assert_eq!(toml::from_str::<Step>(&text).unwrap(), step);
    }

    #[test]
    fn a_misspelt_field_is_refused_by_name() {
        let error =
            toml::from_str::<Step>("do = \"put\"\nkey = \"a\"\nvalue = \"b\"\nwait_fro = \"x\"")
                .unwrap_err();
        assert!(error.message().contains("wait_fro"), "{error}");
        // Operations without fields of their own refuse it too.
        for name in [
            "auth-enable",
            "auth-disable",
            "auth-status",
            "user-list",
            "role-list",
        ] {
            let text = format!("do = \"{name}\"\nexpcet = \"denied\"");
            let error = toml::from_str::<Step>(&text).unwrap_err();
            assert!(error.message().contains("expcet"), "{name}: {error}");
        }
        let error = toml::from_str::<super::super::Fault>("kind = \"heal\"\nzap = 3").unwrap_err();
        assert!(error.message().contains("zap"), "{error}");
    }
}
