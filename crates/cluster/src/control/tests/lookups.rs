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
