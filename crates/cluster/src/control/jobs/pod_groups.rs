//! Which pods make up which group. A group is known by its namespace and name, which is also the key of its Workload.

mod group_pauses;

use ::jobs::{JobGates, JobObject};
use runtime::watch::Key;

use self::group_pauses::GroupPauses;
use crate::control::{
    context::Context, job_key::JobKey, key_map::KeyMap, key_set::KeySet, timers::Reevaluation,
};

/// The pods of each group.
#[derive(Debug, Default)]
pub(super) struct PodGroups {
    members: KeyMap<Key, KeySet<JobKey>>,
    pauses: GroupPauses,
}

impl PodGroups {
    /// The group that a job is a member of.
    pub(super) fn of(key: &JobKey, job: &JobObject, gates: JobGates) -> Option<Key> {
        let group = job.as_pod()?.group(gates);
        (!group.name.is_empty()).then(|| key.in_namespace(group.name))
    }

    pub(super) fn join(&mut self, group: Key, pod: &JobKey) {
        self.members.entry(group).or_default().insert(pod.clone());
    }

    /// Removes a member. Returns whether it was the last one.
    pub(super) fn leave(&mut self, group: &Key, pod: &JobKey) -> bool {
        self.members.remove_member(group, pod)
    }

    pub(super) fn members(&self, group: &Key) -> impl Iterator<Item = &JobKey> {
        self.members.get(group).into_iter().flatten()
    }

    /// Pauses a large group that was evaluated lately, and evaluates it afterwards. Returns whether it is not evaluated now.
    pub(super) fn pause_if_large(&mut self, group: &Key, ctx: &mut Context) -> bool {
        let until = self.pauses.rests_until(group, ctx.now);
        match until {
            Some(until) => ctx.agenda.at(until, Reevaluation::PodGroup(group.clone())),
            None => {
                let members = self.members.get(group).map_or(0, KeySet::len);
                self.pauses.evaluated(group, members, ctx.now);
            }
        }
        until.is_some()
    }

    pub(super) fn contains(&self, group: &Key) -> bool {
        self.members.contains_key(group)
    }
}
