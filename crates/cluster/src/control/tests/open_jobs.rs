//! A clone that has finished on a worker without a copy of its Job (docs/reference/multikueue.md §2.3 step 3).

use jiff::ToSpan;

use super::{
    dispatched::{
        connect, copies, dispatching, done, hub_job, hub_workload, name, orders, running,
    },
    *,
};

/// The clone, finished.
fn finished_clone() -> Value {
    let (mut clone, _) = copies();
    let end =
        json!({"type": "Finished", "status": "True", "reason": "Succeeded", "message": "all done"});
    clone["status"]["conditions"].as_array_mut().expect("a list").push(end);
    clone
}

/// What Events say about the missing end, with the object that they are about.
fn notes(step: &Decisions) -> Vec<String> {
    let open = step.events.iter().filter(|event| event.reason == "JobEndUnknown");
    let words = |event: &runtime::events::EventRecord| {
        let about = &event.regarding;
        format!("{} {}: {}", about.kind, about.key, event.note)
    };
    open.map(words).collect()
}

const NOTE: &str = "Job ns/train: The workload has finished on worker cluster \"east\" (Succeeded: all done), where no copy of the job is \
     left; the status of the job stays as it is";

#[test]
fn a_job_without_a_copy_to_take_its_end_from_gets_an_event_with_the_end_of_its_workload() {
    for job in [hub_job("20", false, &running()), hub_job("20", false, &json!({}))] {
        let mut control = dispatching(&job, &[hub_workload()]);
        connect(&mut control, vec![finished_clone()], vec![]);
        let step = control.decide(NOW);
        assert!(orders(&step).contains(&"hub finish".to_owned()), "{:?}", orders(&step));
        assert_eq!(notes(&step), [NOTE]);

        let mut over = hub_workload();
        over["metadata"]["resourceVersion"] = json!("71");
        let end = json!({"type": "Finished", "status": "True", "reason": "Succeeded", "message": "all done"});
        over["status"]["conditions"].as_array_mut().expect("a list").push(end);
        done(&mut control, &step, "finish", over, NOW);
        let step = control.decide(NOW);
        assert!(orders(&step).contains(&"east clone-delete".to_owned()), "{:?}", orders(&step));
        assert_eq!(notes(&step), [""; 0], "it is reported once");
    }
}

#[test]
fn a_job_that_shows_another_end_than_its_copy_gets_an_event_with_the_end_of_its_workload() {
    let conditions = |kinds: &[&str]| -> Vec<Value> {
        kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect()
    };
    let shown =
        json!({"startTime": "2026-01-01T00:00:00Z", "conditions": conditions(&["FailureTarget"])});
    let ended = json!({
        "succeeded": 2, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z",
        "conditions": conditions(&["SuccessCriteriaMet", "Complete"]),
    });
    let (_, mut copy) = copies();
    copy["status"] = ended;
    let mut control = dispatching(&hub_job("20", false, &shown), &[hub_workload()]);
    connect(&mut control, vec![finished_clone()], vec![copy]);
    let step = control.decide(NOW);
    let is_status = |order: &&Order| order.ticket.purpose.name() == "sync-status";
    let order = step.orders.iter().find(is_status).expect("the counts are copied");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    assert_eq!(body["status"].get("conditions"), None, "the API server refuses this end");
    let mut counts = shown;
    for (field, value) in body["status"].as_object().expect("a status") {
        counts[field] = value.clone();
    }
    done(&mut control, &step, "sync-status", hub_job("21", false, &counts), NOW);
    let step = control.decide(NOW);
    let note = "Job ns/train: The workload has finished on worker cluster \"east\" (Succeeded: all done), where its copy has ended \
                otherwise than an earlier one, whose end the job shows; the status of the job stays as it is";
    assert_eq!(notes(&step), [note]);
    // The counts that were copied are those of pods that have succeeded.
    let mut reclaimed = hub_workload();
    reclaimed["metadata"]["resourceVersion"] = json!("71");
    reclaimed["status"]["reclaimablePods"] = json!([{"name": "main", "count": 2}]);
    done(&mut control, &step, "reclaim", reclaimed, NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub finish"]);
    assert_eq!(notes(&step), [""; 0], "it is reported once");
}

#[test]
fn a_job_that_shows_its_end_gets_no_event_though_its_copy_is_gone() {
    let ended = json!({
        "succeeded": 2, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    });
    let mut control = dispatching(&hub_job("20", false, &ended), &[hub_workload()]);
    connect(&mut control, vec![finished_clone()], vec![]);
    let step = control.decide(NOW);
    assert!(orders(&step).contains(&"hub finish".to_owned()), "{:?}", orders(&step));
    assert_eq!(notes(&step), [""; 0]);
}

#[test]
fn a_worker_that_refuses_to_say_whether_a_copy_exists_delays_the_end_for_a_minute() {
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
    connect(&mut control, vec![finished_clone()], vec![]);
    let key = Key { namespace: Some("ns".into()), name: "train".into() };
    let target =
        Target { to: Destination::Worker("east".into()), subject: Subject::Job(batch_job()), key };
    let waiter = Reevaluation::Workload(Key { namespace: Some("ns".into()), name: name().into() });
    control.core.ctx.outbox.doubt(target, None, waiter);
    let mut decide = |at: Timestamp| {
        let step = control.decide(at);
        let reads = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::Settle);
        for read in reads {
            let (code, reason, message) = (403, "Forbidden".to_owned(), "no".to_owned());
            let refused = WriteOutcome::Refused { code, reason, message };
            control.answered(&read.ticket, refused, at);
        }
        step
    };
    for seconds in [0, 30, 59] {
        let step = decide(NOW + seconds.seconds());
        assert!(!orders(&step).contains(&"hub finish".to_owned()), "{:?}", orders(&step));
        assert!(step.wake.is_some_and(|wake| wake <= NOW + 60.seconds()), "{:?}", step.wake);
    }
    let step = decide(NOW + 60.seconds());
    assert!(orders(&step).contains(&"hub finish".to_owned()), "{:?}", orders(&step));
    assert_eq!(notes(&step), [NOTE]);
}
