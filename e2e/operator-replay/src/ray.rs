//! Cases of the operator of Ray.

mod api_defaults;
pub(crate) mod compare;
pub(crate) mod cron;
mod events;
mod head;
mod jobs;
mod kubelet;
mod profile;
mod refusals;
#[cfg(test)]
mod security_tests;
mod states;
#[cfg(test)]
pub(crate) mod takeover_tests;
#[cfg(test)]
mod tests;
pub(crate) mod webhook;
mod world;
#[cfg(test)]
mod world_tests;
