//! Compares a response with the recorded one, by level of difference.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::case::ExpectedResponse;

/// How much a response differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Accepted where Kueue refuses, or the other way round.
    Verdict,
    /// HTTP status and reason.
    Code,
    /// The fields that a refusal names.
    Fields,
    /// The object answered, or the object stored.
    Objects,
    /// Texts of refusals and warnings.
    Words,
}

/// A difference and its position.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// What kind of difference.
    pub level: Level,
    /// The difference, as text.
    pub text: String,
}

/// What came back, normalised.
#[derive(Debug)]
pub(crate) struct ReplayResponse {
    /// HTTP status.
    pub code: u16,
    /// The body.
    pub body: Value,
    /// `Warning` headers.
    pub warnings: Vec<String>,
    /// The object read back, by version.
    pub stored: Vec<(String, Value)>,
}

/// All differences, the gravest first.
pub(crate) fn compare(answer: &ReplayResponse, expect: &ExpectedResponse) -> Vec<Difference> {
    let mut found = Vec::new();
    let accepted = |code: u16| code < 400;
    if accepted(answer.code) != accepted(expect.code) {
        let text = format!("code {} instead of {}: {}", answer.code, expect.code, message(answer));
        return vec![Difference { level: Level::Verdict, text }];
    }
    if expect.do_not_copy {
        return found;
    }
    if answer.code != expect.code {
        let text = format!("code {} instead of {}: {}", answer.code, expect.code, message(answer));
        found.push(Difference { level: Level::Code, text });
    }
    if accepted(expect.code) {
        objects(answer, expect, &mut found);
    } else {
        refusal(answer, expect, &mut found);
    }
    if answer.warnings != expect.warnings {
        let text = format!("warnings {:?} instead of {:?}", answer.warnings, expect.warnings);
        found.push(Difference { level: Level::Words, text });
    }
    found.sort_by_key(|difference| difference.level);
    found
}

fn message(answer: &ReplayResponse) -> &str {
    answer.body["message"].as_str().unwrap_or_default()
}

fn refusal(answer: &ReplayResponse, expect: &ExpectedResponse, found: &mut Vec<Difference>) {
    let reason = answer.body["reason"].as_str();
    if reason != expect.reason.as_deref() {
        let text = format!("reason {reason:?} instead of {:?}", expect.reason);
        found.push(Difference { level: Level::Code, text });
    }
    let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let (ours, theirs) = (fields(&causes), fields(&expect.causes));
    if ours != theirs {
        let text = format!("fields {ours:?} instead of {theirs:?}");
        found.push(Difference { level: Level::Fields, text });
    }
    let expected = expect.message.as_deref().unwrap_or_default();
    let ours = message(answer);
    if !same_words(ours, expected) {
        let level = if paths(ours) == paths(expected) { Level::Words } else { Level::Fields };
        found.push(Difference {
            level,
            text: format!("message\n      {ours}\n    instead of\n      {expected}"),
        });
    }
}

fn fields(causes: &[Value]) -> BTreeSet<String> {
    causes.iter().filter_map(|cause| cause["field"].as_str()).map(str::to_owned).collect()
}

/// Whether two messages have the same parts.
pub(crate) fn same_words(ours: &str, expected: &str) -> bool {
    words(ours) == words(expected)
}

/// The parts of a message in any order: that of several errors, or of the keys of an object, is not promised.
fn words(message: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = message
        .split([',', '[', ']', '{', '}'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    parts.sort_unstable();
    parts
}

/// What a refusal says of a field, after its path.
const VERDICTS: &[&str] = &[
    ": Invalid value: ",
    ": Required value",
    ": Forbidden: ",
    ": Duplicate value: ",
    ": Unsupported value: ",
    ": Not found: ",
    ": Too many: ",
    ": Too long: ",
];

/// The field paths of a webhook's refusal.
fn paths(message: &str) -> BTreeSet<&str> {
    let refused = message.split_once("denied the request: ").map_or("", |(_, errors)| errors);
    let heads = VERDICTS
        .iter()
        .flat_map(|verdict| refused.match_indices(verdict).filter_map(|(at, _)| refused.get(..at)));
    heads
        .filter_map(|head| head.rsplit([' ', ',']).next())
        .map(|path| path.strip_prefix('[').unwrap_or(path))
        .collect()
}

fn objects(answer: &ReplayResponse, expect: &ExpectedResponse, found: &mut Vec<Difference>) {
    let response = expect.response.clone().unwrap_or_default();
    differ("response", &answer.body, &response, found);
    for (version, ours) in &answer.stored {
        let expected = match &expect.stored.get(version) {
            Some(Value::String(same)) if same == "=response" => response.clone(),
            Some(value) => (*value).clone(),
            None => continue,
        };
        differ(&format!("stored as {version}"), ours, &expected, found);
    }
}

fn differ(what: &str, ours: &Value, expected: &Value, found: &mut Vec<Difference>) {
    let (ours, expected) = (decoded(ours), decoded(expected));
    if ours == expected {
        return;
    }
    let mut lines = Vec::new();
    diff("", &ours, &expected, &mut lines);
    let text = format!("{what}:\n    {}", lines.join("\n    "));
    found.push(Difference { level: Level::Objects, text });
}

/// Lists where two values differ.
fn diff(path: &str, ours: &Value, expected: &Value, lines: &mut Vec<String>) {
    match (ours, expected) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let (a, b) = (a.get(key), b.get(key));
                if a != b {
                    let null = Value::Null;
                    let at = format!("{path}.{key}");
                    diff(&at, a.unwrap_or(&null), b.unwrap_or(&null), lines);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate().filter(|(_, (a, b))| a != b) {
                diff(&format!("{path}[{at}]"), a, b, lines);
            }
        }
        _ => lines.push(format!("{path}: {ours} instead of {expected}")),
    }
}

/// Topology assignments by column may be encoded in many ways: compared as what they mean.
fn decoded(value: &Value) -> Value {
    match value {
        Value::Object(object) if object.contains_key("levels") && object.contains_key("slices") => {
            json!({"levels": object["levels"], "domains": domains(&object["slices"])})
        }
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| (key.clone(), decoded(value))).collect())
        }
        Value::Array(items) => items.iter().map(decoded).collect(),
        other => other.clone(),
    }
}

