//! One cluster with Kueue: configuration, feature gates, webhooks, and the control loop of the leader.
//!
//! | module | concept |
//! |---|---|
//! | [`config`] | the configuration file `config.kueue.x-k8s.io` |
//! | [`gates`] | feature gates |
//! | [`webhooks`], [`webhook_cache`] | webhooks and version conversion, and the objects that they read |
//! | [`leader`] | leader election, and the tasks of the leader |
//! | [`control`] | the state machine that queues, admits and dispatches Workloads |

pub mod config;
pub mod control;
pub mod gates;
pub mod leader;
pub mod webhook_cache;
pub mod webhooks;
