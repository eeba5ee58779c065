//! The frames of the sampler itself, which are no part of a profile.

use std::collections::BTreeMap;

use super::encoding::{SourceCall, StackSample};

/// The function that takes samples. Its callees belong to it.
const SAMPLER: &str = "perf_signal_handler";

/// Cuts the sampler off all stacks: by its name, or in a program without names by what all stacks begin with.
pub(super) fn cut(stacks: &mut [StackSample], calls: &BTreeMap<u64, Vec<SourceCall>>) {
    let of_sampler = |calls: &Vec<SourceCall>| calls.iter().any(|call| call.function == SAMPLER);
    let unnamed = if calls.values().any(of_sampler) { 0 } else { equal_in_all(stacks) };
    let is_sampler = |address: &u64| calls.get(address).is_some_and(of_sampler);
    for stack in stacks {
        let inside = stack.addresses.iter().rposition(is_sampler);
        // The frame after it returns from the signal.
        let cut = inside.map_or(unnamed, |last| last + 2).min(stack.addresses.len());
        stack.addresses.drain(..cut);
    }
}

/// How many of the innermost frames all stacks have in common; none if all stacks are equal, because they may be so beyond the
/// sampler.
fn equal_in_all(stacks: &[StackSample]) -> usize {
    let Some((first, others)) = stacks.split_first() else { return 0 };
    let different = others.iter().filter(|other| other.addresses != first.addresses);
    different.map(|other| n_equal(&first.addresses, &other.addresses)).min().unwrap_or(0)
}

fn n_equal(one: &[u64], other: &[u64]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(addresses: &[&[u64]]) -> Vec<StackSample> {
        let stack = |addresses: &&[u64]| StackSample {
            addresses: addresses.to_vec(),
            count: 1,
            thread: String::new(),
        };
        addresses.iter().map(stack).collect()
    }

    /// What is left of the stacks if these addresses have names.
    fn left(before: &[&[u64]], names: &[(u64, &str)]) -> Vec<Vec<u64>> {
        let call =
            |name: &str| SourceCall { function: name.to_owned(), file: String::new(), line: 0 };
        let all = before.iter().flat_map(|stack| stack.iter());
        let mut calls: BTreeMap<u64, Vec<SourceCall>> =
            all.map(|address| (*address, Vec::new())).collect();
        calls.extend(names.iter().map(|(address, name)| (*address, vec![call(name)])));
        let mut stacks = stacks(before);
        cut(&mut stacks, &calls);
        stacks.into_iter().map(|stack| stack.addresses).collect()
    }

    /// Unwinding, the handler of the signal, the return from it, and what ran.
    const TAKEN: [&[u64]; 3] = [&[1, 2, 3, 70, 80, 90], &[1, 2, 3, 71, 80, 90], &[1, 2, 3, 72, 90]];

    #[test]
    fn the_sampler_is_cut_by_its_name() {
        let left = left(&TAKEN, &[(2, SAMPLER), (70, "work")]);
        assert_eq!(left, [vec![70, 80, 90], vec![71, 80, 90], vec![72, 90]]);
    }

    #[test]
    fn without_names_the_sampler_is_what_all_stacks_begin_with() {
        assert_eq!(left(&TAKEN, &[]), [vec![70, 80, 90], vec![71, 80, 90], vec![72, 90]]);
    }

    #[test]
    fn equal_stacks_do_not_say_where_the_sampler_ends() {
        assert_eq!(left(&[TAKEN[0], TAKEN[0]], &[]), [TAKEN[0], TAKEN[0]]);
        assert_eq!(left(&TAKEN[..1], &[]), [TAKEN[0]]);
        assert_eq!(left(&[], &[]), [[0_u64; 0]; 0]);
    }
}
