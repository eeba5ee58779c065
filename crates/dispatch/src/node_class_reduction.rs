//! Node classes of a large cluster in few classes. Source: docs/reference/dispatch.md §2.
//!
//! Nodes with equal labels and taints share a class that offers, of each resource, what the poorest of them has. So whatever is packed onto
//! the reported nodes can be packed onto the real ones, node by node: the report never overstates. What it hides is kept small: all
//! nodes begin in one class per labels and taints, and the split that shows most is made until the limit is reached. Resources
//! count by weight, each in shares of what is free of it, so that accelerators are shown first.
//!
//! Cost: sorting the nodes by each resource, once per level of splits: O(n log n) for any number of unlike nodes.

use std::collections::{BTreeMap, HashMap};

use engine::{Amount, ids::ResourceId, node_selection::NodeTaint};

use crate::NodeClassCapacity;

/// What nodes of one class must have in common.
type Properties<'a> = (&'a [(Box<str>, Box<str>)], &'a [NodeTaint]);

/// Joins equal classes, in the order of their first one.
#[must_use]
pub fn join_equal_classes(
    classes: impl IntoIterator<Item = NodeClassCapacity>,
) -> Vec<NodeClassCapacity> {
    let mut joined: Vec<NodeClassCapacity> = Vec::new();
    let mut known: HashMap<NodeClassCapacity, usize> = HashMap::new();
    for class in classes {
        let count = class.count;
        let shape = NodeClassCapacity { count: 0, ..class };
        if let Some(one) = known.get(&shape).and_then(|&at| joined.get_mut(at)) {
            one.count += count;
            continue;
        }
        known.insert(shape.clone(), joined.len());
        joined.push(NodeClassCapacity { count, ..shape });
    }
    joined
}

/// At most `most` classes that offer as much of `classes` as possible, and never more. `weight` says how much a resource counts.
#[must_use]
pub fn reduce_classes(
    classes: Vec<NodeClassCapacity>,
    most: usize,
    weight: impl Fn(ResourceId) -> u32,
) -> Vec<NodeClassCapacity> {
    if classes.len() <= most {
        return classes;
    }
    let table = NodeRows::new(&classes, weight);
    let mut parts = table.parts_by_properties(&classes);
    // With more kinds of nodes than classes, those stay that have most to offer.
    parts.sort_by(|left, right| table.value(&right.rows).total_cmp(&table.value(&left.rows)));
    parts.truncate(most);
    while parts.len() < most {
        let gains = parts.iter().enumerate().filter_map(|(at, part)| {
            let split = part.split.as_ref()?;
            Some((at, split.gain))
        });
        let Some((at, _)) = gains.max_by(|(_, left), (_, right)| left.total_cmp(right)) else {
            break;
        };
        let part = parts.swap_remove(at);
        parts.extend(table.split(part));
    }
    parts.iter().filter_map(|part| poorest(&classes, &part.rows)).collect()
}

/// Free amounts of every class as rows.
struct NodeRows {
    /// Per class: its count, and the free amount of each resource.
    rows: Vec<(f64, Vec<f64>)>,
    /// Per resource: how much one unit counts.
    units: Vec<f64>,
}

/// Rows that share a class.
struct Part {
    rows: Vec<usize>,
    split: Option<Split>,
}

/// The best split of a part: rows in order, the first `at` of which form one part, and what it shows more.
struct Split {
    rows: Vec<usize>,
    at: usize,
    gain: f64,
}

impl NodeRows {
    fn new(classes: &[NodeClassCapacity], weight: impl Fn(ResourceId) -> u32) -> Self {
        let all = classes.iter().flat_map(|class| class.free.iter().map(|(resource, _)| *resource));
        let mut columns: Vec<ResourceId> = all.collect();
        columns.sort_unstable();
        columns.dedup();
        let amount = |class: &NodeClassCapacity, resource: ResourceId| -> f64 {
            let found = class.free.iter().find(|(one, _)| *one == resource);
            found.map_or(0.0, |(_, amount)| approximate(amount.clip().0))
        };
        let row = |class: &NodeClassCapacity| {
            let free = columns.iter().map(|&resource| amount(class, resource)).collect();
            (approximate(class.count), free)
        };
        let rows: Vec<(f64, Vec<f64>)> = classes.iter().map(row).collect();
        let units = columns.iter().enumerate().map(|(column, &resource)| {
            let total: f64 = rows.iter().map(|(count, free)| count * free[column]).sum();
            if total > 0.0 { f64::from(weight(resource)) / total } else { 0.0 }
        });
        Self { units: units.collect(), rows }
    }

