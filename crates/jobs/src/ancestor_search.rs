//! Search for the topmost managed ancestor of a job (docs/reference/kueue.md §7.3 row 0e), as a pure state machine.
//!
//! ```text
//! begin --> Read(owner) --owner_read(owner)--> Read(its owner) --...--> Top(topmost managed ancestor, if any)
//! ```
//! The search follows controller references while their kinds are known. Invariant: at most [`MAX_ANCESTORS`] + 1
//! objects are read.

use crds::names::labels::QUEUE_NAME;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::integrations::{ManagedKinds, controller};

/// Maximum number of ancestors.
pub const MAX_ANCESTORS: usize = 10;

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum AncestorStep {
    /// Read this owner in the namespace of the job.
    Read(OwnerReference),
    /// The search has ended with the topmost managed ancestor.
    Top(Option<OwnerReference>),
}

/// Why a search failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AncestorError {
    /// An object is its own ancestor.
    #[error("an owner of the job is owned by itself")]
    Cycle,
    /// There are more than [`MAX_ANCESTORS`] ancestors.
    #[error("the job has more than {MAX_ANCESTORS} ancestors")]
    TooDeep,
}

/// State of a search.
#[derive(Debug)]
pub struct AncestorSearch<'a> {
    kinds: &'a ManagedKinds,
    manage_without_queue_name: bool,
    seen: Vec<String>,
    topmost: Option<OwnerReference>,
}

impl<'a> AncestorSearch<'a> {
    /// Starts at a job. With `manage_without_queue_name` an ancestor is managed without a queue name.
    #[must_use]
    pub fn begin(
        job: &ObjectMeta,
        kinds: &'a ManagedKinds,
        manage_without_queue_name: bool,
    ) -> (Self, AncestorStep) {
        // The job counts as well: an owner with its uid is a cycle.
        let seen = job.uid.iter().cloned().collect();
        let mut search = Self { kinds, manage_without_queue_name, seen, topmost: None };
        let step = search.above(job);
        (search, step)
    }

    /// Enters the metadata of an owner. An object with another UID is a new object with the owner's name; the owner
    /// is gone.
    ///
    /// # Errors
    /// If the owners form a cycle, or there are too many.
    pub fn owner_read(
        &mut self,
        owner: OwnerReference,
        metadata: &ObjectMeta,
    ) -> Result<AncestorStep, AncestorError> {
        if metadata.uid.as_ref() != Some(&owner.uid) {
            return Ok(AncestorStep::Top(self.topmost.take()));
        }
        if self.seen.contains(&owner.uid) {
            return Err(AncestorError::Cycle);
        }
        self.seen.push(owner.uid.clone());
        // The job itself is one of them.
        if self.seen.len() > MAX_ANCESTORS + 1 {
            return Err(AncestorError::TooDeep);
        }
        // The last one wins: the topmost managed ancestor has the Workload of all jobs below it.
        if self.kinds.manages(&owner) && (self.manage_without_queue_name || names_queue(metadata)) {
            self.topmost = Some(owner);
        }
        Ok(self.above(metadata))
    }

    /// The topmost managed ancestor so far. For callers that cannot read the owner that was asked for.
    #[must_use]
    pub fn end(self) -> Option<OwnerReference> {
        self.topmost
    }

    fn above(&mut self, metadata: &ObjectMeta) -> AncestorStep {
        match controller(metadata).filter(|owner| self.kinds.owner_kind(owner).is_some()) {
            Some(owner) => AncestorStep::Read(owner.clone()),
            None => AncestorStep::Top(self.topmost.take()),
        }
    }
}

