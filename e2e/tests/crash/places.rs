//! Where programs die: before and after every write, in a life in which it is made.

use cluster::control::Purpose;
use runtime::failpoint::{CA_BUNDLE, CERT_SECRET, EVENT_CREATE, EVENT_SERIES, LEASE};

use crate::course::Course;

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Manager,
    Agent,
}

/// Where, and while what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) who: Who,
    pub(crate) course: Course,
    write: &'static str,
    moment: &'static str,
}

impl Place {
    /// As the environment variable names it.
    pub(crate) fn failpoint(&self) -> String {
        format!("{}.{}", self.write, self.moment)
    }
}

/// What a program writes while this happens, by its purpose, or by the name that `runtime` gives it.
fn written(who: Who, course: Course) -> (&'static [Purpose], &'static [&'static str]) {
    use Purpose as P;
    match (who, course) {
        (Who::Manager, Course::Plain) => (
            &[
                P::WorkloadCreate,
                P::Reserve,
                P::CloneCreate,
                P::JobCreate,
                P::Dispatched,
                P::Start,
                P::SyncStatus,
                P::Finish,
                P::Unfinalize,
                P::JobDelete,
                P::CloneDelete,
                P::ClusterQueueStatus,
                P::LocalQueueStatus,
            ],
            &[EVENT_CREATE],
        ),
        (Who::Manager, Course::Interrupted) => (
            &[
                P::PodsReady,
                P::Evict,
                P::JobDelete,
                P::CloneDelete,
                P::RaiseEpoch,
                P::Idle,
                P::Stop,
                P::Release,
                P::Requeue,
                P::Reserve,
                P::CloneCreate,
                P::JobCreate,
            ],
            &[EVENT_SERIES],
        ),
        (Who::Manager, Course::Edited) => {
            (&[P::Pending, P::WorkloadDelete, P::WorkloadUpdate, P::Priority, P::Move], &[])
        }
        (Who::Manager, Course::AtHome) => {
            (&[P::Suspend, P::Admit, P::Reclaim, P::Stop, P::StopStatus], &[])
        }
        (Who::Manager, Course::TooLong) => (&[P::DeactivationTarget, P::Deactivate], &[]),
        (Who::Manager, Course::Foreign) => (&[P::Reject], &[]),
        (Who::Manager, Course::Robbed) => (&[P::Retry], &[]),
        (Who::Manager, Course::Refused) => (&[P::Unplace], &[]),
        (Who::Manager, Course::Registered) => (
            &[
                P::ClusterUid,
                P::ClusterCondition,
                P::CheckCondition,
                P::LabelKeys,
                P::CapacityCopyCreate,
                P::CapacityCopy,
            ],
            &[],
        ),
        (Who::Manager, Course::QueueRemoved) => (&[P::ReleaseUnused], &[]),
        (Who::Manager, Course::Elected) => (&[], &[LEASE]),
        (Who::Manager, Course::Untrusted) => (&[], &[CERT_SECRET, CA_BUNDLE]),
        (Who::Agent, Course::Plain) => (&[P::Reserve, P::Start, P::Finish, P::Capacity], &[]),
        (Who::Agent, Course::Forbidden) => (&[P::Refuse], &[]),
        (Who::Agent, Course::Registered) => (&[P::CapacityCreate], &[]),
        (Who::Manager, Course::Forbidden) | (Who::Agent, _) => (&[], &[]),
    }
}

/// All of them; of one kind only, and repeated, where somebody looks for the cause of a failure:
/// `CRASH_ONLY=start.after CRASH_TIMES=20`, or a course: `CRASH_ONLY=Edited`.
pub(crate) fn chosen() -> Vec<Place> {
    let Ok(only) = std::env::var("CRASH_ONLY") else {
        return all();
    };
    let times = std::env::var("CRASH_TIMES").ok().and_then(|times| times.parse().ok());
    let meant = |place: &Place| place.failpoint() == only || format!("{:?}", place.course) == only;
    let chosen: Vec<Place> = all().into_iter().filter(meant).collect();
    chosen.iter().copied().cycle().take(chosen.len() * times.unwrap_or(1)).collect()
}

fn all() -> Vec<Place> {
    let mut places = Vec::new();
    for who in [Who::Manager, Who::Agent] {
        for &course in Course::ALL {
            let (purposes, own) = written(who, course);
            for write in purposes.iter().map(|one| one.name()).chain(own.iter().copied()) {
                for moment in ["before", "after"] {
                    places.push(Place { who, course, write, moment });
                }
            }
        }
    }
    places
}

#[test]
fn every_write_has_a_place_to_die() {
    let places = all();
    let own = [LEASE, CERT_SECRET, CA_BUNDLE, EVENT_CREATE, EVENT_SERIES];
    let purposes = Purpose::ALL.iter().map(|purpose| purpose.name());
    for write in purposes.chain(own) {
        assert!(places.iter().any(|place| place.write == write), "nobody dies at {write}");
    }
}
