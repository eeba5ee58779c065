//! Why leaves took nobody, tallied while they are counted and put into words only when a placement fails.

use crate::ids::ResourceId;
use crate::names::Names;
use crate::node_selection::Taint;

/// Why one leaf took nobody.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeafExclusion<'a> {
    Taint(&'a Taint),
    Selector,
    Affinity,
    /// A replacement must stand elsewhere.
    OtherDomain,
    /// Too little of this is free.
    Resource(ResourceId),
}

/// Why pods may not stand at a leaf, whatever is free there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMismatch {
    /// Its taint is not tolerated.
    Taint(Taint),
    /// The pods' node selector excludes it.
    Selector,
    /// Their required node affinity does.
    Affinity,
}

/// How many leaves took nobody, by reason.
#[derive(Debug, Default)]
pub(super) struct ExclusionStats {
    taints: Vec<(Taint, usize)>,
    selector: usize,
    affinity: usize,
    other_domain: usize,
    scarce: Vec<(ResourceId, usize)>,
}

impl ExclusionStats {
    pub(super) fn clear(&mut self) {
        self.taints.clear();
        self.scarce.clear();
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
            LeafExclusion::Resource(id) => match self.scarce.iter_mut().find(|(one, _)| *one == id)
            {
                Some((_, leaves)) => *leaves += 1,
                None => self.scarce.push((id, 1)),
            },
        }
    }

    /// How many leaves may take nobody, by reason.
    pub(super) fn mismatches(&self) -> Vec<(NodeMismatch, usize)> {
        let tainted = self.taints.iter();
        let tainted = tainted.map(|(taint, leaves)| (NodeMismatch::Taint(taint.clone()), *leaves));
        let asked =
            [(NodeMismatch::Selector, self.selector), (NodeMismatch::Affinity, self.affinity)];
        tainted.chain(asked.into_iter().filter(|(_, leaves)| *leaves > 0)).collect()
    }

    /// Words and how many leaves they are about, sorted by words.
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
        words.extend(self.scarce.iter().map(|&(resource, leaves)| {
            (format!("resource {:?}", names.resources.name(resource)), leaves)
        }));
        words.sort();
        words
    }
}
