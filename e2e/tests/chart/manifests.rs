//! With its defaults the chart renders what the kustomizations contain, object by object.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use e2e::{installation::root, local_webhooks};
use lab::binaries::Binaries;
use serde_json::Value;

use crate::helm::Helm;

/// Labels that only Helm adds.
const LABELS: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// The annotation of pods by which a change of the configuration replaces them.
const CHECKSUM: &str = "charts.kueue.x-k8s.io/config-checksum";

/// The key of the configuration file in its ConfigMap.
const FILE: &str = "controller_manager_config.yaml";

type Objects = BTreeMap<String, Value>;

#[tokio::test]
async fn the_default_values_render_the_kustomization() -> Result<()> {
    let rendered = comparable(&Helm::find()?.template(&[], &[]).await?)?;
    let mut expected = comparable(&kustomized(&["config/default"])?)?;
    // `helm install --create-namespace` creates it.
    expected.remove("Namespace kueue-system").context("no Namespace")?;
    ensure_same(&rendered, &expected)
}

#[tokio::test]
async fn optional_parts_render_their_kustomizations() -> Result<()> {
    let values = ["enablePrometheus=true", "enableVisibilityAPF=true"];
    let rendered = comparable(&Helm::find()?.template(&values, &[]).await?)?;
    let folders = ["config/default", "config/monitoring", "config/visibility/flow-control"];
    let mut expected = comparable(&kustomized(&folders)?)?;
    expected.remove("Namespace kueue-system").context("no Namespace")?;
    ensure_same(&rendered, &expected)
}

fn ensure_same(rendered: &Objects, expected: &Objects) -> Result<()> {
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    ensure!(expected.len() > 100, "only {} objects", expected.len());
    ensure!(
        names(rendered) == names(expected),
        "{:#?}\nare not\n{:#?}",
        names(rendered),
        names(expected)
    );
    for (name, object) in rendered {
        let other = &expected[name];
        ensure!(object == other, "{name}: the chart renders\n{object:#}\nand not\n{other:#}");
    }
    Ok(())
}

/// The output of kustomizations. kubectl needs no cluster for it.
fn kustomized(folders: &[&str]) -> Result<String> {
    let kubectl = Binaries::find(&|line| eprintln!("{line}"))?.kubectl();
    let mut text = String::new();
    for folder in folders {
        let path = root().join(folder);
        text += &format!("---\n{}", kustomize(&kubectl, &path)?);
    }
    Ok(text)
}

/// The output of one kustomization.
pub(crate) fn kustomize(kubectl: &Path, folder: &Path) -> Result<String> {
    let output = Command::new(kubectl).arg("kustomize").arg(folder).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kustomize {}: {error}", folder.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// Objects by kind and name, without what only Helm adds, and the configuration file by its content.
fn comparable(text: &str) -> Result<Objects> {
    let mut objects = Objects::new();
    let documents = local_webhooks::objects(text)?;
    for mut object in documents.into_iter().filter(|object| !object.is_null()) {
        without(&mut object, "/metadata", "labels", &LABELS);
        without(&mut object, "/spec/template/metadata", "annotations", &[CHECKSUM]);
        if let Some(file) = object["data"].get(FILE) {
            let parsed = serde_saphyr::from_str(file.as_str().context("no text")?)?;
            object["data"][FILE] = parsed;
        }
        let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text_of(&object["kind"]), text_of(&object["metadata"]["name"]));
        let before = objects.insert(format!("{kind} {name}"), object);
        ensure!(before.is_none(), "{kind} {name} is there twice");
    }
    Ok(objects)
}

/// Removes keys of a map, and the map if nothing else is in it.
fn without(object: &mut Value, parent: &str, map: &str, keys: &[&str]) {
    let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
    let Some(entries) = parent.get_mut(map).and_then(Value::as_object_mut) else { return };
    entries.retain(|key, _| !keys.contains(&key.as_str()));
    if entries.is_empty() {
        parent.remove(map);
    }
}
