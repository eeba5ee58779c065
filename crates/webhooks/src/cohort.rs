//! Validation of Cohorts (docs/reference/kueue.md §1.4).

use crds::{v1beta2::Cohort, validation::Errors};

use super::{
    Validate, WebhookGates,
    resource_groups::{self, QuotaOwner},
};

impl Validate for Cohort {
    fn validate(&self, _: Option<&Self>, _: &WebhookGates) -> Errors {
        let spec = &self.spec;
        let owner = QuotaOwner {
            parent: "parent",
            has_parent: !spec.parent_name.is_empty(),
            // A Cohort lends the quota of its children as well, so the limit may exceed its own
            // quota (docs/reference/kueue.md §1.4).
            lends_what_it_has: false,
        };
        let mut errors = resource_groups::check_fair_sharing(spec.fair_sharing.as_ref());
        errors.extend(resource_groups::check(&spec.resource_groups, owner));
        errors
    }
}
