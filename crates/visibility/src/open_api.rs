//! OpenAPI documents, versions 2 and 3. Each is complete: every `$ref` names a schema of the same document.

use std::hash::{DefaultHasher, Hasher};

use crds::names::VISIBILITY_GROUP;
use serde_json::{Map, Value, json};

use crate::api::VisibilityVersion;

/// Upstream's title.
const TITLE: &str = "Kueue visibility-server";

/// Where the schemas of a document are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edition {
    V2,
    V3,
}

/// The OpenAPI v2 document.
pub(crate) fn v2(program_version: &str) -> Value {
    let (paths, schemas) = VisibilityVersion::ALL.into_iter().fold(
        (Map::new(), Map::new()),
        |(mut paths, mut schemas), version| {
            paths.extend(paths_of(Edition::V2, version));
            schemas.extend(schemas_of(Edition::V2, version));
            (paths, schemas)
        },
    );
    json!({
        "swagger": "2.0", "info": {"title": TITLE, "version": program_version},
        "paths": paths, "definitions": schemas,
    })
}

/// The OpenAPI v3 document of a version.
pub(crate) fn v3(version: VisibilityVersion, program_version: &str) -> Value {
    json!({
        "openapi": "3.0.0", "info": {"title": TITLE, "version": program_version},
        "paths": paths_of(Edition::V3, version),
        "components": {"schemas": schemas_of(Edition::V3, version)},
    })
}

/// The index of OpenAPI v3 documents. A URL changes with the document, so that it can be cached for ever.
pub(crate) fn v3_index(program_version: &str) -> Value {
    let paths = VisibilityVersion::ALL.map(|version| {
        let path = format!("apis/{}", version.group_version());
        let hash = hash(v3(version, program_version).to_string().as_bytes());
        let url = format!("/openapi/v3/{path}?hash={hash}");
        (path, json!({"serverRelativeURL": url}))
    });
    json!({"paths": Map::from_iter(paths)})
}

/// Tells documents apart that one program may serve.
pub(crate) fn hash(document: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(document);
    format!("{:016X}", hasher.finish())
}

fn schema_name(version: VisibilityVersion, kind: &str) -> String {
    format!("io.k8s.sigs.kueue.apis.visibility.{}.{kind}", version.name())
}

fn reference(edition: Edition, version: VisibilityVersion, kind: &str) -> Value {
    let place = match edition {
        Edition::V2 => "#/definitions",
        Edition::V3 => "#/components/schemas",
    };
    json!({"$ref": format!("{place}/{}", schema_name(version, kind))})
}

fn schemas_of(edition: Edition, version: VisibilityVersion) -> Map<String, Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let number = |format: &str, description: &str| json!({"type": "integer", "format": format, "default": 0, "description": description});
    let refer = |kind: &str| reference(edition, version, kind);
    let owner = json!({
        "type": "object", "description": "An owner of a pending Workload.",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "name": {"type": "string"}, "uid": {"type": "string"},
        },
    });
    let metadata = json!({
        "type": "object", "description": "The fields of a Workload's metadata that are shown.",
        "properties": {
            "name": {"type": "string"}, "namespace": {"type": "string"},
            "creationTimestamp": {"type": "string", "format": "date-time"},
            "ownerReferences": {"type": "array", "items": refer("PendingWorkloadOwner")},
        },
    });
    let workload = json!({
        "type": "object", "description": "A pending Workload and its position in its queues.",
        "required": ["priority", "localQueueName", "positionInClusterQueue", "positionInLocalQueue"],
        "properties": {
            "metadata": refer("PendingWorkloadMetadata"),
            "priority": number("int32", "The priority of the Workload."),
            "localQueueName": text("The LocalQueue that the Workload was submitted to."),
            "positionInClusterQueue": number("int32", "The position in the ClusterQueue, from 0."),
            "positionInLocalQueue": number("int32", "The position in the LocalQueue, from 0."),
            "reason": text("Why the Workload is pending: the reason of its condition QuotaReserved."),
            "message": text("The message of the condition QuotaReserved."),
            "explanation": text("What the Workload lacks and what would make it admissible; of the replica that leads alone."),
        },
    });
    let summary = json!({
        "type": "object", "description": "Pending Workloads of a queue, in order.",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": refer("PendingWorkload")},
        },
        "x-kubernetes-group-version-kind": [group_version_kind(version)],
    });
    Map::from_iter([
        (schema_name(version, "PendingWorkloadOwner"), owner),
        (schema_name(version, "PendingWorkloadMetadata"), metadata),
        (schema_name(version, "PendingWorkload"), workload),
        (schema_name(version, "PendingWorkloadsSummary"), summary),
    ])
}

