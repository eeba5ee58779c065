//! Clusters that are left out for a while, and what for.
//!
//! A refusal says something about more than one Workload: about a namespace, about a kind, or about these requests. An
//! exclusion holds for everything of its cause. The first one lasts a minute; each that follows after its end lasts twice as
//! long, up to half an hour. What was quiet for half an hour begins again. Source: docs/reference/dispatch.md §3.

use std::sync::Arc;

use engine::{Time, ids::ClusterId};

use crate::{JobGvk, WorkloadRequest};

/// The first exclusion, in nanoseconds.
const FIRST: i64 = 60_000_000_000;

/// The longest exclusion, and the time after which a cause begins again.
const LONGEST: i64 = 30 * FIRST;

/// What a cluster did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExclusionCause {
    /// Anything of this namespace.
    Namespace(Box<str>),
    /// Any job of this kind.
    Kind(JobGvk),
    /// Any Workload with these requests.
    Requests(Arc<WorkloadRequest>),
}

/// A cluster that is left out until a time.
#[derive(Debug, Clone)]
struct ClusterExclusion {
    cluster: ClusterId,
    cause: ExclusionCause,
    until: Time,
    lasted: i64,
    why: Box<str>,
}

/// The clusters that are left out, each for a cause.
#[derive(Debug, Default)]
pub(crate) struct Exclusions {
    all: Vec<ClusterExclusion>,
}

impl ExclusionCause {
    fn concerns(&self, request: &WorkloadRequest) -> bool {
        match self {
            Self::Namespace(namespace) => *namespace == request.namespace,
            Self::Kind(kind) => *kind == request.kind,
            Self::Requests(refused) => refused.is_equivalent_to(request),
        }
    }

    /// Whether two causes concern the same Workloads.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Requests(refused), Self::Requests(other)) => refused.is_equivalent_to(other),
            _ => self == other,
        }
    }
}

impl Exclusions {
    /// Leaves a cluster out for a cause. One that is left out already stays so until the same time.
    pub(crate) fn add(
        &mut self,
        cluster: ClusterId,
        cause: ExclusionCause,
        now: Time,
        why: Box<str>,
    ) {
        self.all.retain(|one| now.0.saturating_sub(one.until.0) < LONGEST);
        let known =
            self.all.iter_mut().find(|one| one.cluster == cluster && one.cause.is_same(&cause));
        let Some(known) = known else {
            let until = Time(now.0.saturating_add(FIRST));
            self.all.push(ClusterExclusion { cluster, cause, until, lasted: FIRST, why });
            return;
        };
        known.why = why;
        if known.until <= now {
            known.lasted = known.lasted.saturating_mul(2).min(LONGEST);
            known.until = Time(now.0.saturating_add(known.lasted));
        }
    }

    /// Until when a cluster is left out for a request, and why: the exclusion that ends last.
    pub(crate) fn find(
        &self,
        request: &WorkloadRequest,
        cluster: ClusterId,
        now: Time,
    ) -> Option<(Time, &str)> {
        let all = self.of(request).filter(|one| one.cluster == cluster && one.until > now);
        all.max_by_key(|one| one.until).map(|one| (one.until, &*one.why))
    }

    /// Ends of exclusions for a request after a time.
    pub(crate) fn ends(
        &self,
        request: &WorkloadRequest,
        after: Time,
    ) -> impl Iterator<Item = (ClusterId, Time)> {
        let later = self.of(request).filter(move |one| one.until > after);
        later.map(|one| (one.cluster, one.until))
    }

    /// The clock that times come from was set by so many nanoseconds.
    pub(crate) fn clock_jumped(&mut self, by: i64) {
        self.all.iter_mut().for_each(|one| one.until = Time(one.until.0.saturating_add(by)));
    }

    fn of(&self, request: &WorkloadRequest) -> impl Iterator<Item = &ClusterExclusion> {
        self.all.iter().filter(|one| one.cause.concerns(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;
    const EAST: ClusterId = ClusterId(0);

    fn request(namespace: &str, kind: &str, runs: i64) -> WorkloadRequest {
        WorkloadRequest {
            namespace: namespace.into(),
            kind: JobGvk { kind: kind.into(), ..JobGvk::default() },
            max_run_time: Some(runs),
            ..WorkloadRequest::default()
        }
    }

    #[test]
    fn an_exclusion_holds_for_everything_of_its_cause_and_nothing_else() {
        let refused = request("a", "Job", 1);
        let causes = [
            (ExclusionCause::Namespace("a".into()), [true, true, true, false]),
            (ExclusionCause::Kind(refused.kind.clone()), [true, true, false, true]),
            (ExclusionCause::Requests(Arc::new(refused)), [true, false, false, false]),
        ];
        let requests = [
            request("a", "Job", 1),
            request("a", "Job", 2),
            request("a", "JobSet", 1),
            request("b", "Job", 1),
        ];
        for (cause, expected) in causes {
            let mut exclusions = Exclusions::default();
            exclusions.add(EAST, cause.clone(), Time(0), "no".into());
            let found = |cluster| {
                requests.each_ref().map(|one| exclusions.find(one, cluster, Time(1)).is_some())
            };
            assert_eq!(found(EAST), expected, "{cause:?}");
            assert_eq!(found(ClusterId(1)), [false; 4], "{cause:?}");
        }
    }

    #[test]
    fn hazard_9_exclusions_double_from_one_minute_to_thirty_and_begin_again_after_a_quiet_time() {
        let cause = ExclusionCause::Namespace("a".into());
        let (mut exclusions, mut now) = (Exclusions::default(), Time(0));
        let request = request("a", "Job", 1);
        let mut lasted = Vec::new();
        for _ in 0..7 {
            exclusions.add(EAST, cause.clone(), now, "no".into());
            // Others in flight are refused as well, which says nothing new.
            exclusions.add(EAST, cause.clone(), Time(now.0 + 1), "no".into());
            let (until, _) = exclusions.find(&request, EAST, now).expect("excluded");
            lasted.push((until.0 - now.0) / MINUTE);
            now = until;
            assert_eq!(exclusions.find(&request, EAST, now), None, "the end");
        }
        assert_eq!(lasted, [1, 2, 4, 8, 16, 30, 30]);
        now = Time(now.0 + 30 * MINUTE);
        exclusions.add(EAST, cause, now, "no".into());
        let (until, _) = exclusions.find(&request, EAST, now).expect("excluded");
        assert_eq!((until.0 - now.0) / MINUTE, 1);
    }
    #[test]
    fn an_exclusion_lasts_as_long_when_the_clock_is_set() {
        let request = request("a", "Job", 1);
        for by in [-90 * MINUTE, 90 * MINUTE] {
            let mut exclusions = Exclusions::default();
            exclusions.add(EAST, ExclusionCause::Namespace("a".into()), Time(0), "no".into());
            exclusions.clock_jumped(by);
            let found = |now| exclusions.find(&request, EAST, Time(by + now)).is_some();
            assert_eq!([MINUTE - 1, MINUTE].map(found), [true, false], "{by}");
        }
    }
}
