//! Which jobs on a worker name which clone.
//!
//! One job does, or the members of a group. A job that a user made by hand and that names a clone counts as well, so that
//! removal reaches it.

use runtime::watch::Key;

use crate::control::job_key::JobKey;
use crate::control::{key_map::KeyMap, key_set::KeySet};

/// Jobs by clone, and clones by job.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    jobs: KeyMap<Key, KeySet<JobKey>>,
    clones: KeyMap<JobKey, Key>,
}

impl Naming {
    /// Records that a job names this clone; `None` if the job is gone. Returns the clones that it names or named.
    pub(crate) fn note(&mut self, job: &JobKey, clone: Option<Key>) -> Vec<Key> {
        let before = match &clone {
            Some(clone) => self.clones.insert(job.clone(), clone.clone()),
            None => self.clones.remove(job),
        };
        let before = before.filter(|before| clone.as_ref() != Some(before));
        if let Some(before) = &before {
            self.jobs.remove_member(before, job);
        }
        if let Some(clone) = &clone {
            self.jobs.entry(clone.clone()).or_default().insert(job.clone());
        }
        before.into_iter().chain(clone).collect()
    }

    /// The jobs that name a clone.
    pub(crate) fn jobs_of(&self, clone: &Key) -> impl Iterator<Item = &JobKey> {
        self.jobs.get(clone).into_iter().flatten()
    }

    /// The clone that a job names.
    pub(crate) fn clone_of(&self, job: &JobKey) -> Option<&Key> {
        self.clones.get(job)
    }

    /// Clones that jobs name, each with every job that does.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Key, &JobKey)> {
        self.clones.iter().map(|(job, clone)| (clone, job))
    }
}

#[cfg(test)]
mod tests {
    use ::jobs::{Kind, Kinds};

    use super::*;

    fn key(name: &str) -> Key {
        Key { namespace: Some("ns".into()), name: name.into() }
    }

    fn jobs<'a>(naming: &'a Naming, clone: &str) -> Vec<&'a JobKey> {
        naming.jobs_of(&key(clone)).collect()
    }

    fn kinds() -> (Kind, Kind) {
        let kind = |name| Kinds::built_in().of_framework(name).expect("a kind").clone();
        (kind("batch/job"), kind("jobset.x-k8s.io/jobset"))
    }

    #[test]
    fn every_job_that_names_a_clone_counts() {
        let (batch, _) = kinds();
        let job = |name: &str| JobKey::new(&batch, &key(name));
        let mut naming = Naming::default();
        assert_eq!(naming.note(&job("b"), Some(key("clone"))), [key("clone")]);
        assert_eq!(naming.note(&job("a"), Some(key("clone"))), [key("clone")]);
        assert_eq!(jobs(&naming, "clone"), [&job("a"), &job("b")]);
        assert_eq!(naming.note(&job("a"), None), [key("clone")]);
        assert_eq!(jobs(&naming, "clone"), [&job("b")]);
        assert_eq!(naming.note(&job("b"), Some(key("other"))), [key("clone"), key("other")]);
        assert_eq!(jobs(&naming, "clone"), [] as [&JobKey; 0]);
        assert_eq!(naming.all().collect::<Vec<_>>(), [(&key("other"), &job("b"))]);
    }

    #[test]
    fn jobs_of_two_kinds_and_one_name_are_two_jobs() {
        let (batch, set) = kinds();
        let mut naming = Naming::default();
        naming.note(&JobKey::new(&batch, &key("a")), Some(key("clone")));
        naming.note(&JobKey::new(&set, &key("a")), Some(key("clone")));
        naming.note(&JobKey::new(&batch, &key("a")), None);
        assert_eq!(jobs(&naming, "clone"), [&JobKey::new(&set, &key("a"))]);
    }
}
