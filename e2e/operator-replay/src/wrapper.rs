//! Cases of the controller of AppWrappers.

pub(crate) mod compare;
mod pods;
mod profile;
#[cfg(test)]
mod takeover_tests;
#[cfg(test)]
mod tests;
pub(crate) mod webhook;
mod world;
