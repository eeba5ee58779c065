//! All topologies, machines and trees, and what is used of them.
//!
//! Usage of a machine is shared by all trees that see it; usage of other leaves belongs to their tree. A change of what
//! a machine offers is entered in place; a change of which machines there are, or of their labels, builds the trees anew
//! before the next cycle.

use std::sync::Arc;

use crate::amount::Amount;
use crate::equivalence_class::EquivalenceClasses;
use crate::ids::{DomainId, EquivalenceClassId, FlavorId, HostId, ResourceId, TopologyId};
use crate::spec::{FlavorSpec, PodSetAdmission, PodSetSpec};
use crate::state::PODS;
use crate::topology::find::Scratch;
use crate::topology::table::Table;
use crate::topology::tree::Tree;
use crate::topology::{HostSpec, Togetherness, TopologySpec};
use crate::workload::Admission;

/// Whether a flavor can serve a topology request at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fitness {
    Suits,
    NoTopology,
    NoLevel,
    TopologyOnly,
}

/// Where pods stand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot {
    /// On a machine, which is the same in every tree that sees it.
    Machine(HostId),
    /// At a leaf of their tree that sums up machines.
    Leaf(DomainId),
}

/// See the module.
#[derive(Debug, Default, Clone)]
pub(crate) struct Topologies {
    specs: Vec<Option<TopologySpec>>,
    hosts: Vec<Option<HostSpec>>,
    /// Machines with taints.
    tainted: Vec<bool>,
    trees: Vec<Option<Tree>>,
    /// What is used of machines.
    used: Table,
    /// Trees must be built anew.
    pub(crate) stale: bool,
    /// Buffers of searches.
    pub(super) scratch: Scratch,
}

impl Topologies {
    /// Whether anything was ever said of topologies or machines.
    pub(crate) fn matter(&self) -> bool {
        !self.specs.is_empty() || !self.hosts.is_empty() || self.stale
    }

    pub(crate) fn set_topology(&mut self, id: TopologyId, spec: Option<TopologySpec>) {
        if self.specs.len() <= id.index() {
            self.specs.resize_with(id.index() + 1, || None);
        }
        self.specs[id.index()] = spec;
        self.stale = true;
    }

    pub(crate) fn set_host(&mut self, id: HostId, spec: Option<HostSpec>) -> HostChange {
        if self.hosts.len() <= id.index() {
            self.hosts.resize_with(id.index() + 1, || None);
            self.tainted.resize(id.index() + 1, false);
        }
        self.tainted[id.index()] = spec.as_ref().is_some_and(|one| !one.taints.is_empty());
        let old = std::mem::replace(&mut self.hosts[id.index()], spec);
        match (&old, &self.hosts[id.index()]) {
            (Some(old), Some(new)) if stands_where_it_stood(old, new) => {
                for tree in self.trees.iter_mut().flatten() {
                    tree.replace_capacity(id, old, new);
                }
                change(old, new)
            }
            _ => {
                self.stale = true;
                HostChange::Machine
            }
        }
    }

    /// Whether the tree of a flavor has a machine, or sums it up.
    pub(crate) fn has_host(&self, flavor: FlavorId, host: HostId) -> bool {
        self.tree(flavor).is_some_and(|tree| tree.leaf_of_host(host).is_some())
    }

    pub(crate) fn exists(&self, id: TopologyId) -> bool {
        self.specs.get(id.index()).is_some_and(Option::is_some)
    }

    pub(super) fn is_tainted(&self, id: HostId) -> bool {
        self.tainted.get(id.index()).copied().unwrap_or_default()
    }

    pub(crate) fn host(&self, id: HostId) -> Option<&HostSpec> {
        self.hosts.get(id.index()).and_then(Option::as_ref)
    }

