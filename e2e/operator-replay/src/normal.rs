//! Objects in the form of the recording: without what an API server fills in, and with lists in order where order has no meaning.

use serde_json::{Value, json};

/// Fields that the API server fills in, with the value that it gives them.
fn default_of(name: &str) -> Option<Value> {
    Some(match name {
        "terminationMessagePath" => json!("/dev/termination-log"),
        "terminationMessagePolicy" => json!("File"),
        "imagePullPolicy" => json!("IfNotPresent"),
        "dnsPolicy" => json!("ClusterFirst"),
        "schedulerName" => json!("default-scheduler"),
        "enableServiceLinks" => json!(true),
        "preemptionPolicy" => json!("PreemptLowerPriority"),
        "priority" => json!(0),
        "terminationGracePeriodSeconds" => json!(30),
        "restartPolicy" => json!("Always"),
        "serviceAccountName" => json!("default"),
        "successThreshold" => json!(1),
        "failureThreshold" => json!(3),
        "periodSeconds" => json!(10),
        "timeoutSeconds" => json!(1),
        "scheme" => json!("HTTP"),
        "protocol" => json!("TCP"),
        "apiVersion" => json!("v1"),
        "defaultMode" => json!(420),
        "type" => json!("ClusterIP"),
        "sessionAffinity" => json!("None"),
        "ipFamilies" => json!(["IPv4"]),
        "ipFamilyPolicy" => json!("SingleStack"),
        "internalTrafficPolicy" => json!("Cluster"),
        "externalTrafficPolicy" => json!("Cluster"),
        "allocateLoadBalancerNodePorts" => json!(true),
        "parallelism" | "completions" => json!(1),
        "manualSelector" | "suspend" => json!(false),
        "completionMode" => json!("NonIndexed"),
        "podReplacementPolicy" => json!("TerminatingOrFailed"),
        "volumeMode" => json!("Filesystem"),
        _ => return None,
    })
}

/// Metadata that the recording leaves out, or that depends on the number of writes.
const METADATA: &[&str] = &[
    "uid",
    "namespace",
    "creationTimestamp",
    "deletionTimestamp",
    "resourceVersion",
    "generation",
    "managedFields",
];

/// Annotations with hashes over an encoding that is each program's own.
const HASHES: &[&str] = &[
    "ray.io/upgrade-strategy-recreate-hash",
    "ray.io/hash-without-replicas-and-workers-to-delete",
];

/// An object in the form in which two of them are compared.
pub(crate) fn normal(object: &Value) -> Value {
    let mut object = object.clone();
    let is_cluster = object["kind"] == "RayCluster";
    let is_job = object["kind"] == "Job";
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let api_version = object["apiVersion"].take();
    for name in METADATA {
        remove(&mut object["metadata"], name);
    }
    if let Some(annotations) = object["metadata"].get_mut("annotations") {
        for name in HASHES {
            if !annotations[*name].is_null() {
                annotations[*name] = json!("<hash>");
            }
        }
    }
    if is_cluster {
        submitters(&mut object["spec"]["headGroupSpec"]["template"]["spec"]);
        cluster(&mut object);
        groups(&mut object["spec"]);
    } else if object["kind"] == "RayJob" {
        ray_job(&mut object);
    } else if object["kind"] == "RayService" {
        ray_service(&mut object, generation);
    } else {
        if is_job {
            job(&mut object);
        }
        secret(&mut object);
        route(&mut object);
        requests(&mut object["spec"]);
        strip(&mut object);
        remove(&mut object["spec"], "clusterIPs");
        if object["kind"] == "PersistentVolumeClaim" {
            remove(&mut object, "status");
            remove(&mut object["metadata"], "finalizers");
        }
    }
    if object["kind"] == "Pod" {
        pod_status(&mut object["status"]);
    }
    sort(&mut object);
    object["apiVersion"] = api_version;
    object
}

fn remove(value: &mut Value, name: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(name);
    }
}

