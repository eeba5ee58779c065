//! Cross-field rules of the CRDs, in CEL.
//!
//! Source: docs/reference/kueue.md §1, docs/reference/multikueue.md §1. The messages are part of the API.

use crate::schema::Rule;

/// Shorthand for a table of rules.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $(($message:expr, $rule:expr $(,)?)),+;)*) => {$(
        $(#[$doc])*
        pub(crate) const $name: &[Rule] = &[$(Rule { rule: $rule, message: $message }),+];
    )*};
}

/// CEL for "a condition is true"; a list of conditions that is unset has none.
macro_rules! is_true {
    ($object:literal, $condition:literal) => {
        concat!(
            "(has(",
            $object,
            ".status) && has(",
            $object,
            ".status.conditions) && ",
            $object,
            ".status.conditions.exists(c, c.type == '",
            $condition,
            "' && c.status == 'True'))"
        )
    };
}

/// CEL for "if the condition was and stays true, the field is immutable".
macro_rules! frozen_while {
    ($condition:literal, $field:literal) => {
        concat!(
            "!(",
            is_true!("oldSelf", $condition),
            " && ",
            is_true!("self", $condition),
            ") || ",
            "(has(oldSelf.spec.",
            $field,
            ") == has(self.spec.",
            $field,
            ") && ",
            "(!has(self.spec.",
            $field,
            ") || self.spec.",
            $field,
            " == oldSelf.spec.",
            $field,
            "))"
        )
    };
}

macro_rules! unless_reserved {
    ($rule:literal) => {
        concat!("!", is_true!("oldSelf", "QuotaReserved"), " || ", $rule)
    };
}

const ASSIGNMENTS_MATCH: Rule = Rule {
    message: "podSetAssignments must have the same number of podSets as the spec",
    rule: concat!(
        "!(",
        is_true!("self", "QuotaReserved"),
        " && has(self.status.admission)) || ",
        "size(self.spec.podSets) == size(self.status.admission.podSetAssignments)"
    ),
};
const QUEUE_FROZEN: Rule = Rule {
    message: "queueName is immutable while workload quota reserved",
    rule: frozen_while!("QuotaReserved", "queueName"),
};
const EXECUTION_TIME_FROZEN: Rule = Rule {
    message: "maximumExecutionTimeSeconds is immutable while workload quota reserved",
    rule: frozen_while!("Admitted", "maximumExecutionTimeSeconds"),
};
const CLASS_REF_FROZEN: &str = "priorityClassRef is immutable while workload quota reserved";

/// On the whole Workload, v1beta2.
pub(crate) const WORKLOAD: &[Rule] = &[
    ASSIGNMENTS_MATCH,
    Rule {
        message: CLASS_REF_FROZEN,
        rule: unless_reserved!(
            "has(oldSelf.spec.priorityClassRef) == has(self.spec.priorityClassRef)"
        ),
    },
    Rule {
        message: "priorityClassRef.group is immutable while workload quota reserved",
        rule: unless_reserved!(
            "!has(oldSelf.spec.priorityClassRef) || !has(self.spec.priorityClassRef) || oldSelf.spec.priorityClassRef.group == self.spec.priorityClassRef.group"
        ),
    },
    Rule {
        message: "priorityClassRef.kind is immutable while workload quota reserved",
        rule: unless_reserved!(
            "!has(oldSelf.spec.priorityClassRef) || !has(self.spec.priorityClassRef) || oldSelf.spec.priorityClassRef.kind == self.spec.priorityClassRef.kind"
        ),
    },
    Rule {
        message: "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved",
        rule: unless_reserved!(
            "!has(oldSelf.spec.priorityClassRef) || !has(self.spec.priorityClassRef) || self.spec.priorityClassRef.group != 'scheduling.k8s.io' || oldSelf.spec.priorityClassRef.name == self.spec.priorityClassRef.name"
        ),
    },
    QUEUE_FROZEN,
    EXECUTION_TIME_FROZEN,
];

/// On the whole Workload, v1beta1.
pub(crate) const WORKLOAD_V1BETA1: &[Rule] = &[
    ASSIGNMENTS_MATCH,
    Rule {
        message: "priorityClassSource is immutable while workload quota reserved",
        rule: unless_reserved!(
            "!has(oldSelf.spec.priorityClassSource) || !has(self.spec.priorityClassSource) || oldSelf.spec.priorityClassSource == self.spec.priorityClassSource"
        ),
    },
    Rule {
        message: "priorityClassName is immutable while workload quota reserved and priorityClassSource is not equal to kueue.x-k8s.io/workloadpriorityclass",
        rule: unless_reserved!(
            "!has(self.spec.priorityClassSource) || self.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' || !has(oldSelf.spec.priorityClassName) || !has(self.spec.priorityClassName) || oldSelf.spec.priorityClassName == self.spec.priorityClassName"
        ),
    },
    QUEUE_FROZEN,
    EXECUTION_TIME_FROZEN,
];

