//! Selects the set of domains with the least capacity left, given the number of domains.
//!
//! Domains are visited in order. For each number of domains taken, and each remaining number of leaders and pods,
//! the first sequence that leads there is kept. Sequences that can no longer reach the given number of domains are
//! dropped.
//! Cost: domains × number of domains × different remaining requests. Source: docs/reference/kueue.md §4.11 (Kueue:
//! `selectOptimalDomainSetToFit`).

use std::cmp::Reverse;

use crate::ids::DomainId;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::CountsByDomain;

/// One step of a sequence: the domain taken last, and the step before it.
#[derive(Debug, Clone, Copy)]
struct SelectionStep {
    domain: DomainId,
    before: Option<usize>,
}

/// The request that remains after a number of domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RemainingRequest {
    leaders: i64,
    pods: i64,
    step: Option<usize>,
}

/// The selector's buffers, kept between searches.
#[derive(Debug, Default)]
pub(super) struct DomainSetSelector {
    /// Remaining requests by number of domains taken, sorted by leaders and pods.
    remaining: Vec<Vec<RemainingRequest>>,
    steps: Vec<SelectionStep>,
    added: Vec<RemainingRequest>,
}

impl DomainSetSelector {
    /// Reduces `domains` to `count` of them that hold all pods and leaders. `None` if no such set exists.
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
        self.remaining.iter_mut().for_each(Vec::clear);
        self.remaining.resize_with(self.remaining.len().max(count + 1), Vec::new);
        self.remaining[0].push(RemainingRequest { leaders, pods, step: None });
        for (at, &domain) in domains.iter().enumerate() {
            let later = domains.len() - at - 1;
            let fewest = count.saturating_sub(later).max(1);
            // Downwards, so that a domain is added to a set only once.
            for taken in (fewest..=count.min(at + 1)).rev() {
                self.take(counts, domain, taken);
            }
        }
        let complete = self.remaining[count].iter().filter(|one| one.leaders == 0 && one.pods <= 0);
        let mut step = complete.max_by_key(|one| one.pods)?.step;
        domains.clear();
        while let Some(SelectionStep { domain, before }) = step.map(|at| self.steps[at]) {
            domains.push(domain);
            step = before;
        }
        domains.reverse();
        Some(())
    }

    /// Adds `domain` as the `taken`-th domain to every sequence with one domain less.
    fn take(&mut self, counts: &CountsByDomain, domain: DomainId, taken: usize) {
        let count = counts[domain];
        let mut added = std::mem::take(&mut self.added);
        for &request in &self.remaining[taken - 1] {
            if request.leaders <= 0 && request.pods <= 0 {
                continue;
            }
            let step = Some(self.steps.len());
            let known = added.len();
            if request.leaders > 0 && count.leader > 0 {
                let leaders = request.leaders - count.leader;
                added.push(RemainingRequest {
                    leaders,
                    pods: request.pods - count.pods_with_leader,
                    step,
                });
            }
            if count.slices > 0 {
                added.push(RemainingRequest { pods: request.pods - count.pods, step, ..request });
            }
            if added.len() > known {
                self.steps.push(SelectionStep { domain, before: request.step });
            }
        }
        let remaining = &mut self.remaining[taken];
        for request in added.drain(..) {
            let key = (request.leaders, request.pods);
            // Of sets that leave the same request the first one stays.
            if let Err(at) = remaining.binary_search_by_key(&key, |one| (one.leaders, one.pods)) {
                remaining.insert(at, request);
            }
        }
        self.added = added;
    }
}

/// Sort key: leader first, then slices, then evenness of the children's counts (most even first), then number.
type EntropyKey = (Reverse<i64>, Reverse<i64>, Reverse<i128>, DomainId);

/// Sorts domains by [`EntropyKey`]. `entropy_keys` is a reused buffer.
pub(super) fn sort_by_entropy(
    tree: &DomainTree,
    counts: &CountsByDomain,
    domains: &mut Vec<DomainId>,
    entropy_keys: &mut EntropyKeys,
) {
    entropy_keys.0.extend(domains.drain(..).map(|domain| {
        let count = counts[domain];
        let evenness = entropy(tree.children(domain).map(|child| counts[child].pods));
        (Reverse(count.leader), Reverse(count.slices_with_leader), Reverse(evenness), domain)
    }));
    entropy_keys.0.sort_unstable();
    domains.extend(entropy_keys.0.drain(..).map(|entropy_keys| entropy_keys.3));
}

/// Buffer of sort keys, kept between searches.
#[derive(Debug, Default)]
pub(super) struct EntropyKeys(Vec<EntropyKey>);

/// Fractional bits of a logarithm.
const FRACTION: u32 = 32;

/// Entropy of a distribution in bits, times 2^32: log n - (sum of c log c) / n. Integers make equal distributions
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

/// log2 times 2^32 of a positive number: the integer part from its bit length, one fractional bit per squaring.
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
