//! What agents do on a worker.

use super::*;

pub(super) const SLOW: [SimulatedAgent; 4] =
    [SimulatedAgent::Admit, SimulatedAgent::Start, SimulatedAgent::Stop, SimulatedAgent::Remove];

/// Actions of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedAgent {
    Admit,
    Start,
    Complete,
    Conclude,
    Stop,
    Remove,
    Refuse,
    Evict,
    DeleteJob,
    DeleteClone,
}

pub(super) const KIND: [SimulatedAgent; 6] = [
    SimulatedAgent::Admit,
    SimulatedAgent::Start,
    SimulatedAgent::Complete,
    SimulatedAgent::Conclude,
    SimulatedAgent::Stop,
    SimulatedAgent::Remove,
];
pub(super) const UNKIND: [SimulatedAgent; 4] = [
    SimulatedAgent::Refuse,
    SimulatedAgent::Evict,
    SimulatedAgent::DeleteJob,
    SimulatedAgent::DeleteClone,
];

pub(super) fn act(stored: &mut StoredWorkload, agent: SimulatedAgent, now: Time) {
    if let Some(clone) = stored.clone.as_mut().map(|clone| &mut clone.view) {
        match agent {
            SimulatedAgent::Admit => clone.admitted_at = Some(now),
            SimulatedAgent::Conclude => clone.finished = Some(("Succeeded".into(), "done".into())),
            SimulatedAgent::Refuse => clone.refused = Some("no".into()),
            SimulatedAgent::Evict => (clone.evicted, clone.admitted_at) = (true, None),
            _ => {}
        }
    }
    if let Some(job) = &mut stored.job {
        match agent {
            SimulatedAgent::Start => job.running = true,
            SimulatedAgent::Complete => (job.running, job.done) = (false, true),
            SimulatedAgent::Stop => job.running = false,
            SimulatedAgent::DeleteJob => job.deleting = true,
            _ => {}
        }
    }
    match agent {
        SimulatedAgent::Remove => stored.job = None,
        SimulatedAgent::DeleteClone => stored.clone = None,
        _ => {}
    }
}
