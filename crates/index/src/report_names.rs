//! Names of resources in the report of a worker. Source: docs/reference/dispatch.md §2.
//!
//! The engine never forgets the name of a resource, and a worker may write what it likes. So each worker can add a limited number of
//! names. A name beyond that has no id and is left out: to Workloads that request the resource the worker offers none of it. A name
//! that a Workload requests is known, and counts for no worker.

use engine::{Names, ids::ResourceId};

/// Names of resources that one worker may add.
const MAX_ADDED: usize = 1024;

/// How many names of resources the reports of one worker have added.
#[derive(Debug, Clone, Copy, Default)]
pub struct AddedNames(usize);

/// The names of resources that a report is read with.
#[derive(Debug)]
pub(crate) struct ReportNames<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) added: &'a mut AddedNames,
}

impl ReportNames<'_> {
    /// The id of a resource; `None` if the worker has added too many others.
    pub(crate) fn id(&mut self, resource: &str) -> Option<ResourceId> {
        let known = self.names.resources.get(resource);
        if known.is_some() || self.added.0 >= MAX_ADDED {
            return known;
        }
        self.added.0 += 1;
        Some(self.names.resources.intern(resource))
    }
}
