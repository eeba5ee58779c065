//! Names, columns and versions of every kind.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::{Column, Conversion, Definition, VersionDefinition, structural};
use crate::{rules, schema::Rule, v1alpha1, v1beta1, v1beta2};

const KUEUE: &str = "kueue.x-k8s.io";
const SLUICE: &str = "sluice.dev";

/// The warning of `v1beta1`.
const OLD_VERSION: &str = "This version is deprecated. Use v1beta2 instead.";

const fn column(name: &'static str, r#type: &'static str, path: &'static str) -> Column {
    Column { name, r#type, path, priority: 0 }
}

const fn wide(name: &'static str, r#type: &'static str, path: &'static str) -> Column {
    Column { name, r#type, path, priority: 1 }
}

const AGE: Column = column("Age", "date", ".metadata.creationTimestamp");

const WORKLOAD: &[Column] = &[
    column("Queue", "string", ".spec.queueName"),
    column("Reserved in", "string", ".status.admission.clusterQueue"),
    column("Admitted", "string", ".status.conditions[?(@.type=='Admitted')].status"),
    column("Finished", "string", ".status.conditions[?(@.type=='Finished')].status"),
    AGE,
];
const CLUSTER_QUEUE: &[Column] = &[
    column("Cohort", "string", ".spec.cohortName"),
    wide("Strategy", "string", ".spec.queueingStrategy"),
    column("Pending Workloads", "integer", ".status.pendingWorkloads"),
    wide("Admitted Workloads", "integer", ".status.admittedWorkloads"),
];
const CLUSTER_QUEUE_V1BETA1: &[Column] = &[
    column("Cohort", "string", ".spec.cohort"),
    wide("Strategy", "string", ".spec.queueingStrategy"),
    column("Pending Workloads", "integer", ".status.pendingWorkloads"),
    wide("Admitted Workloads", "integer", ".status.admittedWorkloads"),
];
const LOCAL_QUEUE: &[Column] = &[
    column("ClusterQueue", "string", ".spec.clusterQueue"),
    column("Pending Workloads", "integer", ".status.pendingWorkloads"),
    column("Admitted Workloads", "integer", ".status.admittedWorkloads"),
];
const MULTI_KUEUE_CLUSTER: &[Column] =
    &[column("Connected", "string", ".status.conditions[?(@.type=='Active')].status"), AGE];
const PRIORITY_CLASS: &[Column] = &[column("Value", "integer", ".value")];
const CAPACITY: &[Column] = &[
    column("Mode", "string", ".status.mode"),
    column("Pending", "integer", ".status.pending.own"),
    column("Running", "integer", ".status.running.own"),
    column("Reported", "date", ".status.reportedAt"),
    AGE,
];
const POLICY: &[Column] = &[column("Strategy", "string", ".spec.strategy"), AGE];

/// All kinds of Kueue and Sluice.
#[must_use]
pub fn all() -> Vec<Definition> {
    let mut all = queues();
    all.extend(cluster_objects());
    all.extend(multi_kueue());
    all.extend(ours());
    all
}

fn queues() -> Vec<Definition> {
    vec![workload(), cluster_queue(), local_queue(), cohort()]
}

fn workload() -> Definition {
    Definition {
        namespaced: true,
        short_names: &["kwl", "kueueworkload", "kueueworkloads"],
        conversion: Conversion::Webhook,
        ..kueue(
            "Workload",
            "workloads",
            [
                VersionDefinition {
                    columns: WORKLOAD,
                    ..old::<v1beta1::WorkloadSpec>()
                        .status::<v1beta1::WorkloadStatus>()
                        .rules(rules::WORKLOAD_V1BETA1)
                },
                VersionDefinition {
                    columns: WORKLOAD,
                    selectable: &[".status.admission.clusterQueue"],
                    ..new::<v1beta2::WorkloadSpec>()
                        .status::<v1beta2::WorkloadStatus>()
                        .rules(rules::WORKLOAD)
                },
            ],
        )
    }
}

fn cluster_queue() -> Definition {
    Definition {
        short_names: &["cq"],
        conversion: Conversion::Webhook,
        ..kueue(
            "ClusterQueue",
            "clusterqueues",
            [
                VersionDefinition {
                    columns: CLUSTER_QUEUE_V1BETA1,
                    ..old::<v1beta1::ClusterQueueSpec>().status::<v1beta1::ClusterQueueStatus>()
                },
                VersionDefinition {
                    columns: CLUSTER_QUEUE,
                    ..new::<v1beta2::ClusterQueueSpec>().status::<v1beta2::ClusterQueueStatus>()
                },
            ],
        )
    }
}

fn local_queue() -> Definition {
    Definition {
        namespaced: true,
        short_names: &["queue", "queues", "lq"],
        conversion: Conversion::Webhook,
        ..kueue(
            "LocalQueue",
            "localqueues",
            [
                VersionDefinition {
                    columns: LOCAL_QUEUE,
                    ..old::<v1beta1::LocalQueueSpec>().status::<v1beta1::LocalQueueStatus>()
                },
                VersionDefinition {
                    columns: LOCAL_QUEUE,
                    ..new::<v1beta2::LocalQueueSpec>().status::<v1beta2::LocalQueueStatus>()
                },
            ],
        )
    }
}

fn cohort() -> Definition {
    Definition {
        short_names: &["co"],
        conversion: Conversion::Webhook,
        ..kueue(
            "Cohort",
            "cohorts",
            [
                old::<v1beta1::CohortSpec>().status::<v1beta1::CohortStatus>(),
                new::<v1beta2::CohortSpec>().status::<v1beta2::CohortStatus>(),
            ],
        )
    }
}

fn cluster_objects() -> Vec<Definition> {
    vec![
        admission_check(),
        resource_flavor(),
        topology(),
        provisioning_request_config(),
        workload_priority_class(),
    ]
}

fn admission_check() -> Definition {
    Definition {
        short_names: &["ac"],
        ..kueue(
            "AdmissionCheck",
            "admissionchecks",
            [
                old::<v1beta1::AdmissionCheckSpec>().status::<v1beta1::AdmissionCheckStatus>(),
                new::<v1beta2::AdmissionCheckSpec>().status::<v1beta2::AdmissionCheckStatus>(),
            ],
        )
    }
}

fn resource_flavor() -> Definition {
    Definition {
        short_names: &["flavor", "flavors", "rf"],
        ..kueue(
            "ResourceFlavor",
            "resourceflavors",
            [old::<v1beta1::ResourceFlavorSpec>(), new::<v1beta2::ResourceFlavorSpec>()],
        )
    }
}

fn topology() -> Definition {
    Definition {
        short_names: &["topo"],
        ..kueue(
            "Topology",
            "topologies",
            [old::<v1beta1::TopologySpec>(), new::<v1beta2::TopologySpec>()],
        )
    }
}

fn provisioning_request_config() -> Definition {
    Definition {
        short_names: &["prc"],
        ..kueue(
            "ProvisioningRequestConfig",
            "provisioningrequestconfigs",
            [
                old::<v1beta1::ProvisioningRequestConfigSpec>(),
                new::<v1beta2::ProvisioningRequestConfigSpec>(),
            ],
        )
    }
}

fn workload_priority_class() -> Definition {
    Definition {
        short_names: &["wpc"],
        ..kueue(
            "WorkloadPriorityClass",
            "workloadpriorityclasses",
            [
                VersionDefinition {
                    columns: PRIORITY_CLASS,
                    deprecated: true,
                    deprecation_warning: Some(OLD_VERSION),
                    ..priority_class("v1beta1", json!({"type": "string"}))
                },
                VersionDefinition {
                    columns: PRIORITY_CLASS,
                    storage: true,
                    ..priority_class("v1beta2", json!({"type": "string", "maxLength": 2048}))
                },
            ],
        )
    }
}

fn multi_kueue() -> Vec<Definition> {
    vec![
        Definition {
            short_names: &["mkc"],
            conversion: Conversion::Webhook,
            ..kueue(
                "MultiKueueCluster",
                "multikueueclusters",
                [
                    VersionDefinition {
                        columns: MULTI_KUEUE_CLUSTER,
                        ..old::<v1beta1::MultiKueueClusterSpec>()
                            .status::<v1beta1::MultiKueueClusterStatus>()
                    },
                    VersionDefinition {
                        columns: MULTI_KUEUE_CLUSTER,
                        ..new::<v1beta2::MultiKueueClusterSpec>()
                            .status::<v1beta2::MultiKueueClusterStatus>()
                    },
                ],
            )
        },
        Definition {
            short_names: &["mkconf"],
            ..kueue(
                "MultiKueueConfig",
                "multikueueconfigs",
                [
                    // The one old version that Kueue does not mark as deprecated.
                    VersionDefinition {
                        deprecated: false,
                        deprecation_warning: None,
                        ..old::<v1beta1::MultiKueueConfigSpec>()
                    },
                    new::<v1beta2::MultiKueueConfigSpec>(),
                ],
            )
        },
    ]
}

fn ours() -> Vec<Definition> {
    let define = |kind, plural, version| Definition {
        group: SLUICE,
        versions: vec![version],
        ..kueue(kind, plural, [])
    };
    vec![
        Definition {
            short_names: &["ccap"],
            singular: "clustercapacity",
            ..define(
                "ClusterCapacity",
                "clustercapacities",
                VersionDefinition {
                    name: "v1alpha1",
                    columns: CAPACITY,
                    ..new::<v1alpha1::ClusterCapacitySpec>()
                        .status::<v1alpha1::ClusterCapacityStatus>()
                },
            )
        },
        Definition {
            short_names: &["dpol"],
            singular: "dispatchpolicy",
            ..define(
                "DispatchPolicy",
                "dispatchpolicies",
                VersionDefinition {
                    name: "v1alpha1",
                    columns: POLICY,
                    ..new::<v1alpha1::DispatchPolicySpec>()
                },
            )
        },
    ]
}

fn kueue<const N: usize>(
    kind: &'static str,
    plural: &'static str,
    versions: [VersionDefinition; N],
) -> Definition {
    Definition {
        group: KUEUE,
        kind,
        plural,
        singular: singular(kind),
        short_names: &[],
        categories: &[],
        namespaced: false,
        conversion: Conversion::None,
        versions: versions.into(),
    }
}

/// Kueue's singular names are the kinds in lower case.
fn singular(kind: &str) -> &'static str {
    const NAMES: [&str; 11] = [
        "workload",
        "clusterqueue",
        "localqueue",
        "cohort",
        "admissioncheck",
        "resourceflavor",
        "topology",
        "provisioningrequestconfig",
        "workloadpriorityclass",
        "multikueuecluster",
        "multikueueconfig",
    ];
    NAMES.into_iter().find(|name| kind.eq_ignore_ascii_case(name)).unwrap_or_default()
}

fn old<Spec: JsonSchema>() -> VersionDefinition {
    VersionDefinition {
        name: "v1beta1",
        storage: false,
        deprecated: true,
        deprecation_warning: Some(OLD_VERSION),
        ..new::<Spec>()
    }
}

fn new<Spec: JsonSchema>() -> VersionDefinition {
    let mut schema = object();
    schema["properties"]["spec"] = structural::of::<Spec>();
    VersionDefinition {
        name: "v1beta2",
        storage: true,
        deprecated: false,
        deprecation_warning: None,
        status: false,
        columns: &[],
        selectable: &[],
        schema,
    }
}

/// A WorkloadPriorityClass has its fields at the top.
fn priority_class(name: &'static str, description: Value) -> VersionDefinition {
    let mut schema = object();
    schema["properties"]["description"] = description;
    schema["properties"]["value"] = json!({"type": "integer", "format": "int32"});
    schema["required"] = json!(["value"]);
    VersionDefinition {
        name,
        storage: false,
        deprecated: false,
        deprecation_warning: None,
        status: false,
        columns: &[],
        selectable: &[],
        schema,
    }
}

fn object() -> Value {
    json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
        },
    })
}

impl VersionDefinition {
    fn status<Status: JsonSchema>(mut self) -> Self {
        self.schema["properties"]["status"] = structural::of::<Status>();
        self.status = true;
        self
    }

    fn rules(mut self, rules: &[Rule]) -> Self {
        self.schema["x-kubernetes-validations"] = json!(rules);
        self
    }
}
