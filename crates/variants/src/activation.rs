//! Which variants compete: their `spec.active` (docs/reference/kueue.md §4.13).
//!
//! | situation | active |
//! |---|---|
//! | the parent is deactivated, or its job waits for something else | none |
//! | no variant is admitted | all |
//! | one is admitted, RetainFirstAdmission | that one |
//! | one is admitted, TryPreferredFlavors | that one, and those with better flavors up to `lastAcceptableFlavorName` |
//!
//! A variant that was deactivated for a reason of its own stays so. If all were, the parent is deactivated as well, as the Workload of a
//! job without variants would be.

use crate::{
    decide::VariantStep,
    family::{FamilyRules, Variant, VariantFamily, is_given_up, may_run, name_of, quoted},
};

/// The steps that make the variants active that compete, and the others inactive.
#[must_use]
pub fn steps(family: &VariantFamily<'_>, rules: &FamilyRules<'_>) -> Vec<VariantStep> {
    if !may_run(family.parent) {
        let because = format!("Parent Workload {} not active", quoted(family.parent));
        return family.variants.iter().filter_map(|one| deactivate(*one, &because)).collect();
    }
    if gave_up(family, rules) {
        return vec![VariantStep::DeactivateParent];
    }
    let Some(admitted) = family.admitted() else {
        let because = "no other Variant being admitted";
        return family.variants.iter().filter_map(|one| activate(*one, because)).collect();
    };
    let others =
        family.variants.iter().filter(|one| name_of(one.workload) != name_of(admitted.workload));
    others.filter_map(|one| against_admitted(*one, admitted, rules)).collect()
}

/// The step for a variant beside the admitted one.
fn against_admitted(
    one: Variant<'_>,
    admitted: Variant<'_>,
    rules: &FamilyRules<'_>,
) -> Option<VariantStep> {
    let winner = quoted(admitted.workload);
    if rules.retains_first() {
        let because = format!("RetainFirstAdmission: another Variant {winner} is admitted");
        return deactivate(one, &because);
    }
    // A flavor that the ClusterQueue has no longer is worse than all others.
    let place = |variant: Variant<'_>| variant.rank.unwrap_or(usize::MAX);
    let last = rules.last_acceptable();
    if let Some((last, _)) = last.filter(|&(_, rank)| place(one) > rank) {
        let because = format!(
            "being below lastAcceptableFlavor: \"{last}\" and another Variant admitted {winner}"
        );
        return deactivate(one, &because);
    }
    if place(one) > place(admitted) {
        let because = format!("being lower priority than admitted Variant {winner}");
        return deactivate(one, &because);
    }
    let because = match last {
        Some((last, _)) => format!(
            "being at least lastAcceptableFlavor: \"{last}\" and higher priority than admitted Variant {winner}"
        ),
        None => format!("being higher priority than admitted Variant {winner}"),
    };
    activate(one, &because)
}

/// Whether every flavor was tried, and no variant competes any more.
fn gave_up(family: &VariantFamily<'_>, rules: &FamilyRules<'_>) -> bool {
    let present = family.variants.iter().filter(|one| one.rank.is_some());
    present.clone().count() >= rules.flavors.len()
        && !family.variants.is_empty()
        && present.clone().all(|one| is_given_up(one.workload))
}

fn activate(variant: Variant<'_>, because: &str) -> Option<VariantStep> {
    let waits = !variant.workload.is_active() && !is_given_up(variant.workload);
    let note = format!("Variant Workload activated due to {because}");
    waits.then(|| VariantStep::Activate { variant: name_of(variant.workload).to_owned(), note })
}

fn deactivate(variant: Variant<'_>, because: &str) -> Option<VariantStep> {
    let note = format!("Variant Workload deactivated due to {because}");
    variant
        .workload
        .is_active()
        .then(|| VariantStep::Deactivate { variant: name_of(variant.workload).to_owned(), note })
}