    /// All machines that are known.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostId, &HostSpec)> {
        let all = self.hosts.iter().enumerate();
        all.filter_map(|(index, host)| Some((HostId::from(index), host.as_ref()?)))
    }

    pub(crate) fn tree(&self, flavor: FlavorId) -> Option<&Tree> {
        self.trees.get(flavor.index()).and_then(Option::as_ref)
    }

    /// Whether any flavor has a tree.
    pub(crate) fn any(&self) -> bool {
        self.trees.iter().any(Option::is_some)
    }

    /// Builds all trees, empty, for `width` known resources.
    pub(super) fn build(&mut self, flavors: &[Option<FlavorSpec>], width: usize) {
        self.stale = false;
        self.used.reset(self.hosts.len(), width);
        let Self { specs, hosts, .. } = self;
        let trees = flavors.iter().map(|flavor| {
            let flavor = flavor.as_ref()?;
            let topology = flavor.topology?;
            let spec = specs.get(topology.index())?.as_ref()?;
            Some(Tree::build(topology, spec, flavor, hosts, width))
        });
        self.trees = trees.collect();
    }

    /// Whether a flavor suits a pod set as far as topologies go, where `covered` resources get that flavor. One without a
    /// topology may still give what is quota only, and nothing that pods take of a machine.
    pub(crate) fn fitness(
        &self,
        pod_set: &PodSetSpec,
        topology: Option<TopologyId>,
        implied: bool,
        covered: &[ResourceId],
    ) -> Fitness {
        let levels = topology.and_then(|id| self.specs.get(id.index())).and_then(Option::as_ref);
        let request = pod_set.topology.as_ref().filter(|_| pod_set.asks_for_topology());
        let (request, spec) = match (request, levels) {
            (None, Some(_)) if !implied => return Fitness::TopologyOnly,
            (None, _) => return Fitness::Suits,
            (Some(_), None) if pod_set.takes().iter().any(|one| covered.contains(&one.0)) => {
                return Fitness::NoTopology;
            }
            (Some(_), None) => return Fitness::Suits,
            (Some(request), Some(spec)) => (request, spec),
        };
        let known = |level: &str| spec.levels.iter().any(|one| **one == *level);
        let whole = match &request.together {
            Some(Togetherness::Required(level) | Togetherness::Preferred(level)) => known(level),
            Some(Togetherness::Unconstrained) | None => true,
        };
        let slices = request.slices.iter().all(|(level, _)| known(level));
        if whole && slices { Fitness::Suits } else { Fitness::NoLevel }
    }

    /// All that is used of a leaf, by resource.
    pub(super) fn used_row<'a>(&'a self, tree: &'a Tree, leaf: DomainId) -> &'a [Amount] {
        match tree.host(leaf) {
            Some(host) => self.used.row(host.index()),
            None => tree.used.row(tree.row(leaf)),
        }
    }

    /// What is used of a leaf.
    pub(crate) fn used(&self, tree: &Tree, leaf: DomainId, resource: ResourceId) -> Amount {
        self.used_row(tree, leaf).get(resource.index()).copied().unwrap_or_default()
    }

    /// Charges the places of a Workload, unless another has taken them over.
    pub(crate) fn place(
        &mut self,
        admission: &Admission,
        class: &EquivalenceClassId,
        classes: &EquivalenceClasses,
    ) {
        if !admission.taken_over {
            self.charge_all(&admission.pod_sets, *class, classes, 1);
        }
    }

    /// Takes back what [`Topologies::place`] charged.
    pub(crate) fn free(
        &mut self,
        admission: &Admission,
        class: &EquivalenceClassId,
        classes: &EquivalenceClasses,
    ) {
        if !admission.taken_over {
            self.charge_all(&admission.pod_sets, *class, classes, -1);
        }
    }

    fn charge_all(
        &mut self,
        all: &[PodSetAdmission],
        class: EquivalenceClassId,
        classes: &EquivalenceClasses,
        sign: i64,
    ) {
        if self.trees.is_empty() || all.iter().all(|one| one.domains.is_empty()) {
            return;
        }
        let class = Arc::clone(classes.at(class));
        for (one, spec) in all.iter().zip(&class.pod_sets) {
            let mut flavors = one.resources.iter().map(|(_, flavor, _)| *flavor);
            let Some(flavor) = flavors.find(|&flavor| self.tree(flavor).is_some()) else {
                continue;
            };
            for domain in &one.domains {
                self.charge(flavor, &domain.values, spec, domain.count * sign);
            }
        }
    }

    /// Where pods stand that were placed in a flavor's tree. A machine that this tree has lost may be in another one: who
    /// stands there stays. A leaf that is gone altogether is nobody's.
    pub(super) fn spot(&self, flavor: FlavorId, values: &[Box<str>]) -> Option<Spot> {
        let tree = self.tree(flavor)?;
        let spot = |tree: &Tree| {
            let leaf = tree.leaf(values)?;
            Some(tree.host(leaf).map_or(Spot::Leaf(leaf), Spot::Machine))
        };
        let found = spot(tree);
        if found.is_some() || !tree.leaves_are_machines() {
            return found;
        }
        self.trees.iter().flatten().filter(|tree| tree.leaves_are_machines()).find_map(spot)
    }

    /// Charges `count` pods of a pod set to the place where they stand.
    pub(crate) fn charge(
        &mut self,
        flavor: FlavorId,
        values: &[Box<str>],
        spec: &PodSetSpec,
        count: i64,
    ) {
        let spot = self.spot(flavor, values);
        let tree = self.trees.get_mut(flavor.index()).and_then(Option::as_mut);
        let (table, row) = match (spot, tree) {
            (Some(Spot::Machine(host)), _) => (&mut self.used, host.index()),
            (Some(Spot::Leaf(leaf)), Some(tree)) => {
                let row = tree.row(leaf);
                (&mut tree.used, row)
            }
            _ => return,
        };
        for &(resource, amount) in spec.takes() {
            table.add(row, resource, amount.times(count));
        }
        table.add(row, PODS, Amount(count));
    }
}

/// What is new about a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostChange {
    /// The machine itself: it came or went, or is another.
    Machine,
    /// Pods that are none of the engine's business left it.
    Freed,
    /// Nothing for which anybody waits.
    Nothing,
}

/// What is new about a machine that stands where it stood.
fn change(old: &HostSpec, new: &HostSpec) -> HostChange {
    if old.name != new.name || old.taints != new.taints || old.allocatable != new.allocatable {
        return HostChange::Machine;
    }
    let now = |resource| new.foreign.iter().find(|one| one.0 == resource).map(|one| one.1);
    let less = |&(resource, amount): &_| now(resource).unwrap_or_default() < amount;
    if old.foreign.iter().any(less) { HostChange::Freed } else { HostChange::Nothing }
}

/// Whether a changed machine is in the same trees, at the same leaves.
fn stands_where_it_stood(old: &HostSpec, new: &HostSpec) -> bool {
    old.usable == new.usable && old.labels == new.labels
}