fn domains(slices: &Value) -> Vec<Value> {
    let mut domains = Vec::new();
    for slice in slices.as_array().into_iter().flatten() {
        let count =
            slice["domainCount"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
        for at in 0..count {
            let pods = either(&slice["podCounts"], &slice["podCounts"]["individual"][at]);
            let levels = slice["valuesPerLevel"].as_array().into_iter().flatten();
            let values: Vec<Value> = levels.map(|level| level_value(level, at)).collect();
            domains.push(json!([values, pods]));
        }
    }
    domains
}

fn level_value(level: &Value, at: usize) -> Value {
    let individual = &level["individual"];
    let text = |part: &Value| part.as_str().unwrap_or_default().to_owned();
    let own = text(&individual["prefix"])
        + &text(&individual["roots"][at])
        + &text(&individual["suffix"]);
    either(level, &own.into())
}

fn either(choice: &Value, individual: &Value) -> Value {
    if choice["universal"].is_null() { individual.clone() } else { choice["universal"].clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> ExpectedResponse {
        serde_json::from_value(json!({"code": code, "reason": "Forbidden", "message": message}))
            .expect("an answer")
    }

    fn answer(code: u16, message: &str) -> ReplayResponse {
        let body = json!({"reason": "Forbidden", "message": message});
        ReplayResponse { code, body, warnings: vec![], stored: vec![] }
    }

    fn level(ours: &ReplayResponse, expect: &ExpectedResponse) -> Option<Level> {
        compare(ours, expect).first().map(|difference| difference.level)
    }

    #[test]
    fn the_order_of_several_errors_does_not_matter() {
        let expect =
            refused(403, "x denied the request: [spec.a: Required value, spec.b: Required value]");
        let ours =
            answer(403, "x denied the request: [spec.b: Required value, spec.a: Required value]");
        assert_eq!(level(&ours, &expect), None);
    }

    #[test]
    fn every_level_is_told_apart() {
        let expect = refused(403, "x denied the request: spec.a: Required value");
        let ours = |code, text| level(&answer(code, text), &expect);
        assert_eq!(ours(201, ""), Some(Level::Verdict));
        assert_eq!(ours(422, "x denied the request: spec.a: Required value"), Some(Level::Code));
        assert_eq!(ours(403, "x denied the request: spec.b: Required value"), Some(Level::Fields));
        assert_eq!(
            ours(403, "x denied the request: spec.a: Required value: now"),
            Some(Level::Words)
        );
    }

    #[test]
    fn encodings_of_one_assignment_are_equal() {
        let one = json!({"levels": ["h"], "slices": [
            {"domainCount": 2, "podCounts": {"universal": 1}, "valuesPerLevel": [{"individual": {"prefix": "n", "roots": ["1", "2"]}}]},
        ]});
        let other = json!({"levels": ["h"], "slices": [
            {"domainCount": 1, "podCounts": {"individual": [1]}, "valuesPerLevel": [{"universal": "n1"}]},
            {"domainCount": 1, "podCounts": {"individual": [1]}, "valuesPerLevel": [{"universal": "n2"}]},
        ]});
        assert_eq!(decoded(&one), decoded(&other));
        let mut third = one.clone();
        third["slices"][0]["podCounts"]["universal"] = json!(2);
        assert_ne!(decoded(&one), decoded(&third));
    }
}
