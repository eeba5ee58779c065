//! What is added to a RayCluster. Items are added or replaced by their names, so that a second mutation changes nothing.

use serde_json::{Map, Value, json};

use super::{config::SecurityConfig, object_names::ObjectNames, pod_additions::PodAdditions};
use crate::{
    json::{annotation, field, items, list, list_if_any, name, text},
    names,
};

/// The value of the annotation: the release of CodeFlare with these names.
const VERSION: &str = "v1.16.0";

/// Adds the proxy and the certificates to a RayCluster. `old` is the object before an update, or as it is stored.
///
/// A cluster that was made before it was to be secured stays as it is: some of its pods would encrypt and others would not. One
/// without a name does as well, since names of its objects are parts of its pods; admission refuses it.
pub fn mutate(cluster: &mut Value, old: Option<&Value>, config: &SecurityConfig) {
    if name(cluster).is_empty() || !cluster["spec"].is_object() || old.is_some_and(is_left_alone) {
        return;
    }
    let secured = old.filter(|old| is_secured(old));
    let version = match secured.or(Some(cluster)).map(|it| annotation(it, names::SECURITY_VERSION))
    {
        Some("") | None => VERSION.to_owned(),
        Some(version) => version.to_owned(),
    };
    let config = &additions_of(secured, config);
    let annotations = field(field(cluster, "metadata"), "annotations");
    *field(annotations, names::SECURITY_VERSION) = json!(version);
    *field(annotations, names::SECURITY_ADDITIONS) = json!(additions(config));
    // A copy of what names are made of: the spec is changed while they are read.
    let named = json!({"metadata": cluster["metadata"], "spec": {
        "headGroupSpec": {"headService": cluster["spec"]["headGroupSpec"]["headService"]},
    }});
    let names = ObjectNames::of(&named);
    let spec = field(cluster, "spec");
    let head = PodAdditions::of_head(&named, &names, config);
    add(pod_spec(field(spec, "headGroupSpec")), kept(head, secured.map(head_of)));
    for group in list_if_any(spec, "workerGroupSpecs") {
        let before = secured.and_then(|old| group_of(old, text(&group["groupName"])));
        let workers = PodAdditions::of_workers(&names, config);
        add(pod_spec(group), kept(workers, before));
    }
}

/// The settings with the additions that a cluster has already: a later change is about new clusters.
pub(super) fn additions_of(secured: Option<&Value>, config: &SecurityConfig) -> SecurityConfig {
    let recorded = secured.map_or("", |it| annotation(it, names::SECURITY_ADDITIONS));
    let mut config = config.clone();
    // CodeFlare does not record them.
    if !recorded.is_empty() {
        let has = |part: &str| recorded.split(',').any(|it| it == part);
        config.oauth = has("oauth") && !config.oauth_proxy_image.is_empty();
        config.mtls = has("mtls") && !config.cert_generator_image.is_empty();
    }
    config
}

fn additions(config: &SecurityConfig) -> &'static str {
    match (config.oauth, config.mtls) {
        (true, true) => "oauth,mtls",
        (true, false) => "oauth",
        (false, true) => "mtls",
        (false, false) => "none",
    }
}

/// Whether admission has made a cluster secure.
pub(super) fn is_secured(cluster: &Value) -> bool {
    !annotation(cluster, names::SECURITY_VERSION).is_empty()
}

/// Whether a cluster ran before it was to be secured.
pub(super) fn is_left_alone(cluster: &Value) -> bool {
    !is_secured(cluster) && !cluster["status"].as_object().is_none_or(Map::is_empty)
}

/// The pod of the head.
pub(super) fn head_of(cluster: &Value) -> &Value {
    &cluster["spec"]["headGroupSpec"]["template"]["spec"]
}

/// The pod of a group of workers.
pub(super) fn group_of<'a>(cluster: &'a Value, name: &str) -> Option<&'a Value> {
    let mut groups = items(&cluster["spec"]["workerGroupSpecs"]).iter();
    let group = groups.find(|group| text(&group["groupName"]) == name)?;
    Some(&group["template"]["spec"])
}

/// What is to be in a pod: what was added before, and the rest of what is added now.
pub(super) fn kept(additions: PodAdditions, before: Option<&Value>) -> PodAdditions {
    match before {
        Some(before) => additions.or_of(before),
        None => additions,
    }
}

fn pod_spec(group: &mut Value) -> &mut Value {
    field(field(group, "template"), "spec")
}

fn add(pod: &mut Value, additions: PodAdditions) {
    if let Some(account) = additions.account {
        *field(pod, "serviceAccountName") = json!(account);
    }
    upsert(pod, "containers", additions.containers);
    if let Some(ray) = list_if_any(pod, "containers").first_mut() {
        upsert(ray, "env", additions.env);
        upsert(ray, "volumeMounts", additions.mounts);
    }
    upsert(pod, "initContainers", additions.init_containers);
    upsert(pod, "volumes", additions.volumes);
}

/// Replaces items of a list by name, and adds those that are not there. Further items of these names go.
fn upsert(owner: &mut Value, field: &str, wanted: Vec<Value>) {
    for wanted in wanted {
        let items = list(owner, field);
        let is_same = |item: &Value| item["name"] == wanted["name"];
        let Some(at) = items.iter().position(is_same) else {
            items.push(wanted);
            continue;
        };
        let mut index = 0;
        items.retain(|item| {
            index += 1;
            index <= at + 1 || !is_same(item)
        });
        if let Some(item) = items.get_mut(at) {
            *item = wanted;
        }
    }
}