fn names_queue(metadata: &ObjectMeta) -> bool {
    let name = metadata.labels.as_ref().and_then(|labels| labels.get(QUEUE_NAME));
    name.is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// An object as `Kind` or `Kind@queue`; its name and UID are its index.
    struct OwnerObject {
        metadata: ObjectMeta,
    }

    fn reference(kind: &str, number: usize) -> OwnerReference {
        let api_version = match kind {
            "Job" => "batch/v1",
            "AppWrapper" => "workload.codeflare.dev/v1beta2",
            "JobSet" => "jobset.x-k8s.io/v1alpha2",
            "ReplicaSet" => "apps/v1",
            _ => "example.com/v1",
        };
        OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: number.to_string(),
            uid: number.to_string(),
            controller: Some(true),
            ..OwnerReference::default()
        }
    }

    /// Objects of which each one is owned by the next; the last one by the object at `back`, if any.
    fn chain(kinds: &[&str], back: Option<usize>) -> Vec<OwnerObject> {
        let kind = |number: usize| kinds[number].split('@').next().expect("a kind");
        let object = |number: usize| {
            let above = if number + 1 < kinds.len() { Some(number + 1) } else { back };
            let queue = kinds[number].split_once('@').map(|(_, queue)| queue.to_owned());
            let labels = queue.map(|queue| BTreeMap::from([(QUEUE_NAME.to_owned(), queue)]));
            let metadata = ObjectMeta {
                uid: Some(number.to_string()),
                labels,
                owner_references: above.map(|above| vec![reference(kind(above), above)]),
                ..ObjectMeta::default()
            };
            OwnerObject { metadata }
        };
        (0..kinds.len()).map(object).collect()
    }

    /// Searches from the first object: the topmost managed ancestor, and the number of objects read.
    fn search(
        objects: &[OwnerObject],
        without_queue_name: bool,
    ) -> (Result<Option<usize>, AncestorError>, usize) {
        let enabled = ["batch/job", "workload.codeflare.dev/appwrapper"].map(str::to_owned);
        let kinds = ManagedKinds::new(&enabled, &[]);
        let (mut search, mut step) =
            AncestorSearch::begin(&objects[0].metadata, &kinds, without_queue_name);
        let mut n_read = 0;
        loop {
            match step {
                AncestorStep::Top(top) => {
                    let number = |top: OwnerReference| top.name.parse().expect("a number");
                    return (Ok(top.map(number)), n_read);
                }
                AncestorStep::Read(owner) => {
                    n_read += 1;
                    let number: usize = owner.name.parse().expect("a number");
                    match search.owner_read(owner, &objects[number].metadata) {
                        Ok(next) => step = next,
                        Err(error) => return (Err(error), n_read),
                    }
                }
            }
        }
    }

    #[test]
    fn the_topmost_ancestor_with_a_queue_name_is_found() {
        for (kinds, with_queue_name, without) in [
            (&["Job"][..], None, None),
            (&["Job", "Widget@q"], None, None),
            (&["Job", "Job"], None, Some(1)),
            (&["Job", "Job@q"], Some(1), Some(1)),
            (&["Job", "Job@"], None, Some(1)),
            (&["Job@q", "JobSet@q", "AppWrapper"], None, Some(2)),
            (&["Job", "JobSet", "AppWrapper@q"], Some(2), Some(2)),
            (&["Job", "Job@q", "AppWrapper@q"], Some(2), Some(2)),
            (&["Job", "Job@q", "Widget", "AppWrapper@q"], Some(1), Some(1)),
            (&["Job", "ReplicaSet", "Job@q"], Some(2), Some(2)),
        ] {
            let objects = chain(kinds, None);
            assert_eq!(search(&objects, false).0, Ok(with_queue_name), "{kinds:?}");
            assert_eq!(search(&objects, true).0, Ok(without), "{kinds:?} without queue names");
        }
    }

    #[test]
    fn an_object_with_another_uid_is_not_the_owner() {
        let mut objects = chain(&["Job", "Job@q", "Job@q"], None);
        objects[2].metadata.uid = Some("another".to_owned());
        assert_eq!(search(&objects, false), (Ok(Some(1)), 2));
    }

    #[test]
    fn a_cycle_of_owners_is_an_error() {
        assert_eq!(
            search(&chain(&["Job", "Job@q", "Job"], Some(1)), false).0,
            Err(AncestorError::Cycle)
        );
        assert_eq!(search(&chain(&["Job", "Job@q"], Some(0)), false).0, Err(AncestorError::Cycle));
    }

    #[test]
    fn more_than_ten_ancestors_are_an_error() {
        let kinds = |n_ancestors: usize| vec!["Job@q"; n_ancestors + 1];
        assert_eq!(search(&chain(&kinds(10), None), false), (Ok(Some(10)), 10));
        assert_eq!(search(&chain(&kinds(11), None), false), (Err(AncestorError::TooDeep), 11));
    }
}
