//! The tree of domains of one flavor, and the registry of all of them.
//!
//! A tree covers the usable machines that carry the flavor's labels and every level's label. Leaves are machines if the
//! lowest level is the host name, otherwise sums over machines. Usage of machines is shared by all trees that see them;
//! usage of other leaves belongs to their tree.

use std::collections::HashMap;
use std::sync::Arc;

use crate::amount::Amount;
use crate::ids::{FlavorId, HostId, ResourceId, ShapeId, TopologyId};
use crate::shape::Shapes;
use crate::spec::{FlavorSpec, PodSetAdmission, PodSetSpec};
use crate::topology::{HOSTNAME, HostSpec, Togetherness, TopologyRequest, TopologySpec};

/// Amounts by resource id.
pub(crate) type Amounts = Vec<Amount>;

/// One domain.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    /// Label values from the top level down to this one.
    pub(crate) values: Arc<[Box<str>]>,
    pub(crate) children: Vec<usize>,
    /// For leaves that are machines.
    pub(crate) host: Option<HostId>,
    /// For leaves: what there is.
    pub(crate) capacity: Amounts,
    /// For leaves that are not machines: what is used.
    used: Amounts,
}

/// The tree of one flavor.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) topology: TopologyId,
    pub(crate) levels: Vec<Box<str>>,
    pub(crate) domains: Vec<Domain>,
    /// Domains of each level, by values.
    pub(crate) by_level: Vec<Vec<usize>>,
    index: HashMap<Arc<[Box<str>]>, usize>,
}

impl Tree {
    /// Whether leaves are machines.
    pub(crate) fn by_host(&self) -> bool {
        self.levels.last().is_some_and(|level| **level == *HOSTNAME)
    }

    pub(crate) fn leaf(&self, values: &[Box<str>]) -> Option<usize> {
        self.index.get(values).copied()
    }

    fn build(
        topology: TopologyId,
        spec: &TopologySpec,
        flavor: &FlavorSpec,
        hosts: &[Option<HostSpec>],
    ) -> Self {
        let levels = spec.levels.clone();
        let by_level = vec![Vec::new(); levels.len()];
        let mut tree =
            Self { topology, levels, domains: Vec::new(), by_level, index: HashMap::new() };
        for (index, host) in hosts.iter().enumerate() {
            if let Some(host) = host
                && host.usable
                && flavor.labels.iter().all(|label| host.labels.contains(label))
            {
                tree.add_host(HostId::from(index), host);
            }
        }
        for level in 0..tree.by_level.len() {
            let domains = &tree.domains;
            tree.by_level[level].sort_by(|&a, &b| domains[a].values.cmp(&domains[b].values));
        }
        tree
    }

    fn add_host(&mut self, id: HostId, host: &HostSpec) {
        let mut values: Vec<Box<str>> = Vec::new();
        for level in &self.levels {
            let Some((_, value)) = host.labels.iter().find(|(key, _)| key == level) else {
                return;
            };
            values.push(value.clone());
        }
        let mut parent = None;
        for level in 0..values.len() {
            let domain = self.domain(&values[..=level], level, parent);
            parent = Some(domain);
        }
        let by_host = self.by_host();
        let Some(leaf) = parent else { return };
        let leaf = &mut self.domains[leaf];
        leaf.host = by_host.then_some(id);
        for &(resource, amount) in &host.allocatable {
            add(&mut leaf.capacity, resource, amount);
        }
        for &(resource, amount) in &host.foreign {
            add(&mut leaf.capacity, resource, Amount(-amount.0));
        }
    }

    fn domain(&mut self, values: &[Box<str>], level: usize, parent: Option<usize>) -> usize {
        if let Some(&known) = self.index.get(values) {
            return known;
        }
        let values: Arc<[Box<str>]> = values.into();
        let new = self.domains.len();
        self.domains.push(Domain {
            values: Arc::clone(&values),
            children: Vec::new(),
            host: None,
            capacity: Amounts::new(),
            used: Amounts::new(),
        });
        self.index.insert(values, new);
        self.by_level[level].push(new);
        if let Some(parent) = parent {
            self.domains[parent].children.push(new);
        }
        new
    }
}

fn add(amounts: &mut Amounts, resource: ResourceId, amount: Amount) {
    if amounts.len() <= resource.index() {
        amounts.resize(resource.index() + 1, Amount::ZERO);
    }
    amounts[resource.index()].0 = amounts[resource.index()].0.saturating_add(amount.0);
}

/// Whether a flavor can serve a topology request at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fitness {
    Suits,
    NoTopology,
    NoLevel,
    TopologyOnly,
}

/// All topologies, machines and trees.
#[derive(Debug, Default, Clone)]
pub(crate) struct Topologies {
    specs: Vec<Option<TopologySpec>>,
    hosts: Vec<Option<HostSpec>>,
    trees: Vec<Option<Tree>>,
    host_used: Vec<Amounts>,
    /// Trees must be built anew.
    pub(crate) stale: bool,
}

impl Topologies {
    pub(crate) fn set_topology(&mut self, id: TopologyId, spec: Option<TopologySpec>) {
        if self.specs.len() <= id.index() {
            self.specs.resize_with(id.index() + 1, || None);
        }
        self.specs[id.index()] = spec;
        self.stale = true;
    }

