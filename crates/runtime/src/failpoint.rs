//! Where a test can end the process: before and after every write, by what the write is for.
//!
//! What this crate writes of its own is listed here; all else is named by whoever orders it.
//!
//! With the feature `failpoints`, the environment variable `FAILPOINTS` of the process names the places, for example
//! `reserve.after=1*off->return` for the second time. Without the feature nothing of it is compiled.

/// The leader's lease.
pub const LEASE: &str = "lease";
/// The Secret of the certificate that webhooks are served with.
pub const CERT_SECRET: &str = "cert-secret";
/// The CA that an API server trusts webhooks by.
pub const CA_BUNDLE: &str = "ca-bundle";
/// An Event, for the first time.
pub const EVENT_CREATE: &str = "event-create";
/// An Event that happened again.
pub const EVENT_SERIES: &str = "event-series";

/// Sends a write. The process may end before it, when it was decided on and not sent, and after it, when it may have been
/// done and nobody here knows of it yet.
pub async fn around<T>(purpose: &'static str, write: impl Future<Output = T>) -> T {
    hit(purpose, "before");
    let answer = write.await;
    hit(purpose, "after");
    answer
}

/// Ends the process if a test wants that here.
#[cfg(feature = "failpoints")]
fn hit(purpose: &'static str, moment: &'static str) {
    let name = format!("{purpose}.{moment}");
    let end = || fail::fail_point!(&name, |_| std::process::abort());
    end();
}

/// Nothing: this is no test build.
#[cfg(not(feature = "failpoints"))]
#[inline]
fn hit(_: &'static str, _: &'static str) {}

/// Reads the places from the environment. Call it once, at the start of the process.
#[cfg(feature = "failpoints")]
pub fn set_up() {
    std::mem::forget(fail::FailScenario::setup());
}

/// Nothing: this is no test build.
#[cfg(not(feature = "failpoints"))]
pub fn set_up() {}
