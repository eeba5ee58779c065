//! What an API server refuses: names, labels, and objects beyond a quota.

use std::collections::BTreeMap;

use crds::plural::guessed_plural;
use ray::step::RayRefusal;
use serde_json::Value;

use super::world::id;

/// What an API server says of a bad name.
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Kinds of which the names are subdomains.
const NAMED_AS_SUBDOMAINS: [&str; 7] =
    ["Pod", "NetworkPolicy", "Ingress", "Job", "Secret", "ServiceAccount", "PersistentVolumeClaim"];

/// Kinds that a quota counts by their plain name as well.
const PLAINLY_COUNTED: [&str; 4] = ["Pod", "Service", "Secret", "PersistentVolumeClaim"];

/// The most bytes of the value of a label.
const LONGEST_VALUE: usize = 63;

/// Why a new object is refused, in the order in which an API server looks: the object itself, quotas, one of the same name.
pub(super) fn refusal(objects: &BTreeMap<String, Value>, object: &Value) -> Option<RayRefusal> {
    let refusal = |code, message| RayRefusal { code, message };
    if let Some(why) = invalid(object) {
        let message = format!("{} {:?} is invalid: {why}", qualified_kind(object), shown(object));
        return Some(refusal(422, message));
    }
    if let Some(why) = beyond_quota(objects, object) {
        let message = format!("{} {:?} is forbidden: {why}", resource(object), shown(object));
        return Some(refusal(403, message));
    }
    let is_there = objects.contains_key(&id(object));
    is_there.then(|| refusal(409, format!("{} already exists", id(object))))
}

/// The name of an object as the recording has it in messages.
fn shown(object: &Value) -> String {
    let metadata = &object["metadata"];
    match metadata["generateName"].as_str() {
        Some(prefix) => format!("{prefix}<rand>"),
        None => metadata["name"].as_str().unwrap_or_default().to_owned(),
    }
}

fn group(object: &Value) -> &str {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

fn with_group(name: String, object: &Value) -> String {
    match group(object) {
        "" => name,
        group => format!("{name}.{group}"),
    }
}

fn qualified_kind(object: &Value) -> String {
    with_group(object["kind"].as_str().unwrap_or_default().to_owned(), object)
}

fn resource(object: &Value) -> String {
    with_group(guessed_plural(object["kind"].as_str().unwrap_or_default()), object)
}

fn invalid(object: &Value) -> Option<String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let mut values = labels.filter_map(|(_, value)| value.as_str());
    if let Some(value) = values.find(|value| value.len() > LONGEST_VALUE) {
        return Some(format!(
            "metadata.labels: Invalid value: {value:?}: must be no more than {LONGEST_VALUE} bytes"
        ));
    }
    let is_named_so = NAMED_AS_SUBDOMAINS.iter().any(|kind| object["kind"] == *kind);
    let name = shown(object);
    if !is_named_so || !name.contains(|c: char| c == '_' || c.is_ascii_uppercase()) {
        return None;
    }
    let of = |field: &str, value: &str| {
        format!("metadata.{field}: Invalid value: {value:?}: {SUBDOMAIN}")
    };
    Some(match object["metadata"]["generateName"].as_str() {
        Some(prefix) => format!("[{}, {}]", of("generateName", prefix), of("name", &name)),
        None => of("name", &name),
    })
}

/// The first quota that has no room for one more object of a kind.
fn beyond_quota(objects: &BTreeMap<String, Value>, object: &Value) -> Option<String> {
    let quotas = objects.iter().filter(|(id, _)| id.starts_with("ResourceQuota/"));
    quotas.map(|(_, quota)| quota).find_map(|quota| {
        let hard = quota["spec"]["hard"].as_object().into_iter().flatten();
        let full: Vec<(&String, u64, u64)> = hard
            .filter_map(|(name, limit)| {
                let used = used(objects, object, name)?;
                let limit = limit.as_u64().or_else(|| limit.as_str()?.parse().ok())?;
                (used + 1 > limit).then_some((name, used, limit))
            })
            .collect();
        let list = |of: fn(&(&String, u64, u64)) -> u64| {
            let amounts = full.iter().map(|one| format!("{}={}", one.0, of(one)));
            amounts.collect::<Vec<_>>().join(",")
        };
        (!full.is_empty()).then(|| {
            format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota["metadata"]["name"].as_str().unwrap_or_default(),
                list(|_| 1),
                list(|(_, used, _)| *used),
                list(|(_, _, limit)| *limit),
            )
        })
    })
}

