//! Names, columns and versions of the kinds of `workload.codeflare.dev`.

use crds::crd::{Column, Conversion, Definition, VersionDefinition, structural_schema};
use serde_json::json;

use crate::v1beta2::{AppWrapperSpec, AppWrapperStatus};

const fn column(name: &'static str, r#type: &'static str, path: &'static str) -> Column {
    Column { name, r#type, path, priority: 0 }
}

const APP_WRAPPER: &[Column] = &[
    column("Status", "string", ".status.phase"),
    column("Quota Reserved", "string", r#".status.conditions[?(@.type=="QuotaReserved")].status"#),
    column(
        "Resources Deployed",
        "string",
        r#".status.conditions[?(@.type=="ResourcesDeployed")].status"#,
    ),
    column("Unhealthy", "string", r#".status.conditions[?(@.type=="Unhealthy")].status"#),
    column("Age", "date", ".metadata.creationTimestamp"),
];

/// All kinds of `workload.codeflare.dev`.
#[must_use]
pub fn all() -> Vec<Definition> {
    let schema = json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema::<AppWrapperSpec>(),
            "status": structural_schema::<AppWrapperStatus>(),
        },
    });
    let version = VersionDefinition {
        name: "v1beta2",
        storage: true,
        deprecated: false,
        deprecation_warning: None,
        status: true,
        columns: APP_WRAPPER,
        selectable: &[],
        schema,
    };
    vec![Definition {
        group: "workload.codeflare.dev",
        kind: "AppWrapper",
        plural: "appwrappers",
        singular: "appwrapper",
        short_names: &["aw"],
        categories: &[],
        namespaced: true,
        conversion: Conversion::None,
        versions: vec![version],
    }]
}
