//! What the machine did while a test waited: a test that fails on a machine that stood still is no fault of the programs.

use std::{
    fmt::Write as _,
    fs,
    sync::{Mutex, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};

use k8s_openapi::jiff::Timestamp;

/// The interval of the thread that looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// A shorter delay of that thread says nothing: machines with other work on them are slow.
const SHORTEST: Duration = Duration::from_secs(2);

/// Maximum number of delays in a text.
const SHOW_AT_MOST: usize = 10;

/// A time without any progress of this process.
#[derive(Debug, Clone, Copy)]
struct Standstill {
    end: Timestamp,
    length: Duration,
}

static SEEN: Mutex<Vec<Standstill>> = Mutex::new(Vec::new());

/// Looks from now on whether this process is scheduled.
pub(crate) fn watch() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // Without the thread the text lacks the standstills.
        let _ = thread::Builder::new().name("machine".to_owned()).spawn(look);
    });
}

fn look() {
    loop {
        let before = Instant::now();
        thread::sleep(INTERVAL);
        let length = before.elapsed().saturating_sub(INTERVAL);
        if length >= SHORTEST {
            let seen = Standstill { end: Timestamp::now(), length };
            SEEN.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        }
    }
}

/// The time, the load of the machine, and the last standstills of this process.
pub(crate) fn describe() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut text = format!("at {:.0}, load {}", Timestamp::now(), load.trim());
    for Standstill { end, length } in &seen[seen.len().saturating_sub(SHOW_AT_MOST)..] {
        let _ = write!(text, "\nthis process stood still for {length:.1?} until {end:.0}");
    }
    text
}
