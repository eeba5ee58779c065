//! One Workload `w` with the check `prov`, as text.
//!
//! ```text
//! set main=3 gpu flavor=spot zone=a      a pod set: pods, what it uses, its flavor, its node selector, `admitted=2`, `label=x`
//! check Pending retries=1                the check's state; `message=x`
//! is Admitted                            a condition of the Workload, `inactive`
//! note priority=high                     an annotation provreq.kueue.x-k8s.io/priority
//! config class=queued limit=2 …          also base, max, managed, merge, select=KEY:DETAIL, param=KEY:VALUE; without it, none
//! request 1 Failed="no room"             a request of this attempt, with conditions; `class=`, `detail=K:V`, `foreign`, `deleting`
//! template 1 main of=workload            the template of a pod set of an attempt, and its owner: workload, request, former, user
//! ```
//! Words hold `_` in place of a space.

use std::collections::BTreeMap;

use crds::v1beta2::{ProvisioningRequestConfigSpec, Workload};
use expect_test::Expect;
use jobs::admitted_infos::AssignedFlavors;
use provisioning::{
    AskedCheck, AskingWorkload, CheckDecision, EntryTemplate, ProvisioningRequest, RequestStep,
    decide,
};
use serde_json::{Value, json};

/// Decides about the fixture.
#[expect(clippy::needless_pass_by_value, reason = "as expect-test's own functions")]
pub(crate) fn check(fixture: &str, expected: Expect) {
    expected.assert_eq(&text(&Scene::of(fixture).decide()));
}

struct Scene {
    workload: Value,
    config: Option<Value>,
    requests: Vec<ProvisioningRequest>,
    templates: BTreeMap<String, EntryTemplate>,
}

impl Scene {
    fn of(fixture: &str) -> Self {
        let mut scene = Self {
            workload: json!({
                "metadata": { "name": "w", "namespace": "ns", "uid": "u", "annotations": {} },
                "spec": { "podSets": [] },
                "status": {
                    "admission": { "clusterQueue": "cq", "podSetAssignments": [] },
                    "admissionChecks": [{ "name": "prov", "state": "Pending" }],
                    "conditions": [{ "type": "QuotaReserved", "status": "True" }],
                },
            }),
            config: None,
            requests: Vec::new(),
            templates: BTreeMap::new(),
        };
        let lines = fixture.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.for_each(|line| scene.line(line));
        scene
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let kind = words.next().expect("a kind");
        let words: Vec<(&str, String)> = words
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .map(|(key, value)| (key, value.replace('_', " ")))
            .collect();
        match kind {
            "set" => self.pod_set(&words),
            "check" => {
                let check = &mut self.workload["status"]["admissionChecks"][0];
                check["state"] = json!(words[0].0);
                for (key, value) in &words[1..] {
                    match *key {
                        "retries" => check["retryCount"] = number(value),
                        other => check[other] = json!(value),
                    }
                }
            }
            "is" if words[0].0 == "inactive" => self.workload["spec"]["active"] = json!(false),
            "is" => push(
                &mut self.workload["status"]["conditions"],
                json!({ "type": words[0].0, "status": "True" }),
            ),
            "note" => {
                let key = format!("provreq.kueue.x-k8s.io/{}", words[0].0);
                self.workload["metadata"]["annotations"][key] = json!(words[0].1);
            }
            "config" => self.config = Some(config(&words)),
            "request" => self.requests.push(request(&words)),
            "template" => self.template(&words),
            other => panic!("no such line: {other}"),
        }
    }

    fn pod_set(&mut self, words: &[(&str, String)]) {
        let (name, count) = &words[0];
        let mut set = json!({ "name": name, "count": number(count), "template": {
            "metadata": {}, "spec": { "containers": [{ "name": "c", "resources": { "limits": { "cpu": "1" } } }] },
        } });
        let mut assignment =
            json!({ "name": name, "count": number(count), "flavors": { "cpu": "spot" } });
        for (key, value) in &words[1..] {
            let template = &mut set["template"];
            match *key {
                "gpu" => {
                    template["spec"]["containers"][0]["resources"]["limits"]["gpu"] = json!("1");
                }
                "flavor" => assignment["flavors"]["cpu"] = json!(value),
                "admitted" => assignment["count"] = number(value),
                "label" => template["metadata"]["labels"]["l"] = json!(value),
                "gate" => template["spec"]["schedulingGates"] = json!([{ "name": value }]),
                "used" => {
                    let key = "autoscaling.x-k8s.io/consume-provisioning-request";
                    template["metadata"]["annotations"][key] = json!(value);
                }
                key => template["spec"]["nodeSelector"][key] = json!(value),
            }
        }
        push(&mut self.workload["spec"]["podSets"], set);
        push(&mut self.workload["status"]["admission"]["podSetAssignments"], assignment);
    }

    fn template(&mut self, words: &[(&str, String)]) {
        let (attempt, set) = (words[0].0, words[1].0);
        let (kind, uid) = match words[2].1.as_str() {
            "workload" => ("Workload", "u".to_owned()),
            "request" => ("ProvisioningRequest", format!("r{attempt}")),
            "former" => ("ProvisioningRequest", "gone".to_owned()),
            _ => ("Deployment", "user".to_owned()),
        };
        let name = format!("ppt-w-prov-{attempt}-{set}");
        let template = json!({ "metadata": { "name": name, "ownerReferences": [{
            "apiVersion": "v1", "kind": kind, "name": format!("w-prov-{attempt}"), "uid": uid, "controller": true,
        }] } });
        let template = serde_json::from_value(template).expect("a template decodes");
        self.templates.insert(name, template);
    }

