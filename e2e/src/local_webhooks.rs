//! Manifests for a manager that runs beside the lab.
//!
//! The lab has no network for Services: a webhook with a Service becomes one with a port of this machine. Everything else stays
//! unchanged.

use std::{fs, path::Path};

use anyhow::Context;
use serde_json::{Value, json};

/// All manifests of a folder as one YAML text, webhooks at `port`.
///
/// # Errors
/// If a file cannot be read or is not YAML.
pub fn manifests(folder: &Path, port: u16) -> anyhow::Result<String> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter(|path| path.file_name().is_some_and(|name| name != "kustomization.yaml"))
        .collect();
    files.sort();
    let mut text = String::new();
    for path in files {
        let read = || -> anyhow::Result<Vec<Value>> {
            Ok(serde_saphyr::from_multiple(&fs::read_to_string(&path)?)?)
        };
        for mut object in read().with_context(|| format!("reading {}", path.display()))? {
            point_to(&mut object, port);
            // JSON is YAML.
            text += &format!("---\n{object}\n");
        }
    }
    Ok(text)
}

/// The objects in the output of a kustomization.
///
/// # Errors
/// If it is not YAML.
pub fn objects(built: &str) -> anyhow::Result<Vec<Value>> {
    let options = serde_saphyr::options! { strict_booleans: true, budget: None };
    Ok(serde_saphyr::from_multiple_with_options(built, options)?)
}

/// These objects as one YAML text, webhooks at `port`. Deployments get no replicas, because nothing would run them. APIServices are
/// left out: without an endpoint they would delay everything that asks which kinds there are (`installation::visibility`).
#[must_use]
pub fn localised(objects: Vec<Value>, port: u16) -> String {
    let mut text = String::new();
    for mut object in objects.into_iter().filter(|object| object["kind"] != "APIService") {
        point_to(&mut object, port);
        if object["kind"] == "Deployment" {
            object["spec"]["replicas"] = 0.into();
        }
        text += &format!("---\n{object}\n");
    }
    text
}

/// Replaces the Service of every webhook below `value`.
fn point_to(value: &mut Value, port: u16) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                let path = value["service"]["path"].as_str().map(str::to_owned);
                match path {
                    Some(path) if key == "clientConfig" => {
                        *value = json!({"url": format!("https://127.0.0.1:{port}{path}")});
                    }
                    _ => point_to(value, port),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| point_to(item, port)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregated_apis_are_left_out() {
        let objects = vec![json!({"kind": "APIService"}), json!({"kind": "Service"})];
        assert_eq!(localised(objects, 7), "---\n{\"kind\":\"Service\"}\n");
    }

    #[test]
    fn services_become_urls_and_other_fields_stay() {
        let mut object = json!({"webhooks": [
            {"name": "a", "clientConfig": {"service": {"name": "s", "path": "/x"}}},
            {"name": "b", "clientConfig": {"url": "https://elsewhere"}},
        ]});
        point_to(&mut object, 7);
        let expected = json!({"webhooks": [
            {"name": "a", "clientConfig": {"url": "https://127.0.0.1:7/x"}},
            {"name": "b", "clientConfig": {"url": "https://elsewhere"}},
        ]});
        assert_eq!(object, expected);
    }
}
