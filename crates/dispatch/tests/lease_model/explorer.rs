//! Breadth-first exploration of every state that a model can reach.
//!
//! Visited states are kept as fingerprints, so that a run of millions of states fits into memory. A violation comes with the
//! shortest path to it, which is found by playing the actions again.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    fmt::Debug,
    hash::{DefaultHasher, Hash, Hasher},
};

/// A system with nondeterministic actions.
pub(crate) trait Model: Clone + Hash {
    type Action: Clone + Debug;

    /// Every action that may happen now.
    fn actions(&self) -> Vec<Self::Action>;

    /// The state after an action; `None` if the action changes nothing.
    fn after(&self, action: &Self::Action) -> Option<Self>;

    /// What is wrong with this state.
    fn violation(&self) -> Option<String>;

    /// What is wrong if no further fault happens from here on.
    fn violation_without_faults(&self) -> Option<String>;
}

/// What an exploration found.
#[derive(Debug)]
pub(crate) struct Exploration<A> {
    /// Number of different states.
    pub(crate) states: usize,
    /// Every state within the bounds of the model was visited.
    pub(crate) complete: bool,
    /// A violation with the actions that lead to it.
    pub(crate) counterexample: Option<(String, Vec<A>)>,
}

type Parents<A> = HashMap<u64, Option<(u64, A)>>;

/// Visits at most `limit` states. Each `sample`-th one is also played to its end without faults.
pub(crate) fn explore<M: Model>(initial: M, limit: usize, sample: usize) -> Exploration<M::Action> {
    let mut parents: Parents<M::Action> = HashMap::from([(fingerprint(&initial), None)]);
    let mut queue = VecDeque::from([initial]);
    let mut visited = 0;
    while let Some(state) = queue.pop_front() {
        let id = fingerprint(&state);
        visited += 1;
        let is_sample = visited % sample == 0;
        let ends = || is_sample.then(|| state.violation_without_faults()).flatten();
        if let Some(violation) = state.violation().or_else(ends) {
            let counterexample = Some((violation, path(&parents, id)));
            return Exploration { states: parents.len(), complete: false, counterexample };
        }
        if parents.len() >= limit {
            continue;
        }
        for action in state.actions() {
            let Some(next) = state.after(&action) else {
                continue;
            };
            if let Entry::Vacant(unknown) = parents.entry(fingerprint(&next)) {
                unknown.insert(Some((id, action)));
                queue.push_back(next);
            }
        }
    }
    let states = parents.len();
    Exploration { states, complete: states < limit, counterexample: None }
}

fn fingerprint(state: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

fn path<A: Clone>(parents: &Parents<A>, mut id: u64) -> Vec<A> {
    let mut path = Vec::new();
    while let Some(Some((parent, action))) = parents.get(&id) {
        path.push(action.clone());
        id = *parent;
    }
    path.reverse();
    path
}