fn group_version_kind(version: VisibilityVersion) -> Value {
    json!({"group": VISIBILITY_GROUP, "version": version.name(), "kind": "PendingWorkloadsSummary"})
}

fn paths_of(edition: Edition, version: VisibilityVersion) -> Map<String, Value> {
    let base = format!("/apis/{}", version.group_version());
    let cluster = format!("{base}/clusterqueues/{{name}}/pendingworkloads");
    let local = format!("{base}/namespaces/{{namespace}}/localqueues/{{name}}/pendingworkloads");
    Map::from_iter([
        (cluster, path(edition, version, "ClusterQueue")),
        (local, path(edition, version, "NamespacedLocalQueue")),
    ])
}

/// The GET of a list.
fn path(edition: Edition, version: VisibilityVersion, queue: &str) -> Value {
    let parameter = |place: &str, name: &str, kind: &str, description: &str| {
        let mut parameter = json!({
            "name": name, "in": place, "description": description,
            "required": place == "path", "uniqueItems": true,
        });
        match edition {
            Edition::V2 => parameter["type"] = json!(kind),
            Edition::V3 => {
                parameter["schema"] = json!({"type": kind});
                // Version 3 has no such field beside a schema.
                if let Some(fields) = parameter.as_object_mut() {
                    fields.remove("uniqueItems");
                }
            }
        }
        parameter
    };
    let mut parameters = vec![
        parameter("path", "name", "string", "name of the queue"),
        parameter(
            "query",
            "offset",
            "integer",
            "position of the first Workload, from 0; default 0",
        ),
        parameter(
            "query",
            "limit",
            "integer",
            "the most Workloads that are returned; default 1000",
        ),
    ];
    if queue.starts_with("Namespaced") {
        parameters
            .insert(1, parameter("path", "namespace", "string", "namespace of the LocalQueue"));
    }
    let schema = reference(edition, version, "PendingWorkloadsSummary");
    let mut operation = json!({
        "description": "pending Workloads of a queue, in order",
        "operationId": format!("readVisibilityKueueXK8sIo{}{queue}Pendingworkloads", capitalised(version)),
        "tags": [format!("visibilityKueueXK8sIo_{}", version.name())],
        "parameters": parameters,
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": group_version_kind(version),
    });
    match edition {
        Edition::V2 => {
            operation["produces"] = json!(["application/json"]);
            operation["schemes"] = json!(["https"]);
            operation["responses"] = json!({"200": {"description": "OK", "schema": schema}});
        }
        Edition::V3 => {
            let content = json!({"application/json": {"schema": schema}});
            operation["responses"] = json!({"200": {"description": "OK", "content": content}});
        }
    }
    json!({"get": operation})
}

fn capitalised(version: VisibilityVersion) -> &'static str {
    match version {
        VisibilityVersion::V1beta2 => "V1beta2",
        VisibilityVersion::V1beta1 => "V1beta1",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All values of the key `name` below a value.
    fn values_of(value: &Value, name: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get(name).and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| values_of(value, name, found));
            }
            Value::Array(items) => items.iter().for_each(|item| values_of(item, name, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_names_a_schema_of_the_same_document() {
        let documents = VisibilityVersion::ALL.map(|version| v3(version, "v0"));
        for document in documents.iter().chain([&v2("v0")]) {
            let mut references = Vec::new();
            values_of(document, "$ref", &mut references);
            assert!(references.len() >= 4, "{document}");
            for reference in references {
                let pointer = reference.strip_prefix('#').expect("a pointer");
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn no_two_operations_have_the_same_id() {
        let mut ids = Vec::new();
        values_of(&v2("v0"), "operationId", &mut ids);
        assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (4, 4), "{ids:?}");
    }

    #[test]
    fn the_index_has_a_url_for_each_version_that_changes_with_the_document() {
        let url = |program: &str, version: VisibilityVersion| {
            let path = format!("apis/{}", version.group_version());
            v3_index(program)["paths"][path]["serverRelativeURL"].as_str().map(str::to_owned)
        };
        for version in VisibilityVersion::ALL {
            let one = url("v0", version).expect("a URL");
            let path = format!("/openapi/v3/apis/{}?hash=", version.group_version());
            assert!(one.starts_with(&path), "{one}");
            assert_ne!(Some(one), url("v1", version));
        }
    }
}
