//! IO that knows nothing of Kueue: clients, the lease, watches, events, TLS servers, certificates, health, metrics, logs.
//!
//! What decides here is pure and takes `now`; what does is thin and takes a [`Stop`] that ends it.

pub mod ca_bundle;
pub mod cert_dir;
pub mod cert_secret;
pub mod certs;
pub mod client;
pub mod events;
pub mod failpoint;
pub mod health;
pub mod lease;
pub mod metrics;
pub mod requests;
pub mod server;
mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod tls;
pub mod watch;
pub mod write;
pub mod writer;

pub use shutdown::{Stop, on_signal};