/// How many objects of the kind of `object` a quota counts under `name`; none if it counts others.
fn used(objects: &BTreeMap<String, Value>, object: &Value, name: &str) -> Option<u64> {
    let is_plain =
        name == resource(object) && PLAINLY_COUNTED.iter().any(|kind| object["kind"] == *kind);
    let is_count = name.strip_prefix("count/").is_some_and(|name| name == resource(object));
    if !is_plain && !is_count {
        return None;
    }
    let ended = |it: &Value| matches!(it["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let same = objects.values().filter(|it| {
        // A pod that ended is counted as an object, but takes nothing.
        it["kind"] == object["kind"] && !(is_plain && object["kind"] == "Pod" && ended(it))
    });
    u64::try_from(same.count()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(objects: &[Value], object: &Value) -> Option<(u16, String)> {
        let objects = objects.iter().map(|object| (id(object), object.clone())).collect();
        refusal(&objects, object).map(|refusal| (refusal.code, refusal.message))
    }

    fn pod(name: &str, phase: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "generateName": "c1-small-worker-"},
            "status": {"phase": phase},
        })
    }

    #[test]
    fn a_quota_counts_the_pods_that_run() {
        let quota = |hard: Value| json!({"kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}});
        let (running, ended, new) = (pod("a", "Running"), pod("b", "Succeeded"), pod("c", ""));
        let one = quota(json!({"pods": "1"}));
        assert_eq!(refused(&[one.clone(), ended.clone()], &new), None);
        let message = "pods \"c1-small-worker-<rand>\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1";
        let found = refused(&[one, running.clone(), ended.clone()], &new);
        assert_eq!(found, Some((403, message.to_owned())));
        let both = quota(json!({"pods": 1, "count/pods": "2", "requests.cpu": "9"}));
        let message = "pods \"c1-small-worker-<rand>\" is forbidden: exceeded quota: few, requested: count/pods=1,pods=1, used: count/pods=2,pods=1, limited: count/pods=2,pods=1";
        let found = refused(&[both, running, ended], &new);
        assert_eq!(found, Some((403, message.to_owned())));
    }

    #[test]
    fn a_quota_of_another_kind_refuses_no_pod() {
        let quota = json!({
            "kind": "ResourceQuota", "metadata": {"name": "q"},
            "spec": {"hard": {"count/rayclusters.ray.io": "0"}},
        });
        assert_eq!(refused(std::slice::from_ref(&quota), &pod("a", "")), None);
        let cluster =
            json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "c1"}});
        let message = "rayclusters.ray.io \"c1\" is forbidden: exceeded quota: q, requested: count/rayclusters.ray.io=1, used: count/rayclusters.ray.io=0, limited: count/rayclusters.ray.io=0";
        assert_eq!(refused(&[quota], &cluster), Some((403, message.to_owned())));
    }

    #[test]
    fn a_name_in_upper_case_is_refused() {
        let policy = |name: &str| {
            json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                "metadata": {"name": name},
            })
        };
        assert_eq!(refused(&[], &policy("c1-small")), None);
        let message = format!(
            "NetworkPolicy.networking.k8s.io \"c1-Small\" is invalid: metadata.name: Invalid value: \"c1-Small\": {SUBDOMAIN}"
        );
        assert_eq!(refused(&[], &policy("c1-Small")), Some((422, message)));
    }

    #[test]
    fn an_object_of_the_same_name_is_refused_last() {
        let quota = json!({
            "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}},
        });
        let known = pod("a", "Running");
        let code = |objects: &[Value]| refused(objects, &known).map(|(code, _)| code);
        assert_eq!(code(std::slice::from_ref(&known)), Some(409));
        assert_eq!(code(&[quota, known.clone()]), Some(403));
    }
}