fn cluster(object: &mut Value) {
    let status = &mut object["status"];
    remove(status, "observedGeneration");
    if status["lastUpdateTime"].is_string() {
        status["lastUpdateTime"] = json!("<time>");
    }
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"] = json!("<time>");
    }
    if let Some(times) = status.get_mut("stateTransitionTimes").and_then(Value::as_object_mut) {
        times.values_mut().for_each(|time| *time = json!("<time>"));
    }
    for name in ["conditions", "lastUpdateTime", "stateTransitionTimes"] {
        if status[name].is_null() {
            remove(status, name);
        }
    }
    if status.is_null() || *status == json!({}) {
        remove(object, "status");
    }
}

/// The copy of a cluster's status is normal as well, and times are left out.
fn ray_job(object: &mut Value) {
    let status = &mut object["status"];
    let mut copy = json!({"status": status["rayClusterStatus"]});
    cluster(&mut copy);
    status["rayClusterStatus"] = copy["status"].take();
    times(status);
    if let Some(message) = status["message"].as_str() {
        status["message"] = json!(without_parser(message));
    }
    if *status == json!({"rayClusterStatus": null}) {
        remove(object, "status");
    }
    if object["metadata"]["finalizers"].is_null() || object["metadata"]["finalizers"] == json!([]) {
        remove(&mut object["metadata"], "finalizers");
    }
}

/// Both copies of clusters' statuses are normal, times are left out, and generations are counted back from the present one: a spec with
/// other defaults has other numbers.
fn ray_service(object: &mut Value, generation: i64) {
    let status = &mut object["status"];
    for part in ["activeServiceStatus", "pendingServiceStatus"] {
        let mut copy = json!({"status": status[part]["rayClusterStatus"]});
        cluster(&mut copy);
        status[part]["rayClusterStatus"] = copy["status"].take();
    }
    times(status);
    let lag = |place: &mut Value| {
        if let Some(observed) = place["observedGeneration"].as_i64() {
            place["observedGeneration"] = json!(generation - observed);
        }
    };
    lag(status);
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        lag(condition);
        let reason = condition["reason"].as_str().unwrap_or_default().to_owned();
        // Durations in it, and messages of states that are not recorded.
        if reason == "InitializingTimeout" || reason == "SuspendInProgress" {
            remove(condition, "message");
        }
    }
    let parts = ["activeServiceStatus", "pendingServiceStatus"];
    if parts.iter().all(|part| status[*part] == json!({"rayClusterStatus": null})) {
        remove(object, "status");
    }
    if object["metadata"]["finalizers"].is_null() || object["metadata"]["finalizers"] == json!([]) {
        remove(&mut object["metadata"], "finalizers");
    }
}

/// A message without the words of the YAML parser, which follow the text of a runtime environment.
pub(crate) fn without_parser(message: &str) -> &str {
    const BEGIN: &str = "failed to unmarshal RuntimeEnvYAML: ";
    let Some(at) = message.find(BEGIN) else { return message };
    let rest = &message[at + BEGIN.len()..];
    let text = rest.find(": error").unwrap_or(rest.len());
    &message[..at + BEGIN.len() + text]
}

