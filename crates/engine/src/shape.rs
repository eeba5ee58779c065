//! Shapes: what Workloads ask for, each kept once however many Workloads ask for the same.
//!
//! Two Workloads of one shape get the same verdict in the same situation, so one verdict parks both. A shape is its pod
//! sets and the priority. Source: spec/kueue-core.md §3.5.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::ShapeId;
use crate::spec::PodSetSpec;

/// What a Workload asks for, and how urgently.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Effective priority.
    pub(crate) priority: i64,
    /// Pod sets.
    pub(crate) pod_sets: Vec<PodSetSpec>,
}

/// The table of shapes, counted references.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    ids: HashMap<Arc<Shape>, ShapeId>,
    table: Vec<(Arc<Shape>, u32)>,
    free: Vec<ShapeId>,
}

impl Shapes {
    /// The id of a shape, with one more reference to it.
    pub(crate) fn acquire(&mut self, shape: Shape) -> ShapeId {
        if let Some(&id) = self.ids.get(&shape) {
            self.table[id.index()].1 += 1;
            return id;
        }
        let shape = Arc::new(shape);
        let id = match self.free.pop() {
            Some(id) => {
                self.table[id.index()] = (Arc::clone(&shape), 1);
                id
            }
            None => {
                self.table.push((Arc::clone(&shape), 1));
                ShapeId::from(self.table.len() - 1)
            }
        };
        self.ids.insert(shape, id);
        id
    }

    /// One more reference to a known shape.
    pub(crate) fn retain(&mut self, id: ShapeId) {
        self.table[id.index()].1 += 1;
    }

    /// One reference less; the id is free after the last.
    pub(crate) fn release(&mut self, id: ShapeId) {
        let (shape, references) = &mut self.table[id.index()];
        *references -= 1;
        if *references == 0 {
            self.ids.remove(shape);
            self.free.push(id);
        }
    }

    /// A shape. Cheap to hold on to while the tables change.
    pub(crate) fn at(&self, id: ShapeId) -> &Arc<Shape> {
        &self.table[id.index()].0
    }
}
