//! Shared code of the lab's command-line tools and the tests on the lab.
//!
//! | module | concept |
//! |---|---|
//! | [`installation`] | a complete installation on a lab: manifests, managers, agents, workers |
//! | [`local_webhooks`] | manifests for a manager that runs outside the lab |
//! | [`replays`] | recorded requests against a fresh control plane |

pub mod installation;
pub mod local_webhooks;
pub mod replays;
