//! Which jobs on a worker name which clone.
//!
//! One job does, unless a user made another one by hand. Of several, the first by name stands for all. When it is gone the
//! next one does, so removal reaches all of them.

use std::collections::{BTreeMap, BTreeSet};

use runtime::watch::Key;

/// Jobs by clone, and clones by job.
#[derive(Debug, Default)]
pub(super) struct Naming {
    jobs: BTreeMap<Key, BTreeSet<Key>>,
    clones: BTreeMap<Key, Key>,
}

impl Naming {
    /// Records that a job names this clone; `None` if the job is gone. Returns the clones that it names or named.
    pub(super) fn note(&mut self, job: &Key, clone: Option<Key>) -> Vec<Key> {
        let before = match &clone {
            Some(clone) => self.clones.insert(job.clone(), clone.clone()),
            None => self.clones.remove(job),
        };
        let before = before.filter(|before| clone.as_ref() != Some(before));
        if let Some(before) = &before
            && let Some(jobs) = self.jobs.get_mut(before)
        {
            jobs.remove(job);
            if jobs.is_empty() {
                self.jobs.remove(before);
            }
        }
        if let Some(clone) = &clone {
            self.jobs.entry(clone.clone()).or_default().insert(job.clone());
        }
        before.into_iter().chain(clone).collect()
    }

    /// The job that names a clone.
    pub(super) fn job_of(&self, clone: &Key) -> Option<&Key> {
        self.jobs.get(clone)?.first()
    }

    /// Clones that jobs name, each with every job that does.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Key)> {
        self.clones.iter().map(|(job, clone)| (clone, job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { namespace: Some("ns".into()), name: name.into() }
    }

    #[test]
    fn of_several_jobs_that_name_a_clone_the_first_by_name_counts() {
        let mut naming = Naming::default();
        assert_eq!(naming.note(&key("b"), Some(key("clone"))), [key("clone")]);
        assert_eq!(naming.note(&key("a"), Some(key("clone"))), [key("clone")]);
        assert_eq!(naming.job_of(&key("clone")), Some(&key("a")));
        assert_eq!(naming.note(&key("a"), None), [key("clone")]);
        assert_eq!(naming.job_of(&key("clone")), Some(&key("b")));
        assert_eq!(naming.note(&key("b"), Some(key("other"))), [key("clone"), key("other")]);
        assert_eq!(naming.job_of(&key("clone")), None);
        assert_eq!(naming.all().collect::<Vec<_>>(), [(&key("other"), &key("b"))]);
    }
}
