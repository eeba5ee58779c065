//! Equivalence classes of Workloads, each kept once. Kueue: scheduling equivalence hash.
//!
//! Workloads of one class get the same result in the same situation, so one refusal makes all of them inadmissible. A
//! class consists of the pod sets, the priority, the allowed flavors and the replaced slice. Source:
//! docs/reference/kueue.md §3.5.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::dense_table::DenseTable;
use crate::ids::{EquivalenceClassId, FlavorId};
use crate::spec::PodSetSpec;

/// What a Workload requests, and its priority.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EquivalenceClass {
    /// Effective priority.
    pub(crate) priority: i64,
    /// Pod sets.
    pub(crate) pod_sets: Vec<PodSetSpec>,
    /// The slice that it replaces: the result depends on that slice's admission.
    pub(crate) replaced_slice: Option<Box<str>>,
    /// It is a slice of an elastic job, which may not ask for every topology (gate ElasticJobsViaWorkloadSlicesWithTAS).
    pub(crate) elastic_topology: bool,
    /// The only flavors that its pods may get; `None` for all.
    pub(crate) allowed: Option<Box<[FlavorId]>>,
}

impl EquivalenceClass {
    /// Whether `other` requests the same, apart from finished pods.
    pub(crate) fn is_same_but_for_finished_pods(&self, other: &Self) -> bool {
        let counted = |pod_set: &PodSetSpec| PodSetSpec {
            count: pod_set.count + pod_set.reclaimed,
            reclaimed: 0,
            ..pod_set.clone()
        };
        let pod_sets = |class: &Self| class.pod_sets.iter().map(counted).collect::<Vec<_>>();
        let others = |class: &Self| (class.priority, class.elastic_topology);
        others(self) == others(other)
            && (&self.replaced_slice, &self.allowed) == (&other.replaced_slice, &other.allowed)
            && pod_sets(self) == pod_sets(other)
    }
}

/// The table of equivalence classes, with reference counts.
#[derive(Debug, Default)]
pub(crate) struct EquivalenceClasses {
    ids: HashMap<Arc<EquivalenceClass>, EquivalenceClassId>,
    table: DenseTable<EquivalenceClassId, (Arc<EquivalenceClass>, u32)>,
    free: Vec<EquivalenceClassId>,
    /// Changes since a what-if began, newest last.
    log: Option<Vec<ClassChange>>,
}

/// One change of the table, with what its undo needs.
#[derive(Debug)]
enum ClassChange {
    /// One more reference.
    Referred(EquivalenceClassId),
    /// A class at the end of the table.
    Appended,
    /// A class in a free row, and the row's former class.
    Reused(EquivalenceClassId, Arc<EquivalenceClass>),
    /// One reference less.
    Released(EquivalenceClassId),
}

impl EquivalenceClasses {
    /// Adds a reference to a class, which is inserted if it is new.
    pub(crate) fn acquire(&mut self, class: EquivalenceClass) -> EquivalenceClassId {
        if let Some(&id) = self.ids.get(&class) {
            self.retain(id);
            return id;
        }
        let class = Arc::new(class);
        let id = match self.free.pop() {
            Some(id) => {
                let row = (Arc::clone(&class), 1);
                let (old, _) = std::mem::replace(&mut self.table[id], row);
                self.note(ClassChange::Reused(id, old));
                id
            }
            None => {
                self.note(ClassChange::Appended);
                self.table.push((Arc::clone(&class), 1))
            }
        };
        self.ids.insert(class, id);
        id
    }

    /// Adds a reference to a known class.
    pub(crate) fn retain(&mut self, id: EquivalenceClassId) {
        self.table[id].1 += 1;
        self.note(ClassChange::Referred(id));
    }

    /// Removes a reference. After the last one the id is free.
    pub(crate) fn release(&mut self, id: EquivalenceClassId) {
        let (class, references) = &mut self.table[id];
        *references -= 1;
        // The class stays in its row until the row is reused, so that a what-if can restore it.
        if *references == 0 {
            self.ids.remove(class);
            self.free.push(id);
        }
        self.note(ClassChange::Released(id));
    }

    #[inline]
    fn note(&mut self, change: ClassChange) {
        if let Some(log) = &mut self.log {
            log.push(change);
        }
    }

    /// Starts to record changes for a what-if.
    pub(crate) fn begin(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Restores ids and references from before the what-if.
    pub(crate) fn undo(&mut self) {
        for change in self.log.take().unwrap_or_default().into_iter().rev() {
            match change {
                ClassChange::Referred(id) => self.table[id].1 -= 1,
                ClassChange::Appended => {
                    if let Some((class, _)) = self.table.pop() {
                        self.ids.remove(&class);
                    }
                }
                ClassChange::Reused(id, old) => {
                    let (new, _) = std::mem::replace(&mut self.table[id], (old, 0));
                    self.ids.remove(&new);
                    self.free.push(id);
                }
                ClassChange::Released(id) => self.undo_release(id),
            }
        }
    }

    fn undo_release(&mut self, id: EquivalenceClassId) {
        let (class, references) = &mut self.table[id];
        *references += 1;
        if *references == 1 {
            self.ids.insert(Arc::clone(class), id);
            self.free.pop();
        }
    }

    /// A class. Cloning the `Arc` keeps it while the table changes.
    pub(crate) fn at(&self, id: EquivalenceClassId) -> &Arc<EquivalenceClass> {
        &self.table[id].0
    }
}

/// Indices of the pod sets that are grouped with `first` and get the same flavors, in order.
pub(crate) fn members(class: &EquivalenceClass, first: usize) -> SmallVec<[usize; 2]> {
    let group = class.pod_sets[first].group();
    if group.is_none() {
        return SmallVec::from_slice(&[first]);
    }
    let all = class.pod_sets.iter().enumerate();
    all.filter(|(_, one)| one.group() == group).map(|(index, _)| index).collect()
}

/// The worker pod set of a group: the larger one, of equal ones the first. `count` is the number of pods of a pod set.
pub(crate) fn worker_pod_set(group: &[usize], count: impl Fn(usize) -> i64) -> Option<usize> {
    group.iter().copied().rev().max_by_key(|&at| count(at))
}

/// Whether Workloads of a class may get a flavor.
pub(crate) fn allows(class: &EquivalenceClass, flavor: FlavorId) -> bool {
    class.allowed.as_ref().is_none_or(|allowed| allowed.contains(&flavor))
}
