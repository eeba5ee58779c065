//! What the check of a Workload says while clusters race for it (docs/reference/multikueue.md §2.15, hazard 12).

use jiff::ToSpan;

use super::{
    hostile_workers::check_message,
    race::{clone, connect, manager_of, reserved, worker},
    *,
};

/// A Workload for which `east` and `west` race, and the message of its check.
struct ShownCheck {
    control: ManagerControl,
    version: u64,
}

impl ShownCheck {
    fn new() -> Self {
        let settings = dispatching_settings("kueue.x-k8s.io/multikueue-dispatcher-all-at-once");
        let mut control = manager_of(settings);
        ["east", "west"].into_iter().for_each(|name| connect(&mut control, name));
        let step = control.decide(NOW);
        let nominated = reserved("50", &["east", "west"]);
        dispatched::done(&mut control, &step, "reserve", nominated, NOW);
        control.decide(NOW);
        Self { control, version: 100 }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// The clone on a worker, which waits there for this reason; without one it does not say why.
    fn waits(&mut self, name: &str, why: Option<&str>) {
        let mut value = clone(&self.next_version(), false);
        if let Some(message) = why {
            value["status"]["conditions"] = json!([{
                "type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]);
        }
        self.shows(name, value);
    }

    fn shows(&mut self, name: &str, value: Value) {
        worker(&mut self.control, name, WorkerInput::Workload(Change::Apply(shared(value))));
    }

    /// The message that is written after so many seconds, which the Workload shows afterwards.
    fn written(&mut self, second: i64) -> Option<String> {
        let now = NOW + second.seconds();
        let step = self.control.decide(now);
        let message = check_message(&step)?;
        let mut shown = reserved(&self.next_version(), &["east", "west"]);
        shown["status"]["admissionChecks"][0]["message"] = json!(message);
        dispatched::done(&mut self.control, &step, "dispatched", shown.clone(), now);
        self.control.observe(ManagerInput::Workload(Change::Apply(shared(shown))), now);
        Some(message)
    }
}

#[test]
fn hazard_12_the_check_says_why_each_worker_has_not_admitted_its_clone() {
    let mut check = ShownCheck::new();
    check.waits("east", Some("no quota for cpu"));
    check.waits("west", Some(&"e".repeat(9000)));
    assert_eq!(check.written(9), None, "it may be admitted soon");
    let message = check.written(10).expect("a message");
    let begin = "Not admitted yet by worker clusters: \"east\": no quota for cpu; \"west\": eee";
    assert!(message.starts_with(begin) && message.len() < 400, "{message}");
    // A queue that says something else in every cycle.
    check.waits("east", Some("no quota for memory"));
    assert_eq!(check.written(39), None);
    let message = check.written(40).expect("the next message");
    assert!(message.contains("\"east\": no quota for memory; "), "{message}");
}

#[test]
fn a_message_about_disputed_copies_stays_while_other_clones_say_why_they_wait() {
    let mut check = ShownCheck::new();
    let mut disputed = clone("60", false);
    disputed["metadata"]["annotations"] = json!({"sluice.dev/epoch": "70000"});
    check.shows("west", disputed);
    check.waits("east", Some("no quota for cpu"));
    let message = check.written(0).expect("a message");
    assert!(message.starts_with("Worker cluster \"west\" has a copy"), "{message}");
    let later: Vec<String> = (1..100).filter_map(|second| check.written(second)).collect();
    assert_eq!(later, [""; 0]);
}

#[test]
fn a_message_is_taken_back_once_no_clone_says_why_it_waits() {
    let mut check = ShownCheck::new();
    // The words of a worker are not those of the manager about disputed copies.
    check.waits("east", Some("annotate it with sluice.dev/cleanup=confirmed"));
    assert!(check.written(10).is_some_and(|one| one.contains("cleanup")));
    let later: Vec<String> = (11..100).filter_map(|second| check.written(second)).collect();
    assert_eq!(later, [""; 0]);
    check.waits("east", None);
    assert_eq!(check.written(100).as_deref(), Some(""));
    assert_eq!(check.written(999), None);
}

#[test]
fn messages_that_change_in_every_cycle_are_written_more_and_more_seldom() {
    let mut check = ShownCheck::new();
    let mut written = vec![];
    for second in 0..3000 {
        check.waits("east", Some(&format!("cycle {second}")));
        written.extend(check.written(second).map(|_| second));
    }
    assert_eq!(written, [10, 40, 100, 220, 460, 940, 1540, 2140, 2740]);
}