/// Replaces times, also within messages.
fn times(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(times),
        Value::Array(items) => items.iter_mut().for_each(times),
        Value::String(text) => {
            let is_time = |word: &str| word.parse::<jiff::Timestamp>().is_ok();
            let joined = joined_times(text);
            let words = joined.iter().map(|word| {
                let bare = word.trim_end_matches(['.', ';', ',']);
                if is_time(bare) { word.replace(bare, "<time>") } else { word.clone() }
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
        _ => {}
    }
}

/// The words of a text. A time that Go prints is several of them, and becomes one.
fn joined_times(text: &str) -> Vec<String> {
    let text = text.replace(" +0000 UTC", "");
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if last.parse::<jiff::civil::Date>().is_ok() && word.contains(':') => {
                let bare = word.trim_end_matches(['.', ';', ',']);
                last.push_str(&word.replacen(bare, &format!("T{bare}Z"), 1));
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The recording keeps the states of containers and the reasons of conditions.
fn pod_status(status: &mut Value) {
    for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
        remove(&mut container["state"]["terminated"], "finishedAt");
        if let Some(map) = container.as_object_mut() {
            map.retain(|name, _| ["name", "ready", "state"].contains(&name.as_str()));
        }
    }
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        remove(condition, "message");
    }
}

/// What the Job controller adds.
fn job(object: &mut Value) {
    remove(&mut object["spec"], "selector");
    remove(object, "status");
    let metadata = &mut object["spec"]["template"]["metadata"];
    for name in [
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "controller-uid",
        "job-name",
    ] {
        remove(&mut metadata["labels"], name);
    }
    requests(&mut object["spec"]["template"]["spec"]);
}

fn secret(object: &mut Value) {
    if let Some(token) = object["stringData"]["auth_token"].as_str() {
        let text = format!("<secret of {} characters>", token.len());
        object["data"] = json!({"auth_token": text});
    }
    remove(object, "stringData");
}

/// What an encoder writes for groups with unset fields.
fn groups(spec: &mut Value) {
    for group in spec["workerGroupSpecs"].as_array_mut().into_iter().flatten() {
        if group["scaleStrategy"] == json!({}) {
            remove(group, "scaleStrategy");
        }
        if group["template"]["metadata"] == json!({}) {
            remove(&mut group["template"], "metadata");
        }
    }
}

/// Defaults of the CRD in the status of an HTTPRoute.
fn route(object: &mut Value) {
    let parents = object.pointer_mut("/status/parents").and_then(Value::as_array_mut);
    for parent in parents.into_iter().flatten() {
        remove(&mut parent["parentRef"], "group");
        remove(&mut parent["parentRef"], "kind");
    }
}

/// Requests that are not set are the limits.
fn requests(pod: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in pod[list].as_array_mut().into_iter().flatten() {
            let limits = container["resources"]["limits"].clone();
            for (name, amount) in limits.as_object().into_iter().flatten() {
                let place = &mut container["resources"]["requests"][name];
                if place.is_null() {
                    *place = amount.clone();
                }
            }
            script(&mut container["args"]);
            if container["args"].is_null() {
                remove(container, "args");
            }
        }
        if pod[list].is_null() {
            remove(pod, list);
        }
    }
    if pod.is_null() {
        *pod = json!({});
    }
}

fn submitters(pod: &mut Value) {
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        script(&mut container["args"]);
        if container["args"].is_null() {
            remove(container, "args");
        }
    }
}

/// Scripts are compared by what they ask for, since their wording is each program's own.
fn script(args: &mut Value) {
    let Some(text) = args[0].as_str() else { return };
    if let Some((before, rest)) = text.split_once("until python ") {
        let (wait, after) = rest.split_once(" ; done").expect("the end of the wait");
        let url = wait.split('\'').find(|part| part.starts_with("http")).expect("an address");
        args[0] =
            json!(format!("{before}<until {url} (timeout 10 s) says success, every 2 s>{after}"));
    } else if let Some((_, rest)) = text.split_once("ray health-check --address ") {
        let address = rest.split([' ', '>']).next().unwrap_or_default();
        args[0] = json!(format!("health of {address}"));
    } else if text.contains("cleanup_redis_storage") {
        args[0] = json!("cleanup of redis");
    }
}

/// Removes defaults, nulls and what is empty, from the inside out.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(strip);
            map.retain(|name, value| {
                let is_empty = value.is_null() || *value == json!({}) && name != "emptyDir";
                !is_empty && default_of(name).as_ref() != Some(value)
            });
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Sorts lists of named items. The first container stays marked, because it is Ray's.
fn sort(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let first = map.get("containers").map(|list| list[0]["name"].clone());
            if let Some(first) = first.filter(|name| !name.is_null()) {
                map.insert("first container".to_owned(), first);
            }
            map.values_mut().for_each(sort);
        }
        Value::Array(items) => {
            items.iter_mut().for_each(sort);
            if items.iter().all(|item| item["name"].is_string() || item["type"].is_string()) {
                items.sort_by_key(|item| format!("{}/{}/{item}", item["name"], item["type"]));
            }
        }
        _ => {}
    }
}