    pub(crate) fn set_host(&mut self, id: HostId, spec: Option<HostSpec>) {
        if self.hosts.len() <= id.index() {
            self.hosts.resize_with(id.index() + 1, || None);
        }
        self.hosts[id.index()] = spec;
        self.stale = true;
    }

    /// Whether anything was ever said of topologies or machines.
    pub(crate) fn matter(&self) -> bool {
        !self.specs.is_empty() || !self.hosts.is_empty() || self.stale
    }

    pub(crate) fn exists(&self, id: TopologyId) -> bool {
        self.specs.get(id.index()).is_some_and(Option::is_some)
    }

    pub(crate) fn host(&self, id: HostId) -> Option<&HostSpec> {
        self.hosts.get(id.index()).and_then(Option::as_ref)
    }

    pub(crate) fn tree(&self, flavor: FlavorId) -> Option<&Tree> {
        self.trees.get(flavor.index()).and_then(Option::as_ref)
    }

    /// Whether any flavor has a tree.
    pub(crate) fn any(&self) -> bool {
        self.trees.iter().any(Option::is_some)
    }

    /// Builds all trees, empty.
    pub(crate) fn build(&mut self, flavors: &[Option<FlavorSpec>]) {
        self.stale = false;
        self.host_used = vec![Amounts::new(); self.hosts.len()];
        let specs = &self.specs;
        let trees = flavors.iter().map(|flavor| {
            let flavor = flavor.as_ref()?;
            let topology = flavor.topology?;
            let spec = specs.get(topology.index())?.as_ref()?;
            Some(Tree::build(topology, spec, flavor, &self.hosts))
        });
        self.trees = trees.collect();
    }

    pub(crate) fn fitness(
        &self,
        request: Option<&TopologyRequest>,
        topology: Option<TopologyId>,
        implied: bool,
    ) -> Fitness {
        let levels = topology.and_then(|id| self.specs.get(id.index())).and_then(Option::as_ref);
        let (request, spec) = match (request, levels) {
            (None, Some(_)) if !implied => return Fitness::TopologyOnly,
            (None, _) => return Fitness::Suits,
            (Some(_), None) => return Fitness::NoTopology,
            (Some(request), Some(spec)) => (request, spec),
        };
        let known = |level: &str| spec.levels.iter().any(|one| **one == *level);
        let whole = match &request.together {
            Some(Togetherness::Required(level) | Togetherness::Preferred(level)) => known(level),
            Some(Togetherness::Unconstrained) | None => true,
        };
        let slice = request.slice.as_ref().is_none_or(|(level, _)| known(level));
        if whole && slice { Fitness::Suits } else { Fitness::NoLevel }
    }

    /// What is used of a leaf.
    pub(crate) fn used(&self, tree: &Tree, leaf: usize, resource: ResourceId) -> Amount {
        let amounts = match tree.domains[leaf].host {
            Some(host) => self.host_used.get(host.index()),
            None => Some(&tree.domains[leaf].used),
        };
        amounts.and_then(|all| all.get(resource.index())).copied().unwrap_or_default()
    }

    /// Charges the placements of a Workload.
    pub(crate) fn place(&mut self, pod_sets: &[PodSetAdmission], shape: &ShapeId, shapes: &Shapes) {
        self.charge_all(pod_sets, *shape, shapes, 1);
    }

    /// Takes back what [`Topologies::place`] charged.
    pub(crate) fn free(&mut self, pod_sets: &[PodSetAdmission], shape: &ShapeId, shapes: &Shapes) {
        self.charge_all(pod_sets, *shape, shapes, -1);
    }

    fn charge_all(&mut self, all: &[PodSetAdmission], shape: ShapeId, shapes: &Shapes, sign: i64) {
        if self.trees.is_empty() || all.iter().all(|one| one.domains.is_empty()) {
            return;
        }
        let shape = Arc::clone(shapes.at(shape));
        for (one, spec) in all.iter().zip(&shape.pod_sets) {
            let flavors = one.resources.iter().map(|(_, flavor, _)| *flavor);
            let flavor = flavors.into_iter().find(|&flavor| self.tree(flavor).is_some());
            let Some(flavor) = flavor else { continue };
            for domain in &one.domains {
                self.charge(flavor, &domain.values, spec, domain.count * sign);
            }
        }
    }

    /// Charges `count` pods of a pod set to a leaf; a leaf that is gone is nobody's.
    pub(crate) fn charge(
        &mut self,
        flavor: FlavorId,
        values: &[Box<str>],
        spec: &PodSetSpec,
        count: i64,
    ) {
        let Some(tree) = self.trees.get_mut(flavor.index()).and_then(Option::as_mut) else {
            return;
        };
        let Some(leaf) = tree.leaf(values) else {
            return;
        };
        let used = match tree.domains[leaf].host {
            Some(host) => &mut self.host_used[host.index()],
            None => &mut tree.domains[leaf].used,
        };
        for &(resource, amount) in &spec.requests {
            add(used, resource, amount.times(count));
        }
        add(used, crate::state::PODS, Amount(count));
    }
}
