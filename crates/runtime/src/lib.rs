//! IO that does not depend on Kueue: clients, leader election, watches, writes, events, servers, health, metrics, logs.
//!
//! Decisions are pure functions or small state machines that take `now`; a thin task performs the requests and takes a
//! [`Stop`] that ends it.
//!
//! | module | concept |
//! |---|---|
//! | [`client`], [`transport`] | the client of the process's own cluster, and the connections of every client |
//! | [`lease`] | leader election |
//! | [`watch`] | watches: [`watch::Change`]s by [`watch::Key`], and the [`watch::Stores`] that they fill |
//! | [`api_object`] | objects as an API server sends them |
//! | [`write`](mod@write), [`writer`] | a write request as a value, and sending it |
//! | [`named_read`] | reads of one object, which may be absent |
//! | [`failpoint`] | where a test ends the process around a write |
//! | [`request_metrics`], [`credential_expiry`] | request counters of clients, expiry of their credentials |
//! | [`events`] | Events of `events.k8s.io/v1` |
//! | [`server`], [`tls`] | HTTP servers and their serving certificate |
//! | [`client_certificate`] | certificates of a server's clients |
//! | [`certs`], [`cert_dir`], [`cert_secret`], [`ca_bundle`] | certificates: made, read, shared, and their CA injected |
//! | [`health`], [`metrics`], [`telemetry`], [`profiles`] | probes, metrics endpoint, logs, CPU profiles |
//! | [`tasks`], [`Stop`], [`Shutdown`] | the tasks of a process, and stopping them in two steps |
//! | [`huge_pages`] | pages of memory that the process does not use |
//! | [`jitter`] | random differences between pauses |
//! | `shutdown` | the stops of a process |
//! | `error_chain`, `json_object` | texts of errors with their causes; objects as JSON |

pub mod api_object;
pub mod ca_bundle;
pub mod cert_dir;
pub mod cert_secret;
pub mod certs;
pub mod client;
pub mod client_certificate;
pub mod credential_expiry;
pub mod error_chain;
pub mod events;
pub mod failpoint;
pub mod health;
pub mod huge_pages;
pub mod jitter;
pub mod json_object;
pub mod lease;
pub mod metrics;
pub mod named_read;
pub mod profiles;
pub mod request_metrics;
pub mod server;
mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod tls;
pub mod transport;
pub mod watch;
pub mod write;
pub mod writer;

pub use shutdown::{Shutdown, Stop, on_signal};
