//! Compares an answer with the recorded one: code, object or refusal, and warnings.

use super::{
    case::{TraceAnswer, TraceStep},
    comparison,
    placeholders::TraceNames,
};
use crate::{
    compare::{Difference, Level, same_words},
    run::Reply,
};

/// How an answer differs from that of a step.
pub(super) fn differences(step: &TraceStep, reply: &Reply, names: &TraceNames) -> Vec<Difference> {
    let Some(answer) = &step.answer else {
        return vec![];
    };
    if answer.code != reply.code {
        return vec![of_codes(answer, reply.code, message(reply))];
    }
    let mut found = match &answer.object {
        Some(object) => of_objects(&comparison::of_answer(object, &reply.body, names)),
        None => of_messages(answer, message(reply), names).into_iter().collect(),
    };
    found.extend(of_warnings(answer, &reply.warnings, names));
    found
}

fn message(reply: &Reply) -> &str {
    reply.body["message"].as_str().unwrap_or_default()
}

fn of_objects(lines: &[String]) -> Vec<Difference> {
    let difference = |line| Difference { level: Level::Objects, text: format!("answer{line}") };
    lines.iter().map(difference).collect()
}

fn of_messages(recorded: &TraceAnswer, message: &str, names: &TraceNames) -> Option<Difference> {
    let expected = recorded.message.as_deref().map(|text| names.fill(text)).unwrap_or_default();
    let same = same_words(message, &expected) || names.matches(&expected, message);
    let text = format!("message\n      {message}\n    instead of\n      {expected}");
    (!same && !expected.is_empty()).then_some(Difference { level: Level::Words, text })
}

/// A recorded warning is the quoted text of its header. Warnings about unknown fields are left out: they depend on the version of the
/// CRDs of operators.
fn of_warnings(
    recorded: &TraceAnswer,
    headers: &[String],
    names: &TraceNames,
) -> Option<Difference> {
    let is_compared = |text: &&str| !text.starts_with("\"unknown field ");
    let expected = recorded.warnings.iter().map(String::as_str).filter(is_compared);
    let expected: Vec<String> = expected.map(|text| names.fill(text)).collect();
    let warnings = headers.iter().map(|header| quoted_text(header));
    let warnings: Vec<&str> = warnings.filter(is_compared).collect();
    let text = format!("warnings {warnings:?} instead of {expected:?}");
    (warnings != expected).then_some(Difference { level: Level::Words, text })
}

/// The text of a `Warning` header, after code and agent.
fn quoted_text(header: &str) -> &str {
    header.splitn(3, ' ').last().unwrap_or_default()
}

/// An answer with another code than the recorded one. The recorded words tell one refusal from another of the same code.
fn of_codes(recorded: &TraceAnswer, code: u16, message: &str) -> Difference {
    let same_verdict = (recorded.code < 400) == (code < 400);
    let level = if same_verdict { Level::Code } else { Level::Verdict };
    let words = recorded.message.as_deref().map(|words| format!(" ({words})"));
    let words = words.unwrap_or_default();
    let text = format!("code {code} instead of {}{words}: {message}", recorded.code);
    Difference { level, text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::wanted_differences, *};

    #[test]
    fn a_difference_of_codes_is_wanted_for_the_recorded_words_only() {
        let wanted = |refusal: &str| {
            let words =
                format!("admission webhook \"vtrainjob.kb.io\" denied the request: {refusal}");
            let answer = TraceAnswer { code: 403, message: Some(words), ..TraceAnswer::default() };
            let found = [of_codes(&answer, 200, "")];
            wanted_differences::reason("TrainJob/life/x", &found).is_some()
        };
        assert!(wanted("runtime 'nope' not found"));
        let immutable = "metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: \"main\": field is immutable";
        assert!(!wanted(immutable));
    }

    #[test]
    fn warnings_are_those_of_the_recording() {
        let step = |warnings: &[&str]| -> TraceStep {
            let answer = json!({"code": 200, "warnings": warnings});
            serde_json::from_value(json!({"step": 1, "answer": answer})).unwrap()
        };
        let found = |step: &TraceStep, headers: &[&str]| {
            let warnings = headers.iter().map(ToString::to_string).collect();
            let reply = Reply { code: 200, body: json!({}), warnings };
            let found = differences(step, &reply, &TraceNames::of("space"));
            found.into_iter().map(|one| (one.level, one.text)).collect::<Vec<_>>()
        };
        let (recorded, sent) = ("\"a in <ns>\"", "299 - \"a in space\"");
        assert_eq!(found(&step(&[recorded]), &[sent]), []);
        assert_eq!(found(&step(&[]), &[]), []);
        let unknown = "299 - \"unknown field \\\"spec.a\\\"\"";
        assert_eq!(found(&step(&[recorded]), &[unknown, sent]), []);
        let missing = "warnings [] instead of [\"\\\"a in space\\\"\"]".to_owned();
        assert_eq!(found(&step(&[recorded]), &[]), [(Level::Words, missing)]);
        let further = "warnings [\"\\\"a in space\\\"\"] instead of []".to_owned();
        assert_eq!(found(&step(&[]), &[sent]), [(Level::Words, further)]);
    }
}
