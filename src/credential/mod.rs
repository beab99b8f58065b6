//! Secrets, time and randomness of credentials: what a login does, and what a token looks like. Whether a credential
//! gives a right is decided in `state`; which call carries which credential, in `api`.

pub(crate) mod login;
pub(crate) mod simple_token;