    fn decide(&self) -> CheckDecision {
        let workload: Workload = decoded(&self.workload);
        let config: Option<ProvisioningRequestConfigSpec> = self.config.as_ref().map(decoded);
        let flavors = [
            (
                "spot",
                json!({ "nodeLabels": { "pool": "spot" }, "tolerations": [{ "key": "spot" }] }),
            ),
            ("plain", json!({})),
        ];
        let flavors = flavors.map(|(name, spec)| (name.to_owned(), decoded(&spec))).into();
        let requests: Vec<&ProvisioningRequest> = self.requests.iter().collect();
        let templates: Vec<&EntryTemplate> = self.templates.values().collect();
        let asking = AskingWorkload {
            workload: &workload,
            requests: &requests,
            templates: &templates,
            flavors: AssignedFlavors::Own(&flavors),
        };
        let known = &workload.status.admission_checks[0];
        decide(asking, AskedCheck { known, config: config.as_ref() })
    }
}

fn config(words: &[(&str, String)]) -> Value {
    let mut spec = json!({ "provisioningClassName": "queued", "retryStrategy": {} });
    for (key, value) in words {
        let pair = value.split_once(':').unwrap_or((value, ""));
        match *key {
            "class" => spec["provisioningClassName"] = json!(value),
            "limit" => spec["retryStrategy"]["backoffLimitCount"] = number(value),
            "base" => spec["retryStrategy"]["backoffBaseSeconds"] = number(value),
            "max" => spec["retryStrategy"]["backoffMaxSeconds"] = number(value),
            "managed" => spec["managedResources"] = json!([value]),
            "merge" => spec["podSetMergePolicy"] = json!(value),
            "param" => spec["parameters"][pair.0] = json!(pair.1),
            "select" => {
                let one = json!({ "key": pair.0, "valueFromProvisioningClassDetail": pair.1 });
                let updates = &mut spec["podSetUpdates"]["nodeSelector"];
                if updates.is_null() {
                    *updates = json!([]);
                }
                push(updates, one);
            }
            other => panic!("no such field: {other}"),
        }
    }
    spec
}

fn request(words: &[(&str, String)]) -> ProvisioningRequest {
    let attempt = words[0].0;
    let mut request = json!({
        "metadata": { "name": format!("w-prov-{attempt}"), "uid": format!("r{attempt}"), "ownerReferences": [
            { "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "w", "uid": "u", "controller": true },
        ] },
        "spec": { "provisioningClassName": "queued", "podSets": [
            { "count": 3, "podTemplateRef": { "name": format!("ppt-w-prov-{attempt}-main") } },
        ] },
        "status": { "conditions": [], "provisioningClassDetails": {} },
    });
    for (key, value) in &words[1..] {
        let pair = value.split_once(':').unwrap_or((value, ""));
        match *key {
            "class" => request["spec"]["provisioningClassName"] = json!(value),
            "detail" => request["status"]["provisioningClassDetails"][pair.0] = json!(pair.1),
            "param" => request["spec"]["parameters"][pair.0] = json!(pair.1),
            "foreign" => request["metadata"]["ownerReferences"] = json!([]),
            "deleting" => request["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            // `!Provisioned` is false.
            condition => push(
                &mut request["status"]["conditions"],
                json!({
                    "type": condition.trim_start_matches('!'), "message": value,
                    "status": if condition.starts_with('!') { "False" } else { "True" },
                }),
            ),
        }
    }
    decoded(&request)
}

fn text(decision: &CheckDecision) -> String {
    let mut lines = Vec::new();
    if let Some(update) = &decision.update {
        let after = update.requeue_after_seconds.map(|after| format!(" again in {after} s"));
        lines.push(format!("{} {:?}{}", update.state, update.message, after.unwrap_or_default()));
        for one in &update.pod_set_updates {
            let (annotations, selector) = (json!(one.annotations), json!(one.node_selector));
            lines.push(format!("  {}: {annotations} {selector}", one.name));
        }
    }
    lines.extend(decision.unused.iter().map(|name| format!("delete {name}")));
    lines.extend(decision.step.iter().flat_map(step));
    if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") }
}

fn step(step: &RequestStep) -> Vec<String> {
    match step {
        RequestStep::CreateTemplates(all) => all
            .iter()
            .map(|one| {
                let name = one.metadata.name.as_deref().unwrap_or_default();
                format!("create {name} {}", json!(one.template))
            })
            .collect(),
        RequestStep::DeleteTemplates(names) => {
            names.iter().map(|name| format!("delete template {name}")).collect()
        }
        RequestStep::CreateRequest(request) => {
            let name = request.metadata.name.as_deref().unwrap_or_default();
            vec![format!("create {name} {}", json!(request.spec))]
        }
        RequestStep::HandOver(all) => all
            .iter()
            .map(|(name, owners)| {
                let owners: Vec<&str> = owners.iter().map(|owner| &*owner.uid).collect();
                format!("hand over {name} to {}", owners.join(" "))
            })
            .collect(),
    }
}

fn push(list: &mut Value, one: Value) {
    list.as_array_mut().expect("a list").push(one);
}

fn number(text: &str) -> Value {
    json!(text.parse::<i32>().expect("a number"))
}

fn decoded<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("decodes")
}
