//! Cluster affinity of a job: a label selector over clusters, as text. Source: docs/reference/dispatch.md §3.
//!
//! ```text
//! region in (eu, us), tier=gold, !spot, generation > 3
//! ```
//! The grammar is that of label selectors of kubectl. All requirements must hold; an empty text has none.

use crds::validation::labels;
use engine::node_selection::{LabelOperator, LabelRequirement};

/// Parses the requirements.
///
/// # Errors
/// A description of the first requirement that is invalid.
pub(crate) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    parts(text).into_iter().map(|part| requirement(part.trim())).collect()
}

/// Splits at commas outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_u32, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            // A comma within parentheses separates the values of a set.
            ',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

fn requirement(part: &str) -> Result<LabelRequirement, String> {
    let (key, operator) = cut(part).ok_or_else(|| format!("cannot read {part:?}"))?;
    let sound = labels::check_key("", key).is_empty()
        && values(&operator).iter().all(|value| labels::check_value("", value).is_empty());
    if !sound {
        return Err(format!("{part:?} has an invalid key or value"));
    }
    Ok(LabelRequirement { key: key.into(), operator })
}

fn values(operator: &LabelOperator) -> &[Box<str>] {
    match operator {
        LabelOperator::In(values) | LabelOperator::NotIn(values) => values,
        LabelOperator::Exists
        | LabelOperator::DoesNotExist
        | LabelOperator::Gt(_)
        | LabelOperator::Lt(_) => &[],
    }
}

fn cut(part: &str) -> Option<(&str, LabelOperator)> {
    if let Some(key) = part.strip_prefix('!') {
        return Some((key.trim(), LabelOperator::DoesNotExist));
    }
    if let Some(before) = part.strip_suffix(')') {
        return cut_set(before);
    }
    // Before `=`, which `!=` contains.
    if let Some((key, value)) = part.split_once("!=") {
        return Some((key.trim(), LabelOperator::NotIn(one(value))));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some((key.trim(), LabelOperator::In(one(value))));
    }
    if let Some((key, bound)) = part.split_once('>') {
        return Some((key.trim(), LabelOperator::Gt(bound.trim().parse().ok()?)));
    }
    if let Some((key, bound)) = part.split_once('<') {
        return Some((key.trim(), LabelOperator::Lt(bound.trim().parse().ok()?)));
    }
    Some((part, LabelOperator::Exists))
}

/// `key in (a, b` and `key notin (a, b`.
fn cut_set(before: &str) -> Option<(&str, LabelOperator)> {
    let (head, list) = before.split_once('(')?;
    let (key, word) = head.trim().split_once(char::is_whitespace)?;
    let values = list.split(',').map(|value| value.trim().into()).collect();
    match word.trim() {
        "in" => Some((key, LabelOperator::In(values))),
        "notin" => Some((key, LabelOperator::NotIn(values))),
        _ => None,
    }
}

fn one(value: &str) -> Vec<Box<str>> {
    vec![value.trim().into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_parsed() {
        let set = |values: &[&str]| values.iter().map(|&value| value.into()).collect();
        for (text, key, operator) in [
            ("region in (eu, us)", "region", LabelOperator::In(set(&["eu", "us"]))),
            ("region notin (eu)", "region", LabelOperator::NotIn(set(&["eu"]))),
            ("tier=gold", "tier", LabelOperator::In(set(&["gold"]))),
            ("tier == gold", "tier", LabelOperator::In(set(&["gold"]))),
            ("tier!=gold", "tier", LabelOperator::NotIn(set(&["gold"]))),
            ("example.com/gpu", "example.com/gpu", LabelOperator::Exists),
            ("!spot", "spot", LabelOperator::DoesNotExist),
            ("generation > 3", "generation", LabelOperator::Gt(3)),
            ("generation<3", "generation", LabelOperator::Lt(3)),
        ] {
            let wanted = LabelRequirement { key: key.into(), operator };
            assert_eq!(parse(text), Ok(vec![wanted]), "{text}");
        }
    }

    #[test]
    fn commas_inside_parentheses_do_not_split() {
        assert_eq!(parse("region in (eu,us),tier=gold").map(|all| all.len()), Ok(2));
        assert_eq!(parse(" ").map(|all| all.len()), Ok(0));
    }

    #[test]
    fn an_invalid_selector_is_an_error() {
        for text in ["a,", "=b", "a in eu", "a in (b", "a near (b)", "a=b c", "a>x", "-a", "a=(b"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
