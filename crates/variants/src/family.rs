//! A parent with its variants, as they were observed.

use crds::{
    meta::is_true,
    names::{
        annotations::ALLOWED_RESOURCE_FLAVORS,
        conditions::{DEACTIVATION_TARGET, WAITING_FOR_REPLACEMENT_PODS},
    },
    v1beta2::{ConcurrentAdmissionPolicy, Workload},
};

/// The mode in which the first admission is kept.
const RETAIN_FIRST: &str = "RetainFirstAdmission";

/// What the ClusterQueue of a family says.
#[derive(Debug, Clone, Copy)]
pub struct FamilyRules<'a> {
    /// Its flavors, the best one first.
    pub flavors: &'a [String],
    /// Its policy.
    pub policy: &'a ConcurrentAdmissionPolicy,
    /// Names of Workloads are short (gate ShortWorkloadNames).
    pub short_names: bool,
}

/// One variant.
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    /// The Workload.
    pub workload: &'a Workload,
    /// The flavor that it tries.
    pub flavor: &'a str,
    /// The place of its flavor in the ClusterQueue; `None` if that has it no longer.
    pub rank: Option<usize>,
}

/// A parent with its variants.
#[derive(Debug, Clone)]
pub struct VariantFamily<'a> {
    /// The Workload of the job.
    pub parent: &'a Workload,
    /// In the order of their flavors; those without a rank last.
    pub variants: Vec<Variant<'a>>,
}

impl<'a> FamilyRules<'a> {
    /// The place of a flavor.
    #[must_use]
    pub fn rank(&self, flavor: &str) -> Option<usize> {
        self.flavors.iter().position(|one| one == flavor)
    }

    /// Whether the first admission is kept, rather than left for a better flavor.
    #[must_use]
    pub fn retains_first(&self) -> bool {
        self.policy.migration.mode == RETAIN_FIRST
    }

    /// The last flavor that a migration may lead to, with its place. One that the ClusterQueue does not have bounds nothing.
    #[must_use]
    pub fn last_acceptable(&self) -> Option<(&'a str, usize)> {
        let constraints = self.policy.migration.constraints.as_ref()?;
        let name = constraints.last_acceptable_flavor_name.as_deref()?;
        Some((name, self.rank(name)?))
    }
}

impl<'a> VariantFamily<'a> {
    /// A parent and the Workloads that it owns.
    #[must_use]
    pub fn new(
        parent: &'a Workload,
        owned: impl IntoIterator<Item = &'a Workload>,
        rules: Option<&FamilyRules<'_>>,
    ) -> Self {
        let variant = |workload: &'a Workload| {
            let flavor = flavor_of(workload);
            Variant { workload, flavor, rank: rules.and_then(|rules| rules.rank(flavor)) }
        };
        let mut variants: Vec<Variant<'a>> = owned.into_iter().map(variant).collect();
        variants.sort_by_key(|one| (one.rank.is_none(), one.rank, name_of(one.workload)));
        Self { parent, variants }
    }

    /// The admitted variant: the one that the parent runs as, else the one with the best flavor.
    #[must_use]
    pub fn admitted(&self) -> Option<Variant<'a>> {
        let admitted = || self.variants.iter().copied().filter(|one| is_admitted(one.workload));
        admitted().find(|one| self.runs_as(*one)).or_else(|| admitted().next())
    }

    /// Whether the parent has the admission of this variant.
    #[must_use]
    pub fn runs_as(&self, variant: Variant<'_>) -> bool {
        self.parent.has_quota_reservation() && admitted_flavor(self.parent) == Some(variant.flavor)
    }
}

/// The flavor of a variant: the first one that it allows.
fn flavor_of(workload: &Workload) -> &str {
    let annotations = workload.metadata.annotations.as_ref();
    let allowed = annotations.and_then(|all| all.get(ALLOWED_RESOURCE_FLAVORS));
    let first = allowed.and_then(|text| text.split(',').next());
    first.unwrap_or_default().trim()
}

/// The flavor of an admission. A ClusterQueue with variants has one resource group, so that every resource has the same.
fn admitted_flavor(workload: &Workload) -> Option<&str> {
    let sets = workload.status.admission.iter().flat_map(|one| &one.pod_set_assignments);
    sets.flat_map(|set| set.flavors.values()).next().map(String::as_str)
}

/// Whether it is admitted, with quota that it is not about to lose.
#[must_use]
pub fn is_admitted(workload: &Workload) -> bool {
    workload.runs() && workload.has_quota_reservation()
}

/// Whether variants of this parent may compete: no switch, hold or missing pod keeps its job from running.
#[must_use]
pub fn may_run(parent: &Workload) -> bool {
    let waits = is_true(&parent.status.conditions, WAITING_FOR_REPLACEMENT_PODS);
    parent.is_active() && !parent.status.is_on_hold() && (parent.has_quota_reservation() || !waits)
}

/// Whether it was deactivated for a reason of its own, such as a rejected check. It competes no more: it would fail again. The
/// eviction that names the cause follows the deactivation.
#[must_use]
pub fn is_given_up(workload: &Workload) -> bool {
    let has_cause = || {
        is_true(&workload.status.conditions, DEACTIVATION_TARGET)
            || workload.status.deactivation_with_cause().is_some()
    };
    !workload.is_active() && has_cause()
}

/// Its name.
#[must_use]
pub fn name_of(workload: &Workload) -> &str {
    workload.metadata.name.as_deref().unwrap_or_default()
}

/// How messages name it: `"namespace/name"`, in quotes.
#[must_use]
pub fn quoted(workload: &Workload) -> String {
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    format!("\"{namespace}/{}\"", name_of(workload))
}