rules! {
    /// On a Workload's spec, v1beta2.
    WORKLOAD_SPEC = ("priority should not be nil when priorityClassRef is set", "!has(self.priorityClassRef) || has(self.priority)");
    /// On a Workload's spec, v1beta1.
    WORKLOAD_SPEC_V1BETA1 = ("priority should not be nil when priorityClassName is set", "!has(self.priorityClassName) || has(self.priority)");
    /// On a pod set.
    POD_SET = ("minCount should be positive and less or equal to count", "!has(self.minCount) || self.minCount <= self.count");
    /// On a reference to a priority class.
    PRIORITY_CLASS_REF =
        ("only the PriorityClass kind is allowed for the scheduling.k8s.io group", "self.group != 'scheduling.k8s.io' || self.kind == 'PriorityClass'"),
        ("only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group", "self.group != 'kueue.x-k8s.io' || self.kind == 'WorkloadPriorityClass'");
    /// On a Workload's status.
    WORKLOAD_STATUS =
        ("clusterName is immutable once set", "!has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName"),
        ("clusterName and nominatedClusterNames are mutually exclusive", "!has(self.clusterName) || !has(self.nominatedClusterNames) || size(self.nominatedClusterNames) == 0");
    /// On a topology assignment.
    TOPOLOGY_ASSIGNMENT = (
        "valuesPerLevel must have the same length as the number of levels in this TopologyAssignment",
        "self.slices.all(s, size(s.valuesPerLevel) == size(self.levels))",
    );
    /// On a slice of a topology assignment.
    TOPOLOGY_SLICE =
        ("podCounts.individual must have length equal to domainCount", "!has(self.podCounts.individual) || size(self.podCounts.individual) == self.domainCount"),
        (
            "valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this TopologyAssignmentSlice",
            "self.valuesPerLevel.all(v, !has(v.individual) || size(v.individual.roots) == self.domainCount)",
        );
    /// Rules for the two encodings of per-domain numbers and values.
    UNIVERSAL_OR_INDIVIDUAL = (
        "exactly one of the fields in [universal individual] must be set",
        "has(self.universal) != has(self.individual)",
    );
    /// On the tolerations of a flavor or of a check.
    TOLERATIONS =
        ("operator must be Exists when 'key' is empty, which means 'match all values and all keys'", "self.all(t, has(t.key) || t.operator == 'Exists')"),
        ("effect must be 'NoExecute' when 'tolerationSeconds' is set", "self.all(t, !has(t.tolerationSeconds) || t.effect == 'NoExecute')"),
        ("supported toleration values: 'Equal'(default), 'Exists'", "self.all(t, !has(t.operator) || t.operator in ['Equal', 'Exists'])"),
        ("a value must be empty when 'operator' is 'Exists'", "self.all(t, !(has(t.operator) && t.operator == 'Exists' && has(t.value)))"),
        ("supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'", "self.all(t, !has(t.effect) || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])");
    /// On the taints of a flavor.
    TAINTS = ("supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'", "self.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])");
    /// On a ResourceFlavor's spec.
    RESOURCE_FLAVOR =
        ("at least one nodeLabel is required when topology is set", "!has(self.topologyName) || size(self.nodeLabels) > 0"),
        ("topologyName is immutable when topologyName is set", "!has(oldSelf.topologyName) || (has(self.topologyName) && self.topologyName == oldSelf.topologyName)");
    /// On a ClusterQueue's spec, v1beta2.
    CLUSTER_QUEUE = (
        "borrowingLimit must be nil when cohort is empty",
        "has(self.cohortName) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))",
    );
    /// On a ClusterQueue's spec, v1beta1.
    CLUSTER_QUEUE_V1BETA1 = (
        "borrowingLimit must be nil when cohort is empty",
        "has(self.cohort) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))",
    );
    /// On the preemption of a ClusterQueue.
    PREEMPTION = (
        "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
        "!(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) && self.borrowWithinCohort.policy != 'Never')",
    );
    /// On the fungibility of a ClusterQueue.
    FUNGIBILITY = (
        "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
        "!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')",
    );
    /// On a resource group.
    RESOURCE_GROUP = (
        "flavors must have the same number of resources as the coveredResources",
        "self.flavors.all(f, size(f.resources) == size(self.coveredResources))",
    );
    /// Rules for immutable fields.
    IMMUTABLE = ("field is immutable", "self == oldSelf");
    /// On the source of a MultiKueueCluster.
    CLUSTER_SOURCE = (
        "exactly one of the fields in [kubeConfig clusterProfileRef] must be set",
        "has(self.kubeConfig) != has(self.clusterProfileRef)",
    );
    /// On the clusters of a MultiKueueConfig, which v1beta1 keeps as a set.
    UNIQUE_CLUSTERS = ("must be unique", "self.all(a, self.exists_one(b, a == b))");
    /// On the disconnection of a DispatchPolicy.
    DISCONNECTION = (
        "fencing is for execution ExactlyOnce",
        "!has(self.fencing) || self.execution == 'ExactlyOnce'",
    ), (
        "leaseDuration is for execution ExactlyOnce",
        "!has(self.leaseDuration) || self.execution == 'ExactlyOnce'",
    );
    /// On the levels of a Topology, v1beta2.
    LEVELS =
        ("must be unique", UNIQUE_LEVELS),
        ("the kubernetes.io/hostname label can only be used at the lowest level of topology", HOSTNAME_IS_LAST),
        (
            "levels are mutable only when kubernetes.io/hostname is the lowest level both before and after the change",
            "self == oldSelf || (self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname' && oldSelf[size(oldSelf) - 1].nodeLabel == 'kubernetes.io/hostname')",
        );
    /// On the levels of a Topology, v1beta1.
    LEVELS_V1BETA1 =
        ("field is immutable", "self == oldSelf"),
        ("must be unique", UNIQUE_LEVELS),
        ("the kubernetes.io/hostname label can only be used at the lowest level of topology", HOSTNAME_IS_LAST);
}

const UNIQUE_LEVELS: &str = "self.all(a, size(self.filter(b, b.nodeLabel == a.nodeLabel)) == 1)";
const HOSTNAME_IS_LAST: &str = "size(self) < 2 || !self.exists(l, l.nodeLabel == 'kubernetes.io/hostname') || self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'";