    fn parts_by_properties(&self, classes: &[NodeClassCapacity]) -> Vec<Part> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut known: HashMap<Properties<'_>, usize> = HashMap::new();
        for (at, class) in classes.iter().enumerate() {
            let next = known.len();
            let group = *known.entry((&class.labels, &class.taints)).or_insert(next);
            groups.entry(group).or_default().push(at);
        }
        groups.into_values().map(|rows| self.part(rows)).collect()
    }

    fn part(&self, rows: Vec<usize>) -> Part {
        let split = self.best_split(&rows);
        Part { rows, split }
    }

    fn split(&self, part: Part) -> Vec<Part> {
        let Some(Split { mut rows, at, .. }) = part.split else {
            return vec![part];
        };
        let rest = rows.split_off(at);
        vec![self.part(rows), self.part(rest)]
    }

    /// What rows offer if nothing is hidden.
    fn value(&self, rows: &[usize]) -> f64 {
        let of = |&row: &usize| {
            let (count, free) = &self.rows[row];
            let amounts = free.iter().zip(&self.units).map(|(free, unit)| free * unit);
            count * amounts.sum::<f64>()
        };
        rows.iter().map(of).sum()
    }

    /// The split of rows, in the order of any resource, that shows most; `None` if none shows more.
    fn best_split(&self, rows: &[usize]) -> Option<Split> {
        let whole = self.visible_shares(rows).last().copied()?;
        let mut best: Option<Split> = None;
        for column in 0..self.units.len() {
            let mut sorted = rows.to_vec();
            sorted.sort_by(|&left, &right| {
                self.rows[left].1[column].total_cmp(&self.rows[right].1[column])
            });
            let lower = self.visible_shares(&sorted);
            let reversed: Vec<usize> = sorted.iter().rev().copied().collect();
            let upper = self.visible_shares(&reversed);
            let gains = (1..sorted.len())
                .map(|at| (at, lower[at - 1] + upper[sorted.len() - at - 1] - whole));
            let found = gains.max_by(|(_, left), (_, right)| left.total_cmp(right));
            if let Some((at, gain)) = found
                && gain > best.as_ref().map_or(0.0, |split| split.gain)
            {
                best = Some(Split { rows: sorted, at, gain });
            }
        }
        best
    }

    /// Per number of first rows: what they offer as one class.
    fn visible_shares(&self, rows: &[usize]) -> Vec<f64> {
        let mut least = vec![f64::INFINITY; self.units.len()];
        let mut nodes = 0.0;
        let first = rows.iter().map(|&row| {
            let (count, free) = &self.rows[row];
            nodes += count;
            least.iter_mut().zip(free).for_each(|(least, free)| *least = least.min(*free));
            nodes * least.iter().zip(&self.units).map(|(least, unit)| least * unit).sum::<f64>()
        });
        first.collect()
    }
}

/// The class that offers what every one of the rows has.
fn poorest(classes: &[NodeClassCapacity], rows: &[usize]) -> Option<NodeClassCapacity> {
    let mut rows = rows.iter().filter_map(|&row| classes.get(row));
    let mut joined = rows.next()?.clone();
    for class in rows {
        joined.count += class.count;
        keep_least(&mut joined.free, &class.free);
        keep_least(&mut joined.size, &class.size);
    }
    Some(joined)
}

/// Keeps the smaller amount of each resource, and none that either lacks.
fn keep_least(all: &mut Vec<(ResourceId, Amount)>, other: &[(ResourceId, Amount)]) {
    all.retain_mut(|(resource, amount)| {
        let found = other.iter().find(|(one, _)| one == resource);
        found.is_some_and(|(_, less)| {
            *amount = (*amount).min(*less);
            true
        })
    });
}

/// An amount for comparisons only: what a class offers is never computed from it.
fn approximate(amount: i64) -> f64 {
    amount as f64
}

#[cfg(test)]
mod tests;
