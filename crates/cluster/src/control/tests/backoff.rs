//! Steps that a worker refuses or that do not last are tried again more and more slowly, and on other clusters.

use dispatch::{ClusterRefusal, PlacementRequest};
use jiff::ToSpan;

use super::{
    dispatched::{
        connect, copies, dispatching, done, east, hub_job, hub_workload, name, nominated, on_east,
        running,
    },
    *,
};

fn refused(message: &str) -> WriteOutcome {
    WriteOutcome::Refused { code: 403, reason: String::new(), message: message.to_owned() }
}

fn answer(control: &mut ManagerControl, step: &Decisions, purpose: Purpose, answer: WriteOutcome) {
    let order = step.orders.iter().find(|order| order.ticket.purpose == purpose);
    let ticket = order.expect("it was ordered").ticket.clone();
    control.answered(&ticket, answer, control.core.ctx.now);
}

#[test]
fn a_refused_delete_is_not_repeated_with_every_status_of_the_job() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[]);
    let (clone, copy) = copies();
    connect(&mut control, vec![], vec![]);
    control.decide(NOW);
    let show = |control: &mut ManagerControl, version: u64, now| {
        let mut copy = copy.clone();
        copy["metadata"]["resourceVersion"] = json!(version.to_string());
        let copy = Arc::new(batch_job().decode(copy).expect("a Job"));
        control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(copy))), now);
    };
    let clone = Change::Apply(shared(clone));
    control.observe(east(WorkerInput::Workload(clone)), NOW);
    show(&mut control, 60, NOW);
    let mut n_deletes = 0;
    for second in 0..60 {
        let now = NOW + second.seconds();
        show(&mut control, 61 + u64::try_from(second).expect("positive"), now);
        let step = control.decide(now);
        if on_east(&step).contains(&"east job-delete".to_owned()) {
            n_deletes += 1;
            answer(&mut control, &step, Purpose::JobDelete, refused("no"));
        }
    }
    assert_eq!(n_deletes, 6, "at 0, 1, 3, 7, 15 and 31 seconds");
}

#[test]
fn a_job_that_vanishes_after_each_create_is_created_more_and_more_slowly() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[nominated("21", false)]);
    connect(&mut control, vec![copies().0], vec![]);
    let mut n_creates = 0_u64;
    for second in 0..40 {
        let now = NOW + second.seconds();
        let step = control.decide(now);
        if !on_east(&step).contains(&"east job-create".to_owned()) {
            continue;
        }
        n_creates += 1;
        let mut copy = copies().1;
        copy["metadata"]["uid"] = json!(format!("copy-{n_creates}"));
        copy["metadata"]["resourceVersion"] = json!((100 * n_creates).to_string());
        done(&mut control, &step, "job-create", copy.clone(), now);
        let copy = Arc::new(batch_job().decode(copy).expect("a Job"));
        control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(copy))), now);
        let gone = Key { namespace: Some("ns".into()), name: "train".into() };
        control.observe(east(WorkerInput::Job(batch_job(), Change::Delete(gone))), now);
    }
    assert_eq!(n_creates, 6, "at 0, 1, 3, 7, 15 and 31 seconds");
}

/// Why the worker does not take the Workload now.
pub(super) fn left_out(control: &mut ManagerControl) -> Option<String> {
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    let record = control.core.workloads.get(&key).expect("the Workload");
    let (id, scheduler) = (record.id().expect("its number"), &control.core.scheduler);
    let request = Arc::clone(scheduler.request(id).expect("its request"));
    let work = Arc::new(dispatch::AssignedWorkload::new(request, vec![]));
    let order = scheduler.queue_order(id);
    let wanted = PlacementRequest {
        workload: id,
        config: "all",
        work: &work,
        order,
        only: None,
        alternative: false,
    };
    let now = time::engine_time(control.core.ctx.now);
    let chosen = control.dispatching.fleet.choose_cluster(&wanted, now);
    let reasons = chosen.err().map(|refusal| refusal.reasons).unwrap_or_default();
    reasons.into_iter().find_map(|(_, refusal)| match refusal {
        ClusterRefusal::Excluded { why, .. } => Some(why.into()),
        _ => None,
    })
}

/// A worker that reports a free node.
pub(super) fn reports(control: &mut ManagerControl) {
    let report = json!({
        "metadata": {"name": "local", "resourceVersion": "5"}, "spec": {},
        "status": {
            "protocol": 1, "mode": "Thin", "asOf": "4",
            "kinds": [{"group": "batch", "version": "v1", "kind": "Job"}],
            "nodeClasses": [{"count": 1, "free": {"cpu": "8", "pods": "10"}}],
        },
    });
    control.observe(east(WorkerInput::Capacity(list(vec![report]))), NOW);
}

/// A manager with a Workload that was evicted on the worker for this reason, and may be nominated again.
pub(super) fn evicted_on_east(reason: &str) -> ManagerControl {
    let mut evicted = hub_workload();
    evicted["status"]["conditions"].as_array_mut().expect("a list").push(
        json!({"type": "Evicted", "status": "True", "reason": reason, "message": "too late"}),
    );
    evicted["metadata"]["annotations"] = json!({"sluice.dev/epoch": "1"});
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[evicted.clone()]);
    connect(&mut control, vec![], vec![]);
    reports(&mut control);
    let step = control.decide(NOW);
    evicted["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    evicted["metadata"]["resourceVersion"] = json!("30");
    done(&mut control, &step, "raise-epoch", evicted, NOW);
    control.decide(NOW);
    control
}

#[test]
fn a_worker_where_pods_were_not_ready_in_time_is_not_the_next_choice() {
    for (reason, excluded) in [("PodsReadyTimeout", Some("too late")), ("Preempted", None)] {
        assert_eq!(left_out(&mut evicted_on_east(reason)).as_deref(), excluded);
    }
}
