//! Where a test can end the process: before and after every write, by what the write is for.
//!
//! With the feature `failpoints`, the environment variable `FAILPOINTS` of the process names the places, for example
//! `reserve.after=1*off->return` for the second time. Without the feature nothing of it is compiled.

/// When, in the life of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It was decided on and not sent.
    Before,
    /// It was sent and may have been done; nobody here knows of it yet.
    After,
}

/// Ends the process if a test wants that here.
#[cfg(feature = "failpoints")]
pub fn hit(purpose: &'static str, moment: Moment) {
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
pub fn hit(_: &'static str, _: Moment) {}

/// Reads the places from the environment. Call it once, at the start of the process.
#[cfg(feature = "failpoints")]
pub fn set_up() {
    std::mem::forget(fail::FailScenario::setup());
}

/// Nothing: this is no test build.
#[cfg(not(feature = "failpoints"))]
pub fn set_up() {}
