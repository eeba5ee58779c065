//! Workloads that the API server does not accept.

use super::{cluster::Cluster, *};

/// Decides, and refuses the creates of Workloads with this message. Returns their number.
fn refuse(cluster: &mut Cluster, message: &str) -> usize {
    let step = cluster.control.decide(cluster.now);
    cluster.events.extend(step.events);
    let of_create = |order: &&Order| order.ticket.purpose == Purpose::WorkloadCreate;
    let creates: Vec<&Order> = step.orders.iter().filter(of_create).collect();
    for order in &creates {
        let (reason, message) = ("Forbidden".to_owned(), message.to_owned());
        let refused = WriteOutcome::Refused { code: 403, reason, message };
        cluster.control.answered(&order.ticket, refused, cluster.now);
    }
    let step = cluster.control.decide(cluster.now);
    cluster.events.extend(step.events);
    creates.len()
}

#[test]
fn a_refused_workload_is_an_event_of_its_job_once_for_each_message() {
    let mut cluster = Cluster::new();
    let job = Change::Apply(Arc::new(batch_job().decode(json!(job())).expect("a Job decodes")));
    cluster.observe(ManagerInput::Job(batch_job(), job));
    let quota = "exceeded quota: workloads, requested: 1, used: 5, limited: 5";
    assert_eq!(refuse(&mut cluster, quota), 1);
    let events = cluster.take_events();
    let [event] = &events[..] else { panic!("{events:?}") };
    assert!(
        event.starts_with(
            "train batch/job-kueue-controller FailedToCreateWorkload: Failed to create Workload ns/job-train-"
        ),
        "{event}"
    );
    assert!(event.ends_with(quota), "{event}");
    cluster.wait(60);
    assert_eq!(refuse(&mut cluster, quota), 1, "it is tried again");
    assert_eq!(cluster.take_events(), [""; 0]);
    // A text that varies is no Event of each retry.
    cluster.wait(60);
    assert_eq!(refuse(&mut cluster, "a policy says no at noon"), 1);
    assert_eq!(cluster.take_events(), [""; 0]);
    cluster.wait(180);
    assert_eq!(refuse(&mut cluster, "a policy says no"), 1);
    let events = cluster.take_events();
    assert!(events.len() == 1 && events[0].ends_with("a policy says no"), "{events:?}");
    // The API server deletes Events after an hour.
    for (seconds, repeated) in [(29 * 60, 0), (60, 1), (29 * 60, 0)] {
        cluster.wait(seconds);
        assert_eq!(refuse(&mut cluster, "a policy says no"), 1);
        assert_eq!(cluster.take_events().len(), repeated, "{seconds}");
    }
    cluster.wait(60).settle();
    let events = cluster.take_events();
    assert!(events.iter().any(|event| event.contains("CreatedWorkload")), "{events:?}");
}

#[test]
fn a_refused_workload_of_a_group_is_an_event_of_its_oldest_member() {
    let mut cluster = workloads_of_groups::cluster();
    for (name, second) in [("late", 1), ("early", 0)] {
        let created = format!("2026-01-01T00:00:0{second}Z");
        let created = json!({"metadata": {"creationTimestamp": created}});
        workloads_of_groups::member(&mut cluster, name, 20, &created);
    }
    assert_eq!(refuse(&mut cluster, "no"), 1);
    let events = cluster.take_events();
    let expected =
        "early pod-kueue-controller FailedToCreateWorkload: Failed to create Workload ns/team: no";
    assert!(events.contains(&expected.to_owned()), "{events:?}");
}
