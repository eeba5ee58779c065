//! Cases of the operator of Ray.

pub(crate) mod compare;
pub(crate) mod cron;
mod head;
mod jobs;
mod profile;
#[cfg(test)]
mod tests;
pub(crate) mod webhook;
mod world;
