//! Why leaves took nobody, tallied while they are counted and put into words only when a placement fails.

use crate::ids::ResourceId;
use crate::names::Names;
use crate::node_selection::Taint;

/// Why one leaf took nobody.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exclusion<'a> {
    Taint(&'a Taint),
    Selector,
    Affinity,
    /// A replacement must stand elsewhere.
    OtherDomain,
    /// Too little of this is free.
    Scarce(ResourceId),
}

/// Why pods may not stand at a leaf, whatever is free there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Its taint is not tolerated.
    Taint(Taint),
    /// The pods' node selector excludes it.
    Selector,
    /// Their required node affinity does.
    Affinity,
}

/// How many leaves took nobody, by reason.
#[derive(Debug, Default)]
pub(super) struct Tally {
    taints: Vec<(Taint, usize)>,
    selector: usize,
    affinity: usize,
    other_domain: usize,
    scarce: Vec<(ResourceId, usize)>,
}

impl Tally {
    pub(super) fn clear(&mut self) {
        self.taints.clear();
        self.scarce.clear();
        (self.selector, self.affinity, self.other_domain) = (0, 0, 0);
    }

    pub(super) fn add(&mut self, exclusion: Exclusion<'_>) {
        match exclusion {
            Exclusion::Selector => self.selector += 1,
            Exclusion::Affinity => self.affinity += 1,
            Exclusion::OtherDomain => self.other_domain += 1,
            Exclusion::Taint(taint) => match self.taints.iter_mut().find(|(one, _)| one == taint) {
                Some((_, leaves)) => *leaves += 1,
                None => self.taints.push((taint.clone(), 1)),
            },
            Exclusion::Scarce(id) => match self.scarce.iter_mut().find(|(one, _)| *one == id) {
                Some((_, leaves)) => *leaves += 1,
                None => self.scarce.push((id, 1)),
            },
        }
    }

    /// How many leaves may take nobody, by reason.
    pub(super) fn unfit(&self) -> Vec<(Unfit, usize)> {
        let tainted = self.taints.iter();
        let tainted = tainted.map(|(taint, leaves)| (Unfit::Taint(taint.clone()), *leaves));
        let asked = [(Unfit::Selector, self.selector), (Unfit::Affinity, self.affinity)];
        tainted.chain(asked.into_iter().filter(|(_, leaves)| *leaves > 0)).collect()
    }

    /// Words and how many leaves they are about, sorted by words.
    pub(super) fn in_words(&self, names: &Names) -> Vec<(String, usize)> {
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
