//! The samples of Ray's objects against the CRDs and the webhook.

use std::{fs, path::Path};

use ray::{definitions, webhook};
use serde_json::Value;

/// All samples, with the objects that they wrap.
fn samples() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples/ray");
    let files = fs::read_dir(folder).expect("the samples").flatten().map(|file| file.path());
    let files = files.filter(|path| !path.ends_with("kustomization.yaml"));
    let objects = files.flat_map(|path| {
        let text = fs::read_to_string(&path).expect("a file");
        let object: Value = serde_saphyr::from_str(&text).expect("YAML");
        let wrapped = object["spec"]["components"].as_array().cloned().unwrap_or_default();
        let wrapped = wrapped.into_iter().map(|component| component["template"].clone());
        wrapped.chain([object]).collect::<Vec<Value>>()
    });
    objects.filter(|object| object["apiVersion"] == "ray.io/v1").collect()
}

/// The schema of the stored version of a kind.
fn schema(kind: &str) -> Value {
    let manifests = definitions::all().into_iter().map(|definition| definition.manifest());
    let of_kind = |it: &Value| it["spec"]["names"]["kind"] == kind;
    let manifest = manifests.into_iter().find(of_kind).expect("a definition");
    let versions = manifest["spec"]["versions"].as_array().expect("versions").clone();
    let stored = versions.into_iter().find(|it| it["storage"] == true).expect("a stored version");
    stored["schema"]["openAPIV3Schema"].clone()
}

/// Fields that the API server would drop, values of another type, and required fields that are missing.
fn problems(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !fits {
        found.push(format!("{path} is no {}", schema["type"]));
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if value[required.as_str().expect("a name")].is_null() {
            found.push(format!("{path} lacks {required}"));
        }
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        found.push(format!("{path} is none of {allowed:?}"));
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let known = [&schema["properties"][name], &schema["additionalProperties"]];
        match known.into_iter().find(|known| !known.is_null()) {
            Some(known) => problems(known, field, &path, found),
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
            None => found.push(format!("{path} is unknown")),
        }
    }
    for item in value.as_array().into_iter().flatten() {
        problems(&schema["items"], item, &format!("{path}[]"), found);
    }
}

#[test]
fn every_sample_is_one_that_the_api_server_stores_as_it_is() {
    let samples = samples();
    assert_eq!(samples.len(), 19);
    for sample in samples {
        let kind = sample["kind"].as_str().expect("a kind");
        let mut schema = schema(kind);
        // The API server knows this one by itself.
        schema["properties"]["metadata"]["x-kubernetes-preserve-unknown-fields"] = true.into();
        let mut found = Vec::new();
        problems(&schema, &sample, kind, &mut found);
        assert!(found.is_empty(), "{}: {found:#?}", sample["metadata"]["name"]);
        assert_eq!(webhook::validate(&sample), [], "{}", sample["metadata"]["name"]);
    }
}

#[test]
fn a_misspelt_field_is_found() {
    let mut sample = samples().into_iter().find(|it| it["kind"] == "RayCluster").expect("one");
    sample["spec"]["headGroupSpec"]["rayStartParam"] = serde_json::json!({});
    sample["spec"]["workerGroupSpecs"][0]["replicas"] = serde_json::json!("2");
    let mut found = Vec::new();
    problems(&schema("RayCluster")["properties"]["spec"], &sample["spec"], "spec", &mut found);
    let expected = [
        "spec.headGroupSpec.rayStartParam is unknown",
        "spec.workerGroupSpecs[].replicas is no \"integer\"",
    ];
    assert_eq!(found, expected);
}
