//! Compares results with the recording.
//!
//! Decisions: the heads that had an effect (admitted, preempting, deferred) in order, with their assignments and
//! targets, and the end state. Words: reason and message of every other head that both sides evaluated in a step.
//! Evaluations: all heads of every step in order, with their outcomes.

use super::Tally;
use super::case::{Case, CycleExpect, Head};
use super::quantity;
use super::run::Played;

/// Compares one case and enters the result into the tally.
pub(crate) fn compare(case: &Case, played: &Played, tally: &mut Tally) {
    match decisions(case, played).or_else(|| end(case, played)) {
        None => tally.passed += 1,
        Some(difference) => tally.failed.push((case.id.clone(), difference)),
    }
    words(case, played, tally);
}

/// Compares the evaluated heads, step by step.
pub(crate) fn turns(case: &Case, played: &Played, tally: &mut Tally) {
    for step in 0..case.expect.steps {
        let left: Vec<Head> =
            recorded(case, step).into_iter().flat_map(|one| &one.heads).map(normal).collect();
        let found = played.cycles.iter().filter(|(at, _)| *at == step);
        let right: Vec<Head> =
            found.flat_map(|(_, heads)| heads).map(|(head, _)| normal(head)).collect();
        if left != right {
            let brief = |heads: &[Head]| heads.iter().map(brief).collect::<Vec<_>>();
            let (left, right) = (brief(&left), brief(&right));
            tally.out_of_turn.push(format!(
                "{} step {step}:\n  recorded {left:?}\n  found    {right:?}",
                case.id
            ));
        }
    }
}

fn has_effect(head: &Head) -> bool {
    matches!(head.result.as_str(), "admitted" | "preempting" | "deferred")
}

fn decisions(case: &Case, played: &Played) -> Option<String> {
    for step in 0..case.expect.steps {
        let expected = recorded(case, step).map(|cycle| &cycle.heads[..]).unwrap_or_default();
        let found = played.cycles.iter().find(|(at, _)| *at == step);
        let found = found.map(|(_, heads)| &heads[..]).unwrap_or_default();
        let mut left = expected.iter().filter(|head| has_effect(head)).map(normal);
        let mut right =
            found.iter().map(|(head, _)| head).filter(|head| has_effect(head)).map(normal);
        loop {
            match (left.next(), right.next()) {
                (None, None) => break,
                (left, right) if left == right => {}
                (left, right) => {
                    let context = found.iter().map(|(head, _)| brief(head)).collect::<Vec<_>>();
                    let recorded = expected.iter().map(brief).collect::<Vec<_>>();
                    return Some(format!(
                        "step {step}:\n  recorded {left:?}\n  found    {right:?}\n  recorded heads {recorded:?}\n  found heads    {context:?}"
                    ));
                }
            }
        }
    }
    None
}

fn brief(head: &Head) -> String {
    format!("{}@{} {} b{} {:?}", head.wl, head.cq, head.result, head.borrow, head.flavors)
}

fn recorded(case: &Case, step: u64) -> Option<&CycleExpect> {
    case.expect.cycles.iter().find(|cycle| cycle.step == step)
}

/// A head without words, amounts as numbers.
fn normal(head: &Head) -> Head {
    let mut head = Head { msg: None, reason: String::new(), ..head.clone() };
    head.targets.sort();
    head.flavors.retain(|_, flavors| !flavors.is_empty());
    for pod_set in &mut head.pod_sets {
        for (resource, text) in &mut pod_set.usage {
            if let Ok(amount) = quantity::amount(resource, text) {
                *text = amount.0.to_string();
            }
        }
    }
    head
}

fn end(case: &Case, played: &Played) -> Option<String> {
    for (name, expected) in &case.expect.end.cluster_queues {
        let found = played.end.cluster_queues.get(name);
        if found != Some(expected) {
            return Some(format!("end of {name}:\n  recorded {expected:?}\n  found    {found:?}"));
        }
    }
    let (expected, found) = (&case.expect.end.cohort_usage, &played.end.cohort_usage);
    (expected != found)
        .then(|| format!("end of cohorts:\n  recorded {expected:?}\n  found    {found:?}"))
}

fn words(case: &Case, played: &Played, tally: &mut Tally) {
    for (step, heads) in &played.cycles {
        let Some(expected) = recorded(case, *step) else {
            continue;
        };
        for (head, message) in heads {
            let Some(twin) = expected.heads.iter().find(|one| one.wl == head.wl) else {
                continue;
            };
            let recorded = twin.msg.map(|index| case.expect.messages[index].as_str());
            let Some(recorded) = recorded else { continue };
            tally.words.1 += 1;
            let message = &either_role(recorded, message);
            if recorded == message && twin.reason == head.reason {
                tally.words.0 += 1;
            } else {
                tally.misspoken.push(format!(
                    "{} step {step} {}:\n  recorded {} {recorded}\n  found    {} {message}",
                    case.id, head.wl, twin.reason, head.reason
                ));
            }
        }
    }
}

/// Upstream names a random one of the two pod sets of a group; the recording says so.
fn either_role(recorded: &str, found: &str) -> String {
    let both = "pod set <leader|workers>: topology";
    if !recorded.contains(both) {
        return found.to_owned();
    }
    let found = found.replace("pod set leader: topology", both);
    found.replace("pod set workers: topology", both)
}
