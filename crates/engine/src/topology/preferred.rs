//! Machines that pods would rather stand on: a score per domain, which comes before how full the domain is.
//!
//! A machine scores the weights of all preferred terms that it matches, a domain the sum of its machines, whether they have
//! room or not; those whose taints or labels keep the pods away score nothing, and so does every leaf that is not a machine.
//! The pods are those of the workers: what a leader would prefer does not count. Source: spec/kueue-core.md §4.11, gate
//! TASRespectNodeAffinityPreferred. Cost: leaves times terms, once per search of pods that prefer something.

use crate::flavors::matching::Requirement;
use crate::ids::DomainId;
use crate::topology::HostSpec;
use crate::topology::count::{Ask, Rooms};
use crate::topology::topologies::Topologies;
use crate::topology::tree::Tree;

/// The only field of a node that terms may name.
const NAME: &str = "metadata.name";

/// What pods prefer of a node, and how much.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreferredTerm {
    /// Counts for a node that meets all of the following.
    pub weight: i32,
    /// `matchExpressions`: what its labels must be.
    pub labels: Vec<Requirement>,
    /// `matchFields`: what its name must be.
    pub fields: Vec<Requirement>,
}

impl PreferredTerm {
    /// Whether a machine is preferred. A term that asks for nothing prefers nothing.
    fn matches(&self, host: &HostSpec) -> bool {
        let field = |key: &str| (key == NAME).then_some(&*host.name);
        let asks = !self.labels.is_empty() || !self.fields.is_empty();
        asks && self.labels.iter().all(|one| one.matches(&host.labels))
            && self.fields.iter().all(|one| one.admits(field(&one.key)))
    }
}

/// Scores of all domains of a tree; none if they are all the same to the pods.
#[derive(Debug, Default)]
pub(super) struct Scores(Vec<i64>);

impl Scores {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Whether domains differ at all.
    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn of(&self, domain: DomainId) -> i64 {
        self.0.get(domain.index()).copied().unwrap_or_default()
    }
}

/// Scores what was just counted. Kept out of the searches of those who prefer nothing.
#[inline(never)]
pub(super) fn score(topologies: &Topologies, tree: &Tree, ask: &Ask<'_>, rooms: &mut Rooms) {
    if ask.workers.preferred.is_empty() || !tree.leaves_are_machines() {
        return;
    }
    let scores = &mut rooms.scores.0;
    scores.resize(tree.size(), 0);
    for leaf in tree.leaves() {
        scores[leaf.index()] = of_machine(topologies, tree, ask, leaf);
    }
    for level in (0..tree.lowest()).rev() {
        for domain in tree.level(level) {
            scores[domain.index()] = tree.children(domain).map(|one| scores[one.index()]).sum();
        }
    }
}

fn of_machine(topologies: &Topologies, tree: &Tree, ask: &Ask<'_>, leaf: DomainId) -> i64 {
    let Some(host) = tree.host(leaf).and_then(|id| topologies.host(id)) else {
        return 0;
    };
    let selection = &ask.workers.selection;
    let tainted = selection.untolerated(&host.taints, ask.tolerations).is_some();
    if tainted || !selection.matches_node(&host.labels) {
        return 0;
    }
    let terms = ask.workers.preferred.iter();
    terms.filter(|term| term.matches(host)).map(|term| i64::from(term.weight)).sum()
}
