//! Decisions about provisioning checks: objects as lines of text in, the decision as text out ([`fixture`]).

#![expect(clippy::panic, reason = "a fixture that cannot be read ends its test")]

mod fixture;
mod requests;
mod states;
