//! Statuses of copies that the manager's API server does not store as they are written (docs/reference/multikueue.md §2.3 step 3).

use std::time::Duration;

use super::{
    dispatched::{done, east},
    job_kinds::{
        connect_with, manager, training, training_clone, training_kind, training_workload,
    },
    *,
};

/// The clone of a Training that has ended.
fn finished_clone() -> Value {
    let mut clone = training_clone();
    let end =
        json!({"type": "Finished", "status": "True", "reason": "Succeeded", "message": "all done"});
    clone["status"]["conditions"].as_array_mut().expect("a list").push(end);
    clone
}

/// The copy of the Training on the worker.
fn training_copy(version: &str, status: &Value) -> Value {
    let mut copy = training(version, false, status);
    copy["metadata"]["uid"] = json!("copy-1");
    copy["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    copy["metadata"]["annotations"] =
        json!({"sluice.dev/epoch": "1", "kueue.x-k8s.io/prebuilt-workload-name": "training-train"});
    copy["spec"]["run"] = json!({"suspend": false});
    copy
}

/// A manager with a Training that shows a status, and a worker with clone and copy.
fn dispatched(shown: &Value, clone: Value, copied: &Value) -> ManagerControl {
    let mut control = manager(training("30", false, shown), &[training_workload()]);
    connect_with(&mut control, vec![clone], vec![training_copy("52", copied)]);
    control
}

/// Orders that concern the job and the end of its Workload.
fn orders(step: &Decisions) -> Vec<&str> {
    let purposes = step.orders.iter().map(|order| order.ticket.purpose.name());
    purposes.filter(|purpose| ["sync-status", "finish"].contains(purpose)).collect()
}

/// What Events with this reason say.
fn notes(step: &Decisions, reason: &str) -> Vec<String> {
    let events = step.events.iter().filter(|event| event.reason == reason);
    events.map(|event| format!("{}: {}", event.regarding.kind, event.note)).collect()
}

/// The answer of an API server that refuses the status.
fn refused(code: u16) -> WriteOutcome {
    let (reason, message) = ("Invalid".to_owned(), "status.state: Unsupported value".to_owned());
    WriteOutcome::Refused { code, reason, message }
}

/// Answers the write of a status.
fn answer(control: &mut ManagerControl, step: &Decisions, answer: WriteOutcome, now: Timestamp) {
    let is_status = |order: &&Order| order.ticket.purpose == Purpose::SyncStatus;
    let order = step.orders.iter().find(is_status).expect("the status is copied");
    control.answered(&order.ticket, answer, now);
}

#[test]
fn the_last_status_is_written_once_if_the_api_server_stores_it_otherwise() {
    let (pruned, defaulted) = (json!({"state": "Done"}), json!({"state": "Done", "attempts": 0}));
    let written = json!({"state": "Done", "newField": 1});
    for (ended, stored) in [(&written, &pruned), (&pruned, &defaulted)] {
        let mut control = dispatched(&json!({}), finished_clone(), ended);
        let step = control.decide(NOW);
        assert_eq!(orders(&step), ["sync-status"]);
        done(&mut control, &step, "sync-status", training("31", false, stored), NOW);
        let step = control.decide(NOW);
        assert_eq!(orders(&step), ["finish"], "{stored}");
        assert_eq!(notes(&step, "JobEndUnknown"), [""; 0], "the job shows its end");
    }
}

/// Answers each write of a status in the same way, until the Workload finishes. Returns that decision and its second.
fn finished(
    control: &mut ManagerControl,
    answer_of: impl Fn() -> WriteOutcome,
) -> (Decisions, u64, Vec<String>) {
    let mut refusals = Vec::new();
    for second in 0..600 {
        let now = NOW + Duration::from_secs(second);
        let step = control.decide(now);
        refusals.extend(notes(&step, "StatusRefused"));
        if orders(&step).contains(&"finish") {
            return (step, second, refusals);
        }
        if orders(&step).contains(&"sync-status") {
            answer(control, &step, answer_of(), now);
        }
    }
    panic!("the Workload does not finish");
}

#[test]
fn a_job_whose_end_is_pruned_gets_an_event_with_the_end_of_its_workload() {
    let mut control =
        dispatched(&json!({}), finished_clone(), &json!({"state": "Done", "active": 0}));
    let stored = || WriteOutcome::Done(training("31", false, &json!({"active": 0})).into());
    let (step, second, _) = finished(&mut control, stored);
    assert!((300..400).contains(&second), "{second}");
    let note = "Training: The workload has finished on worker cluster \"east\" (Succeeded: all done), where its copy has an end that the API \
                server of the manager cluster does not store; the status of the job stays as it is";
    assert_eq!(notes(&step, "JobEndUnknown"), [note]);
}

#[test]
fn a_workload_finishes_if_the_api_server_goes_on_to_refuse_the_last_status_of_its_job() {
    for code in [400, 422] {
        let mut control = dispatched(&json!({}), finished_clone(), &json!({"state": "Done"}));
        let (step, second, refusals) = finished(&mut control, || refused(code));
        assert!((300..400).contains(&second), "{code}: {second}");
        let note = "Training: The status of the copy is refused: status.state: Unsupported value";
        assert_eq!(refusals.first().map(String::as_str), Some(note), "{code}");
        assert_eq!(notes(&step, "JobEndUnknown").len(), 1, "{code}");
    }
}

#[test]
fn an_end_that_is_taken_after_a_refusal_is_not_lost() {
    let mut control = dispatched(&json!({}), finished_clone(), &json!({"state": "Done"}));
    let step = control.decide(NOW);
    answer(&mut control, &step, refused(422), NOW);
    let (step, now) = next_sync(&mut control, NOW).expect("it is written again");
    done(&mut control, &step, "sync-status", training("31", false, &json!({"state": "Done"})), now);
    let step = control.decide(now);
    assert_eq!(orders(&step), ["finish"]);
    assert_eq!(notes(&step, "JobEndUnknown"), [""; 0]);
}

#[test]
fn a_status_is_written_again_if_the_api_server_may_take_it_later() {
    for code in [403, 500] {
        let mut control = dispatched(&json!({}), finished_clone(), &json!({"state": "Done"}));
        let step = control.decide(NOW);
        answer(&mut control, &step, refused(code), NOW);
        let later = NOW + Duration::from_secs(61);
        let step = control.decide(later);
        assert_eq!(orders(&step), ["sync-status"], "{code}");
        assert_eq!(notes(&step, "StatusRefused"), [""; 0], "{code}");
    }
}

/// The first decision of the next seconds that writes a status, and when. The throttle of statuses delays it.
fn next_sync(control: &mut ManagerControl, from: Timestamp) -> Option<(Decisions, Timestamp)> {
    let times = (0..90).map(|second| from + Duration::from_secs(second));
    let steps = times.map(|now| (control.decide(now), now)).collect::<Vec<_>>();
    steps.into_iter().find(|(step, _)| orders(step) == ["sync-status"])
}

#[test]
fn a_pruned_status_is_written_once_for_each_status_of_the_copy_and_of_the_job() {
    let status = |active: u32| json!({"state": "Running", "active": active, "newField": active});
    let pruned = |active: u32| json!({"state": "Running", "active": active});
    let mut control = dispatched(&json!({}), training_clone(), &status(1));
    let (step, now) = next_sync(&mut control, NOW).expect("it differs");
    done(&mut control, &step, "sync-status", training("31", false, &pruned(1)), now);
    assert!(next_sync(&mut control, now).is_none());

    let copy = training_kind().decode(training_copy("53", &status(2))).expect("a Training");
    control.observe(east(WorkerInput::Job(training_kind(), Change::Apply(Arc::new(copy)))), now);
    let (step, now) = next_sync(&mut control, now).expect("the copy has another status");
    done(&mut control, &step, "sync-status", training("32", false, &pruned(2)), now);
    assert!(next_sync(&mut control, now).is_none());

    let job = training_kind().decode(training("33", false, &pruned(1))).expect("a Training");
    let change = Change::Apply(Arc::new(job));
    control.observe(ManagerInput::Job(training_kind(), change), now);
    assert!(next_sync(&mut control, now).is_some(), "a client has changed the status");
}
