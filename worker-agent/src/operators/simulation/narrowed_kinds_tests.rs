//! AppWrappers of a kind that a later agent, or one with other settings, does not make or may not read.

use serde_json::{Value, json};

use super::{faults::Disturbance, request::TRIAL, run::SimulatedRun, world::SharedWorld};

/// An AppWrapper of a Trial with two pods.
fn wrapper() -> Value {
    let template = json!({
        "apiVersion": "example.com/v1", "kind": TRIAL, "metadata": {"name": "t"},
        "spec": {"parallelism": 2, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "main"}],
        }}},
    });
    let component = json!({
        "template": template, "podSets": [{"path": "template.spec.template", "replicas": 2}],
    });
    json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w", "namespace": "ns"}, "spec": {"components": [component]},
    })
}

/// A run in which an agent has made the component, and its successor makes no Trials.
async fn narrowed() -> SimulatedRun {
    let world = SharedWorld::new(wrapper(), None);
    world.lock().jobs.push(("example.com".to_owned(), TRIAL.to_owned()));
    let mut run = SimulatedRun::start(world);
    run.run_for(30).await;
    assert_eq!((phase(&run), counts(&run)), (json!("Running"), (1, 2)));
    {
        let mut world = run.world.lock();
        world.jobs.pop();
        world.crashed = true;
    }
    run.run_for(200).await;
    run
}

fn phase(run: &SimulatedRun) -> Value {
    run.world.lock().parent()["status"]["phase"].clone()
}

/// The numbers of Trials and of pods.
fn counts(run: &SimulatedRun) -> (usize, usize) {
    let world = run.world.lock();
    (world.api.of_kind(TRIAL).count(), world.api.of_kind("Pod").count())
}

#[tokio::test(start_paused = true)]
async fn an_app_wrapper_runs_on_and_is_suspended_without_the_right_to_make_its_kind() {
    let mut run = narrowed().await;
    assert_eq!((phase(&run), counts(&run)), (json!("Running"), (1, 2)));
    run.world.lock().disturb(Disturbance::Suspend);
    run.run_for(60).await;
    assert_eq!((phase(&run), counts(&run)), (json!("Suspended"), (0, 0)));
    // A new one would be of a kind that is not made.
    run.suspend_any(false);
    run.run_for(60).await;
    assert_eq!((phase(&run), counts(&run)), (json!("Failed"), (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn an_app_wrapper_is_deleted_without_the_right_to_make_its_kind() {
    let mut run = narrowed().await;
    run.world.lock().disturb(Disturbance::Delete);
    run.run_for(60).await;
    assert_eq!((phase(&run), counts(&run)), (Value::Null, (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_component_that_may_not_be_read_is_not_missing() {
    let mut run = narrowed().await;
    run.world.lock().api.refused.insert(TRIAL.to_owned(), 403);
    run.world.lock().disturb(Disturbance::Delete);
    run.run_for(60).await;
    assert_eq!((phase(&run), counts(&run)), (json!("Running"), (1, 2)));
    let says = |(reason, note): &(String, String)| {
        reason == "ComponentUnreadable" && note.starts_with("Cannot read the component Trial t: ")
    };
    let n_events = run.world.lock().api.events.iter().filter(|event| says(event)).count();
    assert!(n_events > 0, "{:#?}", run.world.lock().api.events);
    run.world.lock().api.refused.clear();
    run.run_for(400).await;
    assert_eq!((phase(&run), counts(&run)), (Value::Null, (0, 0)));
}
