//! Which jobs on a worker name which clone.
//!
//! One does, unless somebody made another by hand. Of several the first by name stands for all; when it is gone the next
//! does, so that none is passed over when they are removed.

use std::collections::{BTreeMap, BTreeSet};

use runtime::watch::Key;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Naming {
    jobs: BTreeMap<Key, BTreeSet<Key>>,
    clones: BTreeMap<Key, Key>,
}

impl Naming {
    /// A job names this clone, or is gone. The clones that are concerned.
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

    /// The job of a clone.
    pub(super) fn job_of(&self, clone: &Key) -> Option<&Key> {
        self.jobs.get(clone)?.first()
    }

    /// Clones that are named, each with every job that does.
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
    fn of_several_jobs_that_name_a_clone_each_gets_its_turn() {
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
