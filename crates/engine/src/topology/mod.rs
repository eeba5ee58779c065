//! Topology-aware scheduling: which machines, racks or blocks the pods of a pod set go to.
//!
//! Source: spec/kueue-core.md §4.11.

use crate::cycle::Entry;
use crate::flavors::assign::{Assignment, Attempt};
use crate::amount::Amount;
use crate::flavors::matching::Taint;
use crate::ids::{HostId, ResourceId, ShapeId, TopologyId};
use crate::shape::Shapes;
use crate::spec::PodSetAdmission;
use crate::state::State;

/// How pods must stand together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Togetherness {
    /// Within one domain of this level (a node label).
    Required(Box<str>),
    /// Within one domain of this level if possible.
    Preferred(Box<str>),
    /// Anywhere in the topology.
    Unconstrained,
}

/// What a pod set asks of a topology.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopologyRequest {
    /// For the whole pod set; absent if only slices are asked for.
    pub together: Option<Togetherness>,
    /// Slices of so many pods, each within one domain of this level.
    pub slice: Option<(Box<str>, i64)>,
    /// Pod sets with the same group stand in the same domain.
    pub group: Option<Box<str>>,
}

/// Pods in one lowest domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedDomain {
    /// Label values from the top level down.
    pub values: Vec<Box<str>>,
    /// How many pods.
    pub count: i64,
}

/// A Topology: the node labels of its levels, from the top down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologySpec {
    /// Node labels.
    pub levels: Vec<Box<str>>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// Its name.
    pub name: Box<str>,
    /// Labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Ready and schedulable.
    pub usable: bool,
    /// What it offers.
    pub allocatable: Vec<(ResourceId, Amount)>,
    /// What pods use that are none of the engine's business.
    pub foreign: Vec<(ResourceId, Amount)>,
}

/// Why pods cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyReason {
    /// How many fit.
    pub fit: i64,
}

impl TopologyReason {
    /// In upstream's words.
    pub fn in_words(&self) -> String {
        String::new()
    }
}

/// Whether a flavor can serve a topology request at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fitness {
    Suits,
    NoTopology,
    NoLevel,
    TopologyOnly,
}

/// All topologies and machines.
#[derive(Debug, Default)]
pub(crate) struct Topologies {
    specs: Vec<Option<TopologySpec>>,
    hosts: Vec<Option<HostSpec>>,
}

impl Topologies {
    pub(crate) fn set_topology(&mut self, id: TopologyId, spec: Option<TopologySpec>) {
        if self.specs.len() <= id.index() {
            self.specs.resize_with(id.index() + 1, || None);
        }
        self.specs[id.index()] = spec;
    }

    pub(crate) fn set_host(&mut self, id: HostId, spec: Option<HostSpec>) {
        if self.hosts.len() <= id.index() {
            self.hosts.resize_with(id.index() + 1, || None);
        }
        self.hosts[id.index()] = spec;
    }

    pub(crate) fn invalidate(&mut self) {}

    pub(crate) fn exists(&self, id: TopologyId) -> bool {
        self.specs.get(id.index()).is_some_and(Option::is_some)
    }

    pub(crate) fn fitness(
        &self,
        request: Option<&TopologyRequest>,
        topology: Option<TopologyId>,
        implied: bool,
    ) -> Fitness {
        let levels = topology.and_then(|id| self.specs.get(id.index())).and_then(Option::as_ref);
        match (request, levels) {
            (None, None) => Fitness::Suits,
            (None, Some(_)) => if implied { Fitness::Suits } else { Fitness::TopologyOnly },
            (Some(_), None) => Fitness::NoTopology,
            (Some(request), Some(spec)) => {
                let known = |level: &Box<str>| spec.levels.contains(level);
                let whole = match &request.together {
                    Some(Togetherness::Required(level) | Togetherness::Preferred(level)) => known(level),
                    Some(Togetherness::Unconstrained) | None => true,
                };
                let slice = request.slice.as_ref().is_none_or(|(level, _)| known(level));
                if whole && slice { Fitness::Suits } else { Fitness::NoLevel }
            }
        }
    }

    pub(crate) fn place(&mut self, _: &[PodSetAdmission], _: &ShapeId, _: &Shapes) {}

    pub(crate) fn free(&mut self, _: &[PodSetAdmission], _: &ShapeId, _: &Shapes) {}
}

pub(crate) fn assign(_: &mut State, _: &Attempt<'_>, _: &mut Assignment) {}
pub(crate) fn fits(_: &State, _: &Attempt<'_>, _: &Assignment) -> bool { true }
pub(crate) fn still_fits(_: &State, _: &Attempt<'_>, _: &Assignment) -> bool { true }
pub(crate) fn lost_its_place(_: &State, _: &Entry) -> bool { false }
pub(crate) fn assume(_: &mut State, _: &Entry) {}
pub(crate) fn forget(_: &mut State, _: &Entry) {}
