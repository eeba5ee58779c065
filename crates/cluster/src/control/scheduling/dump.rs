//! Queues and quota as text, as upstream's dump on SIGUSR2 has them: the Workloads of each ClusterQueue, then every usage.

use engine::{
    Engine,
    ids::{QueueId, WorkloadId},
};

/// All lines.
pub(super) fn dump(engine: &Engine) -> String {
    let names = engine.names();
    let queues = (0..names.queues.len()).map(QueueId::from);
    let lines: String = queues.map(|queue| queue_line(engine, queue)).collect();
    lines + &engine.debug_dump()
}

fn queue_line(engine: &Engine, queue: QueueId) -> String {
    let list = |ids: Vec<WorkloadId>| {
        let names: Vec<&str> =
            ids.into_iter().map(|id| engine.names().workloads.name(id)).collect();
        names.join(" ")
    };
    format!(
        "queue {}: active [{}], inadmissible [{}], with quota [{}]\n",
        engine.names().queues.name(queue),
        list(engine.active_workloads(queue)),
        list(engine.inadmissible_workloads(queue)),
        list(engine.reserving_workloads(queue)),
    )
}
