//! A Workload that has flavors and counts: what is packed onto nodes.

use std::sync::Arc;

use engine::flavors::matching::Toleration;

use crate::{Pods, Request};

/// What admission adds to one pod set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Given {
    /// Pods that were admitted; fewer than asked for under partial admission.
    pub count: i64,
    /// Node labels of the assigned flavors.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Tolerations of the assigned flavors.
    pub tolerations: Vec<Toleration>,
}

/// A Workload as it would run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Work {
    /// What it asks for.
    pub request: Arc<Request>,
    /// What admission adds, pod set by pod set. A pod set without an entry is taken as it is.
    pub given: Vec<Given>,
}

impl Work {
    /// Its pod sets, each with the number of pods that count and what was added to it.
    pub(crate) fn pod_sets(&self) -> impl Iterator<Item = (&Pods, i64, Option<&Given>)> {
        let given = self.given.iter().map(Some).chain(std::iter::repeat(None));
        self.request.pod_sets.iter().zip(given).map(|(pods, given)| {
            let count = given.map_or(pods.count, |given| given.count);
            (pods, count, given)
        })
    }
}
