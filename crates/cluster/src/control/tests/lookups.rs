//! Jobs whose pod templates stand in another object.

use kube::core::DynamicObject;
use runtime::watch::Unavailable;

use ::jobs::lookups::LookupKind;

use super::{
    dispatched::{done, orders},
    *,
};

const COURSE: &str = "
framework: example.com/course
group: example.com
version: v1
kind: Course
plural: courses
suspend: /spec/suspend
lookups:
- { name: recipe, group: example.com, version: v1, kind: Recipe, plural: recipes, at: /spec/recipe }
fields:
  podSets:
  - name: { fixed: main }
    template: /spec/template
    from: { lookup: recipe, additions: /spec/additions }
    replicas: { at: /spec/size }
  active: { anyAbove: [/status/active] }
";

fn course_kind() -> Kind {
    Kind::parse(COURSE).expect("a kind")
}

fn recipe_kind() -> LookupKind {
    course_kind().lookups()[0].object_kind()
}

fn course(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Course",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "30",
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {"suspend": true, "recipe": name, "size": 2},
    })
}

fn courses(names: &[&str]) -> ManagerInput {
    let decode = |name: &&str| Arc::new(course_kind().decode(course(name)).expect("decodes"));
    let objects = names.iter().map(decode).collect();
    ManagerInput::Job(course_kind(), Change::Reset { objects, removed: vec![] })
}

fn recipe(name: &str, cpu: &str) -> Arc<DynamicObject> {
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Recipe",
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "1"},
        "spec": {"template": {"spec": {"containers": [
            {"name": "main", "resources": {"requests": {"cpu": cpu}}},
        ]}}},
    });
    Arc::new(serde_json::from_value(object).expect("a Recipe decodes"))
}

fn recipes(change: Change<DynamicObject>) -> ManagerInput {
    ManagerInput::LookedUp(recipe_kind(), change)
}

/// A manager with these Courses and no Recipe, which has listed everything else.
fn manager(names: &[&str]) -> ManagerControl {
    let file = Configuration::without_file(None).expect("defaults");
    let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::new([course_kind()]));
    let mut control =
        ManagerControl::new(ManagerSettings::new(&file, &Gates::default(), &kinds, false));
    for input in lists() {
        control.observe(
            match input {
                ManagerInput::Workload(_) => ManagerInput::Workload(list(vec![])),
                ManagerInput::Job(kind, _) => ManagerInput::Job(kind, jobs(vec![])),
                other => other,
            },
            NOW,
        );
    }
    control.observe(courses(names), NOW);
    control
}

/// The settings of a manager with one integration.
pub(super) fn settings_of(kind: &Kind) -> ManagerSettings {
    settings_with(&[kind.framework()], &Gates::default())
}

/// The settings of a manager with these integrations.
pub(super) fn settings_with(frameworks: &[&str], gates: &Gates) -> ManagerSettings {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks = frameworks.iter().map(|one| (*one).to_owned()).collect();
    let kinds = JobKinds::configured(&file, gates, &Kinds::default());
    ManagerSettings::new(&file, gates, &kinds, false)
}

/// A manager that has observed a Workload, its job, and the one object that the job is rendered from.
pub(super) fn manager_of_rendered(
    settings: ManagerSettings,
    (kind, job): (&Kind, JobObject),
    workload: &Value,
    (kind_of_object, object): (LookupKind, &Arc<DynamicObject>),
) -> ManagerControl {
    let mut control = ManagerControl::new(settings);
    for input in lists() {
        let input = match input {
            ManagerInput::Workload(_) => ManagerInput::Workload(list(vec![workload.clone()])),
            ManagerInput::Job(..) => continue,
            other => other,
        };
        control.observe(input, NOW);
    }
    let change = Change::Reset { objects: vec![Arc::new(job)], removed: vec![] };
    control.observe(ManagerInput::Job(kind.clone(), change), NOW);
    for rule in kind.lookups() {
        let is_needed = rule.object_kind() == kind_of_object;
        let objects = is_needed.then(|| Arc::clone(object)).into_iter().collect();
        let change = Change::Reset { objects, removed: vec![] };
        control.observe(ManagerInput::LookedUp(rule.object_kind(), change), NOW);
    }
    control
}

fn refusals(step: &Decisions) -> Vec<String> {
    let refused = step.events.iter().filter(|event| event.reason == "NeededObjectMissing");
    refused.map(|event| format!("{} {}", event.regarding.key.name, event.note)).collect()
}

fn creates(step: &Decisions) -> Vec<Value> {
    let create = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::WorkloadCreate);
    create.map(|one| serde_json::from_slice(one.write.request().body()).expect("JSON")).collect()
}

#[test]
fn a_job_waits_for_the_object_that_it_names() {
    let mut control = manager(&["a", "b"]);
    assert!(!control.is_complete(), "the kind was not listed");
    control.observe(recipes(Change::Reset { objects: vec![], removed: vec![] }), NOW);
    assert!(control.is_complete());
    let step = control.decide(NOW);
    assert_eq!(orders(&step), [""; 0]);
    let missing = |name| format!("{name} Recipe.example.com \"{name}\" does not exist");
    assert_eq!(refusals(&step), [missing("a"), missing("b")]);

    // Another evaluation repeats no Event.
    control.observe(courses(&["a", "b"]), NOW);
    assert_eq!(refusals(&control.decide(NOW)), [""; 0]);

    control.observe(recipes(Change::Apply(recipe("b", "3"))), NOW);
    let step = control.decide(NOW);
    let created = creates(&step);
    assert_eq!(created.len(), 1, "only the job that names it");
    assert_eq!(created[0]["metadata"]["ownerReferences"][0]["name"], "b");
    let container = &created[0]["spec"]["podSets"][0]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"]["cpu"], "3");
    assert_eq!(created[0]["spec"]["podSets"][0]["count"], 2);
}

