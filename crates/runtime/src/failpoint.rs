//! Failpoints before and after every write, where a test can end the process.
//!
//! This module lists the purposes of writes of this crate; other crates name their own.
//!
//! With the feature `failpoints`, the environment variable `FAILPOINTS` sets them, for example
//! `reserve.after=1*off->return` to end the process at the second `reserve`. Without the feature they compile to nothing.

/// The Lease of the leader election.
pub const LEASE: &str = "lease";
/// The Secret with the serving certificate of the webhooks.
pub const CERT_SECRET: &str = "cert-secret";
/// The `caBundle` of a webhook configuration or CRD.
pub const CA_BUNDLE: &str = "ca-bundle";
/// A new Event.
pub const EVENT_CREATE: &str = "event-create";
/// An update of the series of an Event.
pub const EVENT_SERIES: &str = "event-series";

/// Sends a write between two failpoints: `PURPOSE.before`, when the write was decided but not sent, and `PURPOSE.after`, when it
/// may have been handled but the response is not used yet.
pub async fn with_failpoints<T>(purpose: &'static str, write: impl Future<Output = T>) -> T {
    hit(purpose, "before");
    let answer = write.await;
    hit(purpose, "after");
    answer
}

/// Ends the process if the failpoint is set.
#[cfg(feature = "failpoints")]
fn hit(purpose: &'static str, moment: &'static str) {
    let name = format!("{purpose}.{moment}");
    // As after a kill: no destructor runs, and the Lease is not released.
    let end = || fail::fail_point!(&name, |_| std::process::abort());
    end();
}

/// Without the feature there are no failpoints.
#[cfg(not(feature = "failpoints"))]
#[inline]
fn hit(_: &'static str, _: &'static str) {}

/// Reads the environment. Call it once, at the start of the process.
#[cfg(feature = "failpoints")]
pub fn set_up() {
    // Dropping the scenario would remove the failpoints.
    std::mem::forget(fail::FailScenario::setup());
}

/// Without the feature there are no failpoints.
#[cfg(not(feature = "failpoints"))]
pub fn set_up() {}
