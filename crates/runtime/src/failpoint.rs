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

/// When, in the life of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It was decided on and not sent.
    Before,
    /// It was sent and may have been done; nobody here knows of it yet.
    After,
}

/// Sends a write; the process may end before it and after it.
pub async fn around<T>(purpose: &'static str, write: impl Future<Output = T>) -> T {
    hit(purpose, Moment::Before);
    let answer = write.await;
    hit(purpose, Moment::After);
    answer
}

/// Ends the process if a test wants that here.
#[cfg(feature = "failpoints")]
fn hit(purpose: &'static str, moment: Moment) {
    let name = match moment {
        Moment::Before => format!("{purpose}.before"),
        Moment::After => format!("{purpose}.after"),
    };
    let end = || fail::fail_point!(&name, |_| std::process::abort());
    end();
}

/// Nothing: this is no test build.
#[cfg(not(feature = "failpoints"))]
#[inline]
fn hit(_: &'static str, _: Moment) {}

/// Reads the places from the environment. Call it once, at the start of the process.
#[cfg(feature = "failpoints")]
pub fn set_up() {
    std::mem::forget(fail::FailScenario::setup());
}

/// Nothing: this is no test build.
#[cfg(not(feature = "failpoints"))]
pub fn set_up() {}