#[test]
fn a_waiting_workload_follows_the_object() {
    let mut control = manager(&["a"]);
    let objects = vec![recipe("a", "30")];
    control.observe(recipes(Change::Reset { objects, removed: vec![] }), NOW);
    let step = control.decide(NOW);
    let mut workload = creates(&step).remove(0);
    workload["metadata"]["uid"] = json!("w");
    workload["metadata"]["resourceVersion"] = json!("40");
    done(&mut control, &step, "workload-create", workload, NOW);
    control.decide(NOW);

    control.observe(recipes(Change::Apply(recipe("a", "31"))), NOW);
    let step = control.decide(NOW);
    assert!(orders(&step).contains(&"hub workload-update".to_owned()), "{:?}", orders(&step));

    // Without the object nothing is lost.
    let key = Key { namespace: Some("ns".into()), name: "a".into() };
    control.observe(recipes(Change::Delete(key)), NOW);
    let step = orders(&control.decide(NOW));
    assert!(step.iter().all(|order| !order.contains("delete")), "{step:?}");
}

#[test]
fn a_kind_of_objects_that_cannot_be_observed_holds_up_no_other() {
    let table = [
        (
            Unavailable::NotServed,
            "a Recipe.example.com \"a\" does not exist: the cluster does not serve Recipe.example.com",
        ),
        (
            Unavailable::Forbidden,
            "a Recipe.example.com \"a\" cannot be read: listing Recipe.example.com is forbidden",
        ),
    ];
    for (reason, message) in table {
        let mut control = manager(&["a"]);
        let mut job = json!(job());
        job["metadata"]["uid"] = json!("other");
        control.observe(ManagerInput::Job(batch_job(), jobs(vec![job])), NOW);
        control.observe(recipes(Change::Unavailable { reason, removed: vec![] }), NOW);
        let step = control.decide(NOW);
        assert_eq!(orders(&step), ["hub workload-create"], "of the Job");
        assert_eq!(refusals(&step), [message]);

        let objects = vec![recipe("a", "1")];
        control.observe(recipes(Change::Reset { objects, removed: vec![] }), NOW);
        assert_eq!(creates(&control.decide(NOW)).len(), 1);
    }
}

/// The only order about readiness, as its status of the condition.
fn readiness(step: &Decisions) -> Option<Value> {
    let mut orders = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::PodsReady);
    let body =
        serde_json::from_slice::<Value>(orders.next()?.write.request().body()).expect("JSON");
    let conditions = body["status"]["conditions"].as_array().expect("conditions").clone();
    conditions.iter().find(|one| one["type"] == "PodsReady").map(|one| one["status"].clone())
}

#[test]
fn a_job_is_ready_when_all_that_its_object_asks_for_is() {
    let kind = Kinds::built_in().of_framework("trainer.kubeflow.org/trainjob").expect("TrainJob");
    let replicated = |name: &str| json!({"name": name, "template": {"spec": {"template": {"spec": {"containers": []}}}}});
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r", "resourceVersion": "1"},
        "spec": {"template": {"spec": {"replicatedJobs": [replicated("a"), replicated("b")]}}},
    });
    let object = |n_ready: usize| {
        let jobs = ["a", "b"].into_iter().enumerate();
        let jobs: Vec<Value> = jobs
            .map(|(at, name)| json!({"name": name, "active": 1, "ready": u8::from(at < n_ready)}))
            .collect();
        json!({
            "metadata": {
                "name": "t", "namespace": "ns", "uid": "uid-t", "resourceVersion": "30",
                "labels": {"kueue.x-k8s.io/queue-name": "lq"},
            },
            "spec": {"suspend": false, "runtimeRef": {"name": "r"}},
            "status": {"jobsStatus": jobs},
        })
    };
    let mut admitted = workload();
    admitted["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "t", "uid": "uid-t",
        "controller": true,
    }]);
    let mut found = ::jobs::lookups::FoundObjects::default();
    let decoded = kind.decode(object(2)).expect("it decodes");
    let needed = decoded.needed_objects().pop().expect("a runtime");
    let runtime: Arc<DynamicObject> = Arc::new(serde_json::from_value(runtime).expect("an object"));
    found.observe(needed.clone(), Some(Arc::clone(&runtime)));
    let sets = decoded.with_objects(&found).pod_sets(::jobs::JobGates::default());
    admitted["spec"]["podSets"] = json!(sets);
    let assigned = |name: &str| json!({"name": name, "count": 1, "flavors": {}});
    let assignments = json!([assigned("a"), assigned("b")]);
    admitted["status"]["admission"]["podSetAssignments"] = assignments;
    let noted = json!({"type": "PodsReady", "status": "True", "reason": "Started", "message": ""});
    admitted["status"]["conditions"][2] = noted;

    let of = |n_ready: usize| {
        let mut settings = settings_of(kind);
        let policy = config::WaitForPodsReady::default();
        settings.core.pods_ready = Some(PodsReadyPolicy::from(&policy));
        let job = kind.decode(object(n_ready)).expect("it decodes");
        let needed = (needed.kind.clone(), &runtime);
        let mut control = manager_of_rendered(settings, (kind, job), &admitted, needed);
        assert!(control.is_complete());
        readiness(&control.decide(NOW))
    };
    assert_eq!(of(2), None, "it is ready already");
    assert_eq!(of(1), Some(json!("False")));
}
