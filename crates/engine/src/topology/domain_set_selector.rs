//! The fewest domains that hold everything, and of those sets the one with the least left over.
//!
//! The number of domains is given. Domains are looked at in order; for each number of domains taken, and each rest of
//! leaders and pods, the first way to get there is kept. Cost: domains × their number × different rests; ways that can no
//! longer take the given number of domains are not followed.

use std::cmp::Reverse;

use crate::ids::DomainId;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::CountsByDomain;

/// One way to get to a rest: the domain taken last, and the way before.
#[derive(Debug, Clone, Copy)]
struct SelectionStep {
    domain: DomainId,
    before: Option<usize>,
}

/// What is left after a number of domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RemainingRequest {
    leaders: i64,
    pods: i64,
    step: Option<usize>,
}

/// See the module. Kept between searches for its memory.
#[derive(Debug, Default)]
pub(super) struct DomainSetSelector {
    /// Rests by how many domains were taken, sorted by leaders and pods.
    rests: Vec<Vec<RemainingRequest>>,
    steps: Vec<SelectionStep>,
    fresh: Vec<RemainingRequest>,
}

impl DomainSetSelector {
    /// Cuts `domains` down to `count` of them that hold everything. `None` if none do.
    pub(super) fn choose(
        &mut self,
        counts: &CountsByDomain,
        domains: &mut Vec<DomainId>,
        count: i64,
        leaders: i64,
        pods: i64,
    ) -> Option<()> {
        let count = usize::try_from(count).ok()?;
        self.steps.clear();
        self.rests.iter_mut().for_each(Vec::clear);
        self.rests.resize_with(self.rests.len().max(count + 1), Vec::new);
        self.rests[0].push(RemainingRequest { leaders, pods, step: None });
        for (at, &domain) in domains.iter().enumerate() {
            let later = domains.len() - at - 1;
            let fewest = count.saturating_sub(later).max(1);
            for taken in (fewest..=count.min(at + 1)).rev() {
                self.take(counts, domain, taken);
            }
        }
        let met = self.rests[count].iter().filter(|one| one.leaders == 0 && one.pods <= 0);
        let mut step = met.max_by_key(|one| one.pods)?.step;
        domains.clear();
        while let Some(SelectionStep { domain, before }) = step.map(|at| self.steps[at]) {
            domains.push(domain);
            step = before;
        }
        domains.reverse();
        Some(())
    }

    /// Takes `domain` as the `taken`-th, after every way to take one less.
    fn take(&mut self, counts: &CountsByDomain, domain: DomainId, taken: usize) {
        let count = counts[domain];
        let mut fresh = std::mem::take(&mut self.fresh);
        for &rest in &self.rests[taken - 1] {
            if rest.leaders <= 0 && rest.pods <= 0 {
                continue;
            }
            let step = Some(self.steps.len());
            let known = fresh.len();
            if rest.leaders > 0 && count.leader > 0 {
                let leaders = rest.leaders - count.leader;
                fresh.push(RemainingRequest {
                    leaders,
                    pods: rest.pods - count.pods_with_leader,
                    step,
                });
            }
            if count.slices > 0 {
                fresh.push(RemainingRequest { pods: rest.pods - count.pods, step, ..rest });
            }
            if fresh.len() > known {
                self.steps.push(SelectionStep { domain, before: rest.step });
            }
        }
        let rests = &mut self.rests[taken];
        for rest in fresh.drain(..) {
            let key = (rest.leaders, rest.pods);
            if let Err(at) = rests.binary_search_by_key(&key, |one| (one.leaders, one.pods)) {
                rests.insert(at, rest);
            }
        }
        self.fresh = fresh;
    }
}

/// By leaders, slices, then by how evenly the children share the room, most evenly first.
type EntropyKey = (Reverse<i64>, Reverse<i64>, Reverse<i128>, DomainId);

/// See [`EntropyKey`]. `ranks` is memory to use.
pub(super) fn by_entropy(
    tree: &DomainTree,
    counts: &CountsByDomain,
    domains: &mut Vec<DomainId>,
    ranks: &mut EntropyKeys,
) {
    ranks.0.extend(domains.drain(..).map(|domain| {
        let count = counts[domain];
        let evenness = entropy(tree.children(domain).map(|child| counts[child].pods));
        (Reverse(count.leader), Reverse(count.slices_with_leader), Reverse(evenness), domain)
    }));
    ranks.0.sort_unstable();
    domains.extend(ranks.0.drain(..).map(|rank| rank.3));
}

/// EntropyKeys of domains, kept between searches for its memory.
#[derive(Debug, Default)]
pub(super) struct EntropyKeys(Vec<EntropyKey>);

/// Fractional bits of a logarithm.
const FRACTION: u32 = 32;

/// The entropy of a distribution in bits, times 2^32: log n - (sum of c log c) / n. Integers, so that equal distributions
/// have equal entropies whatever their order.
fn entropy(parts: impl Iterator<Item = i64> + Clone) -> i128 {
    let positive = parts.filter(|&part| part > 0);
    let unit = positive.clone().fold(0, divisor).max(1);
    let parts = positive.map(|part| part / unit);
    let total = parts.clone().sum::<i64>().max(1);
    let weighted: i128 = parts.map(|part| i128::from(part) * log2(part)).sum();
    log2(total) - weighted / i128::from(total)
}

/// The greatest common divisor.
fn divisor(left: i64, right: i64) -> i64 {
    if right == 0 { left } else { divisor(right, left % right) }
}

/// log2 times 2^32 of a positive number: the whole part from its length, one bit of the rest per squaring.
fn log2(number: i64) -> i128 {
    let number = number.unsigned_abs().max(1);
    let whole = number.ilog2();
    let mut mantissa = u128::from(number) << (63 - whole);
    let mut log = i128::from(whole);
    for _ in 0..FRACTION {
        mantissa = (mantissa * mantissa) >> 63;
        let carry = mantissa >> 64;
        mantissa >>= carry;
        log = 2 * log + i128::from(carry != 0);
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_distribution_has_more_entropy() {
        assert!(entropy([4, 4].into_iter()) > entropy([7, 1].into_iter()));
        assert_eq!(entropy([7, 1].into_iter()), entropy([1, 7].into_iter()));
        assert_eq!(entropy([1, 2].into_iter()), entropy([21, 42].into_iter()));
        assert_eq!(entropy([8, 8].into_iter()), 1 << FRACTION);
        assert_eq!(entropy([5].into_iter()), 0);
    }
}
