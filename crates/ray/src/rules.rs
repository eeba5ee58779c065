//! Cross-field rules of the CRDs, in CEL. The messages are part of the API.
//!
//! Source: docs/reference/ray.md §2, §5.

use crds::schema::Rule;

/// On `managedBy`. A value may be added or removed later, but not changed to another one.
pub(crate) const MANAGED_BY: &[Rule] = &[
    Rule { rule: "self == oldSelf", message: "the managedBy field is immutable" },
    Rule {
        rule: "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",
        message: "the managedBy field value must be either 'ray.io/kuberay-operator' or 'kueue.x-k8s.io/multikueue'",
    },
];

/// On the backend of fault tolerance.
pub(crate) const BACKEND: &[Rule] =
    &[Rule { rule: "self == oldSelf", message: "the backend field is immutable" }];

/// On the deletion strategy of a RayJob.
pub(crate) const DELETION_STRATEGY: &[Rule] = &[
    Rule {
        rule: "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
        message: "legacy policies (onSuccess/onFailure) and deletionRules cannot be used together within the same deletionStrategy",
    },
    Rule {
        rule: "(has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules)",
        message: "deletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be empty)",
    },
];

/// On the condition of a deletion rule.
pub(crate) const DELETION_CONDITION: &[Rule] = &[
    Rule {
        rule: "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
        message: "JobStatus and JobDeploymentStatus cannot be used together within the same deletion condition.",
    },
    Rule {
        rule: "has(self.jobStatus) || has(self.jobDeploymentStatus)",
        message: "the deletion condition requires either the JobStatus or the JobDeploymentStatus field.",
    },
];
