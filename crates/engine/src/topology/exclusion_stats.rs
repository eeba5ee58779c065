//! Statistics of leaves excluded from a search, by reason. Collected while leaves are counted; formatted only when
//! a search fails.

use crate::ids::ResourceId;
use crate::names::Names;
use crate::node_selection::NodeTaint;

/// Reason why no pod fits on a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeafExclusion<'a> {
    Taint(&'a NodeTaint),
    Selector,
    Affinity,
    /// The leaf is outside the domain required for a replacement.
    OtherDomain,
    /// Too little of this resource is free.
    Resource(ResourceId),
}

/// Reason why pods cannot run on a node, whatever its free capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMismatch {
    /// The taint is not tolerated.
    Taint(NodeTaint),
    /// The pods' node selector does not match.
    Selector,
    /// The pods' required node affinity does not match.
    Affinity,
}

/// Number of excluded leaves by reason.
#[derive(Debug, Default)]
pub(super) struct ExclusionStats {
    taints: Vec<(NodeTaint, usize)>,
    selector: usize,
    affinity: usize,
    other_domain: usize,
    resources: Vec<(ResourceId, usize)>,
}

impl ExclusionStats {
    pub(super) fn clear(&mut self) {
        self.taints.clear();
        self.resources.clear();
        (self.selector, self.affinity, self.other_domain) = (0, 0, 0);
    }

    pub(super) fn add(&mut self, exclusion: LeafExclusion<'_>) {
        match exclusion {
            LeafExclusion::Selector => self.selector += 1,
            LeafExclusion::Affinity => self.affinity += 1,
            LeafExclusion::OtherDomain => self.other_domain += 1,
            LeafExclusion::Taint(taint) => {
                match self.taints.iter_mut().find(|(one, _)| one == taint) {
                    Some((_, leaves)) => *leaves += 1,
                    None => self.taints.push((taint.clone(), 1)),
                }
            }
            LeafExclusion::Resource(id) => {
                match self.resources.iter_mut().find(|(one, _)| *one == id) {
                    Some((_, leaves)) => *leaves += 1,
                    None => self.resources.push((id, 1)),
                }
            }
        }
    }

    /// Leaves whose nodes do not match the pods, by reason.
    pub(super) fn mismatches(&self) -> Vec<(NodeMismatch, usize)> {
        let tainted = self.taints.iter();
        let tainted = tainted.map(|(taint, leaves)| (NodeMismatch::Taint(taint.clone()), *leaves));
        let unmatched =
            [(NodeMismatch::Selector, self.selector), (NodeMismatch::Affinity, self.affinity)];
        // Reasons without leaves are left out of the message.
        tainted.chain(unmatched.into_iter().filter(|(_, leaves)| *leaves > 0)).collect()
    }

    /// Text and number of leaves per reason, sorted by text.
    pub(super) fn messages(&self, names: &Names) -> Vec<(String, usize)> {
        let simple = [
            ("nodeSelector", self.selector),
            ("affinity", self.affinity),
            ("topologyDomain", self.other_domain),
        ];
        let simple = simple.into_iter().filter(|(_, leaves)| *leaves > 0);
        let mut words: Vec<(String, usize)> =
            simple.map(|(word, leaves)| (word.to_owned(), leaves)).collect();
        words.extend(
            self.taints
                .iter()
                .map(|(taint, leaves)| (format!("taint {:?}", taint.to_string()), *leaves)),
        );
        words.extend(self.resources.iter().map(|&(resource, leaves)| {
            (format!("resource {:?}", names.resources.name(resource)), leaves)
        }));
        words.sort();
        words
    }
}
