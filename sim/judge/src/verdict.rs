//! What the judge says about a run.

use serde::Serialize;

/// The judge's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// In one word.
    pub kind: VerdictKind,
    /// The property that was broken (`P6`), or the layer that could not decide (`history`).
    pub property: Option<String>,
    /// In one plain sentence, naming the calls: what happened and what should have.
    pub sentence: String,
    /// Numbers of the calls that the sentence names.
    pub calls: Vec<u64>,
    /// For whoever wants to know more: a few calls that cannot be put in order, the state before and after, a
    /// line each, in plain words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
}

/// In one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// Everything was as it should be, and enough was seen to say so.
    Ok,
    /// A safety property was broken.
    Violation,
    /// Progress was owed and did not come.
    Stuck,
    /// The same seed gave another run.
    Nondeterminism,
    /// The judge cannot say: over budget, or the run saw too little.
    Undecided,
}

impl Verdict {
    /// Nothing to object.
    pub fn ok() -> Self {
        Verdict {
            kind: VerdictKind::Ok,
            property: None,
            sentence: String::new(),
            calls: Vec::new(),
            explanation: Vec::new(),
        }
    }

    /// A broken property.
    pub fn violation(property: &str, sentence: String, calls: Vec<u64>) -> Self {
        Verdict {
            kind: VerdictKind::Violation,
            property: Some(property.to_owned()),
            sentence,
            calls,
            explanation: Vec::new(),
        }
    }
}
