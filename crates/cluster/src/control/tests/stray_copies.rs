//! A job on a thin worker that has an origin and no clone.

use super::*;

#[test]
fn an_agent_makes_no_workload_for_a_copy_without_one() {
    let mut stray = serde_json::to_value(job()).expect("encodes");
    stray["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] = json!("another");
    let mut control =
        AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
    let lists = [
        AgentInput::LimitRange(list(vec![])),
        AgentInput::RuntimeClass(list(vec![])),
        AgentInput::Node(list(vec![])),
        AgentInput::Pod(list(vec![])),
        AgentInput::Capacity(list(vec![])),
        AgentInput::Lease(list(vec![])),
        AgentInput::Job(batch_job(), jobs(vec![stray])),
        AgentInput::Workload(list(vec![])),
    ];
    lists.into_iter().for_each(|list| control.observe(list, NOW));
    let orders = control.decide(NOW).orders;
    let creates = orders.iter().filter(|order| order.ticket.purpose == Purpose::WorkloadCreate);
    assert_eq!(creates.count(), 0);
}
