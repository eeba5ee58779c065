//! What lasts while the clock of the machine is set, beside the loss of a worker (`loss_clock`).

use jiff::SignedDuration;

use super::{
    dispatched::{copies, dispatched_to_east, done, east, hub_job, running},
    *,
};

/// Jumps of the clock, forward and back.
fn jumps() -> [SignedDuration; 2] {
    [3, -3].map(SignedDuration::from_hours)
}

fn copies_status(control: &mut ManagerControl, now: Timestamp) -> bool {
    control.decide(now).orders.iter().any(|one| one.ticket.purpose == Purpose::SyncStatus)
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
        assert!(!copies_status(&mut control, later(0)), "{by}");
        assert!(!copies_status(&mut control, later(999)), "{by}");
        assert!(copies_status(&mut control, later(1_000)), "{by}");
    }
}
