//! What lasts while the clock of the machine is set, beside the loss of a worker (`loss_clock`).

use jiff::{SignedDuration, ToSpan};

use super::{
    backoff::{evicted_on_east, left_out},
    cluster::Cluster,
    dispatched::{connect, copies, dispatched_to_east, dispatching, done, east, hub_job, running},
    failing_pods,
    relisted::syncs_status,
    reports::{agent, stored, written},
    unschedulable, *,
};

/// Jumps of the clock, forward and back.
fn jumps() -> [SignedDuration; 2] {
    [3, -3].map(SignedDuration::from_hours)
}

#[test]
fn the_status_of_a_copy_is_kept_back_for_as_long() {
    for by in jumps() {
        let mut control = dispatched_to_east();
        let step = control.decide(NOW);
        let shown = hub_job("60", false, &running());
        done(&mut control, &step, "sync-status", shown, NOW);
        control.decide(NOW);
        let (_, mut copy) = copies();
        copy["metadata"]["resourceVersion"] = json!("62");
        copy["status"]["failed"] = json!(1);
        control.clock_jumped(by);
        let later = |millis| NOW + by + SignedDuration::from_millis(millis);
        let copy = Arc::new(batch_job().decode(copy).expect("a Job"));
        let change = WorkerInput::Job(batch_job(), Change::Apply(copy));
        control.observe(east(change), later(0));
        assert!(!syncs_status(&mut control, later(0)), "{by}");
        assert!(!syncs_status(&mut control, later(999)), "{by}");
        assert!(syncs_status(&mut control, later(1_000)), "{by}");
    }
}

#[test]
fn a_worker_is_left_out_for_as_long() {
    for by in jumps() {
        let mut control = evicted_on_east("PodsReadyTimeout");
        control.clock_jumped(by);
        let mut is_left_out = |seconds: i64| {
            control.core.ctx.now = NOW + by + SignedDuration::from_secs(seconds);
            left_out(&mut control).is_some()
        };
        assert_eq!([59, 60].map(&mut is_left_out), [true, false], "{by}");
    }
}

#[test]
fn a_worker_that_is_not_registered_stays_connected_for_as_long() {
    for by in jumps() {
        let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
        connect(&mut control, vec![copies().0], vec![copies().1]);
        let key = Key { namespace: None, name: "east".into() };
        control.observe(ManagerInput::MultiKueueCluster(Change::Delete(key)), NOW);
        control.clock_jumped(by);
        // Twice the `workerLostTimeout`.
        let keep_for = SignedDuration::from_mins(30);
        let mut is_connected = |seconds: i64| {
            let at = NOW + by + keep_for + SignedDuration::from_secs(seconds);
            control.decide(at).connections.is_some_and(|plans| plans.contains_key("east"))
        };
        assert_eq!([-1, 0].map(&mut is_connected), [true, false], "{by}");
    }
}

#[test]
fn the_reason_of_a_pending_workload_is_shown_as_soon() {
    for by in jumps() {
        let mut cluster = Cluster::new();
        cluster.workload("large", 9, &json!({})).settle();
        cluster.control.clock_jumped(by);
        cluster.now += by;
        cluster.take_writes();
        let is_shown = |cluster: &mut Cluster| {
            cluster.settle().take_writes().contains(&"pending large".to_owned())
        };
        assert!(!is_shown(&mut cluster), "{by}");
        assert!(is_shown(cluster.wait(1)), "{by}");
    }
}

#[test]
fn an_agent_reports_as_often() {
    for by in jumps() {
        let (mut control, mut stored) = (agent(vec![]), stored());
        assert!(written(&mut control, &mut stored, NOW).is_some());
        control.decide(NOW + 2.seconds());
        control.clock_jumped(by);
        let later = |seconds| NOW + by + SignedDuration::from_secs(seconds);
        let step = control.decide(later(3));
        assert!(step.wake.is_some_and(|at| at <= later(10)), "{by}: {:?}", step.wake);
        assert_eq!(written(&mut control, &mut stored, later(9)), None, "{by}");
        assert!(written(&mut control, &mut stored, later(10)).is_some(), "{by}");
    }
}

#[test]
fn pods_may_be_refused_for_as_long() {
    for by in jumps() {
        let mut control = unschedulable::running(vec![]);
        control.observe(unschedulable::refusal("job-1"), NOW);
        control.decide(NOW);
        control.clock_jumped(by);
        let mut evictions = |second: i64| {
            let at = NOW + by + SignedDuration::from_secs(second);
            unschedulable::evictions(&control.decide(at))
        };
        assert_eq!([29, 30].map(&mut evictions), [0, 1], "{by}");
    }
}

#[test]
fn a_pod_may_fail_to_start_for_as_long_before_that_is_shown() {
    for by in jumps() {
        let fails = failing_pods::pod(30, Some(("ErrImagePull", "not found")));
        let mut control = unschedulable::running(vec![fails]);
        control.clock_jumped(by);
        let clone = workload();
        let mut is_shown = |second: i64| {
            let at = NOW + by + SignedDuration::from_secs(second);
            failing_pods::stored(&mut control, (&clone, 60), at).0.is_some()
        };
        assert_eq!([9, 10].map(&mut is_shown), [false, true], "{by}");
    }
}
