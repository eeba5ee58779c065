//! Every write of a Job's life, by who makes it and what it is for.

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Manager,
    Agent,
}

/// Where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) who: Who,
    purpose: &'static str,
    moment: &'static str,
    /// In a life that is interrupted by an eviction.
    pub(crate) evicted: bool,
}

/// An ordinary life on a worker.
const MANAGER: &[&str] = &[
    "workload-create",
    "reserve",
    "clone-create",
    "job-create",
    "dispatched",
    "start",
    "sync-status",
    "finish",
    "unfinalize",
    "job-delete",
    "clone-delete",
];

/// What an agent writes.
const AGENT: &[&str] = &["reserve", "start", "finish", "capacity"];

/// What an eviction adds.
const EVICTION: &[&str] = &[
    "pods-ready",
    "evict",
    "job-delete",
    "clone-delete",
    "raise-epoch",
    "idle",
    "stop",
    "release",
    "reserve",
    "clone-create",
    "job-create",
];

impl Place {
    pub(crate) fn failpoint(&self) -> String {
        format!("{}.{}", self.purpose, self.moment)
    }
}

/// All of them, before and after each write; of one kind only, and repeated, where somebody looks for the cause of a
/// failure: `CRASH_ONLY=start.after CRASH_TIMES=20`.
pub(crate) fn all() -> Vec<Place> {
    let Ok(only) = std::env::var("CRASH_ONLY") else {
        return every();
    };
    let times = std::env::var("CRASH_TIMES").ok().and_then(|times| times.parse().ok());
    let chosen = every().into_iter().filter(|place| place.failpoint() == only);
    let chosen: Vec<Place> = chosen.collect();
    chosen.iter().copied().cycle().take(chosen.len() * times.unwrap_or(1)).collect()
}

fn every() -> Vec<Place> {
    let lists = [
        (Who::Manager, MANAGER, false),
        (Who::Agent, AGENT, false),
        (Who::Manager, EVICTION, true),
    ];
    let mut places = Vec::new();
    for (who, purposes, evicted) in lists {
        for purpose in purposes {
            for moment in ["before", "after"] {
                places.push(Place { who, purpose, moment, evicted });
            }
        }
    }
    places
}
