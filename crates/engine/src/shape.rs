//! Shapes: what Workloads ask for, each kept once however many Workloads ask for the same.
//!
//! Two Workloads of one shape get the same verdict in the same situation, so one verdict parks both. A shape is its pod
//! sets, the priority, the flavors it is allowed, and whose place it takes. Source: docs/reference/kueue.md §3.5.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::{FlavorId, ShapeId};
use crate::spec::PodSetSpec;

/// What a Workload asks for, and how urgently.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Effective priority.
    pub(crate) priority: i64,
    /// Pod sets.
    pub(crate) pod_sets: Vec<PodSetSpec>,
    /// The Workload whose place it takes: what there is for it depends on what that one has.
    pub(crate) replaces: Option<Box<str>>,
    /// The only flavors that its pods may get.
    pub(crate) allowed: Option<Box<[FlavorId]>>,
}

impl Shape {
    /// Whether `other` asks for the same, apart from pods that have finished.
    pub(crate) fn is_same_but_for_finished_pods(&self, other: &Self) -> bool {
        let counted = |one: &PodSetSpec| PodSetSpec {
            count: one.count + one.reclaimed,
            reclaimed: 0,
            ..one.clone()
        };
        let pod_sets = |shape: &Self| shape.pod_sets.iter().map(counted).collect::<Vec<_>>();
        (self.priority, &self.replaces, &self.allowed)
            == (other.priority, &other.replaces, &other.allowed)
            && pod_sets(self) == pod_sets(other)
    }
}

/// The table of shapes, counted references.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    ids: HashMap<Arc<Shape>, ShapeId>,
    table: Vec<(Arc<Shape>, u32)>,
    free: Vec<ShapeId>,
    /// What was done since a what-if began, newest last.
    log: Option<Vec<Deed>>,
}

/// One change of the table, as far as it takes to undo it.
#[derive(Debug)]
enum Deed {
    /// One more reference.
    Referred(ShapeId),
    /// A shape at the end of the table.
    Appended,
    /// A shape in a place that was free; what was there before.
    Reused(ShapeId, Arc<Shape>),
    /// One reference less.
    Released(ShapeId),
}

impl Shapes {
    /// The id of a shape, with one more reference to it.
    pub(crate) fn acquire(&mut self, shape: Shape) -> ShapeId {
        if let Some(&id) = self.ids.get(&shape) {
            self.retain(id);
            return id;
        }
        let shape = Arc::new(shape);
        let id = match self.free.pop() {
            Some(id) => {
                let row = (Arc::clone(&shape), 1);
                let (old, _) = std::mem::replace(&mut self.table[id.index()], row);
                self.note(Deed::Reused(id, old));
                id
            }
            None => {
                self.table.push((Arc::clone(&shape), 1));
                self.note(Deed::Appended);
                ShapeId::from(self.table.len() - 1)
            }
        };
        self.ids.insert(shape, id);
        id
    }

    /// One more reference to a known shape.
    pub(crate) fn retain(&mut self, id: ShapeId) {
        self.table[id.index()].1 += 1;
        self.note(Deed::Referred(id));
    }

    /// One reference less; the id is free after the last.
    pub(crate) fn release(&mut self, id: ShapeId) {
        let (shape, references) = &mut self.table[id.index()];
        *references -= 1;
        if *references == 0 {
            self.ids.remove(shape);
            self.free.push(id);
        }
        self.note(Deed::Released(id));
    }

    #[inline]
    fn note(&mut self, deed: Deed) {
        if let Some(log) = &mut self.log {
            log.push(deed);
        }
    }

    /// A what-if begins.
    pub(crate) fn begin(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The what-if ends: ids and references are what they were.
    pub(crate) fn undo(&mut self) {
        for deed in self.log.take().unwrap_or_default().into_iter().rev() {
            match deed {
                Deed::Referred(id) => self.table[id.index()].1 -= 1,
                Deed::Appended => {
                    if let Some((shape, _)) = self.table.pop() {
                        self.ids.remove(&shape);
                    }
                }
                Deed::Reused(id, old) => {
                    let (new, _) = std::mem::replace(&mut self.table[id.index()], (old, 0));
                    self.ids.remove(&new);
                    self.free.push(id);
                }
                Deed::Released(id) => self.take_back_release(id),
            }
        }
    }

    fn take_back_release(&mut self, id: ShapeId) {
        let (shape, references) = &mut self.table[id.index()];
        *references += 1;
        if *references == 1 {
            self.ids.insert(Arc::clone(shape), id);
            self.free.pop();
        }
    }

    /// A shape. Cheap to hold on to while the tables change.
    pub(crate) fn at(&self, id: ShapeId) -> &Arc<Shape> {
        &self.table[id.index()].0
    }
}
