//! Brings an answer into the form of the recording: nothing that differs from run to run.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// What is known of the case while its answer is normalised.
#[derive(Default)]
pub(crate) struct Known {
    /// Every text of the case's own bodies: a time that stands there is data.
    pub texts: BTreeSet<String>,
    /// The uid of the object of the request. One that the setup made is known by its first step.
    pub uid: Option<String>,
    /// Uids by setup step.
    pub setup_uids: Vec<Option<String>>,
}

impl Known {
    /// Notes the texts of a body.
    pub(crate) fn note(&mut self, body: &Value) {
        each_text(body, &mut |text| {
            self.texts.insert(text.to_owned());
        });
    }

    /// Puts uids of setup steps where a body refers to them.
    pub(crate) fn fill(&self, body: &Value) -> Value {
        map_text(body, &|text| {
            let mut text = text.to_owned();
            for (step, uid) in self.setup_uids.iter().enumerate() {
                text = text.replace(&format!("<uid:{step}>"), uid.as_deref().unwrap_or_default());
            }
            text
        })
    }

    /// Normalises an answer: an object, a list, a table, a discovery document or a status.
    pub(crate) fn answer(&self, answer: &Value) -> Value {
        let mut answer = match answer["kind"].as_str() {
            Some("Table") => table(answer),
            _ => answer.clone(),
        };
        strip(&mut answer);
        let items = answer.get_mut("items").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            strip(item);
        }
        discovery(&mut answer);
        map_text(&answer, &|text| self.text(text))
    }

    /// Normalises a text: uids, times and numbers that the server makes up.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (step, uid) in self.setup_uids.iter().enumerate() {
            if let Some(uid) = uid {
                out = out.replace(uid, &format!("<uid:{step}>"));
            }
        }
        if let Some(uid) = &self.uid {
            out = out.replace(uid, "<uid>");
        }
        if is_time(&out) && !self.texts.contains(&out) {
            return "<time>".into();
        }
        multiple_of(&out)
    }
}

fn strip(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in ["managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"]
        {
            metadata.remove(field);
        }
    }
}

/// Columns without descriptions, rows as bare cells.
fn table(table: &Value) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let columns: Vec<Value> = list(&table["columnDefinitions"])
        .iter()
        .map(|column| {
            json!({
                "name": column["name"], "type": column["type"],
                "format": column["format"], "priority": column["priority"],
            })
        })
        .collect();
    let ages: Vec<bool> = columns.iter().map(|column| column["name"] == "Age").collect();
    let rows = list(&table["rows"]);
    let rows = rows.iter().map(|row| {
        let cells = list(&row["cells"]).into_iter().zip(&ages);
        cells.map(|(cell, is_age)| if *is_age { "<time>".into() } else { cell }).collect::<Value>()
    });
    json!({"kind": "Table", "columns": columns, "rows": rows.collect::<Vec<_>>()})
}

fn discovery(answer: &mut Value) {
    let Some(Value::Array(resources)) = answer.get_mut("resources") else {
        return;
    };
    for resource in resources.iter_mut().filter_map(Value::as_object_mut) {
        resource.remove("storageVersionHash");
    }
    resources.sort_by_key(|resource| resource["name"].as_str().unwrap_or_default().to_owned());
}

/// The server prints a changing, meaningless number there.
fn multiple_of(text: &str) -> String {
    const MARK: &str = "is not a multiple of ";
    let Some(at) = text.find(MARK) else {
        return text.to_owned();
    };
    let (head, tail) = text.split_at(at + MARK.len());
    let digits = tail.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(tail.len());
    format!("{head}<number>{}", tail.get(digits..).unwrap_or_default())
}

fn is_time(text: &str) -> bool {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    text.ends_with('Z')
        && text.len() >= SHAPE.len()
        && text.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

fn each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(object) => object.values().for_each(|item| each_text(item, visit)),
        _ => {}
    }
}

fn map_text(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Array(items) => items.iter().map(|item| map_text(item, change)).collect(),
        Value::Object(object) => {
            let changed = object.iter().map(|(key, item)| (change(key), map_text(item, change)));
            Value::Object(changed.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_times_and_uids_are_hidden_and_given_ones_are_not() {
        let mut known = Known {
            uid: Some("u-1".into()),
            setup_uids: vec![Some("u-0".into())],
            ..Known::default()
        };
        known.note(&json!({"at": "2026-01-02T03:04:05Z"}));
        let answer = json!({
            "metadata": {"uid": "u-1", "name": "x"},
            "a": "2026-01-02T03:04:05Z", "b": "2027-01-02T03:04:05Z", "c": "of u-1 and u-0",
        });
        let expected = json!({
            "metadata": {"name": "x"},
            "a": "2026-01-02T03:04:05Z", "b": "<time>", "c": "of <uid> and <uid:0>",
        });
        assert_eq!(known.answer(&answer), expected);
    }

    #[test]
    fn an_object_that_the_setup_made_is_known_by_its_first_step() {
        let uid = || Some("7-7".to_owned());
        let known = Known { uid: uid(), setup_uids: vec![uid(), uid()], ..Known::default() };
        assert_eq!(known.text("of 7-7"), "of <uid:0>");
    }

    #[test]
    fn meaningless_numbers_are_hidden() {
        assert_eq!(
            multiple_of("x: is not a multiple of 824650, y"),
            "x: is not a multiple of <number>, y"
        );
    }
}
