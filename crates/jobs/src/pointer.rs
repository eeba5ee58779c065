//! Where a field stands in an object: a JSON pointer in which `*` stands for every element of a list or map.
//!
//! `/status/replicas/*/active` is the field `active` of every entry of `/status/replicas`.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The step that stands for every element.
pub(crate) const EVERY: &str = "*";

/// A JSON pointer to a field, with `*` for every element of a list or map. The empty pointer is the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pointer {
    steps: Vec<String>,
}

/// Why a text is no pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse the pointer {text:?}: it does not begin with \"/\"")]
pub struct PointerError {
    text: String,
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        let Some(rest) = text.strip_prefix('/') else {
            return if text.is_empty() { Ok(Self::default()) } else { Err(PointerError { text }) };
        };
        // In this order, or `~01` would become a slash.
        let steps = rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
        Ok(Self { steps: steps.collect() })
    }
}

impl Pointer {
    /// The pointer with these steps.
    #[must_use]
    pub fn of(steps: &[&str]) -> Self {
        Self { steps: steps.iter().map(|step| (*step).to_owned()).collect() }
    }

    /// The field of a pointer without `*`. Null counts as absent, as for the API server.
    #[must_use]
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let mut steps = self.steps.iter();
        steps.try_fold(object, |value, step| child(value, step)).filter(|value| !value.is_null())
    }

    /// The text of the field; `None` if it is absent or no text.
    #[must_use]
    pub fn text<'a>(&self, object: &'a Value) -> Option<&'a str> {
        self.get(object)?.as_str()
    }

    /// The number of the field; `None` if it is absent or no integer.
    #[must_use]
    pub fn number(&self, object: &Value) -> Option<i64> {
        self.get(object)?.as_i64()
    }

    /// Every field that the pointer reaches.
    #[must_use]
    pub fn all<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        self.steps.iter().fold(vec![object], |values, step| match step.as_str() {
            EVERY => values.into_iter().flat_map(children).collect(),
            step => values.into_iter().filter_map(|value| child(value, step)).collect(),
        })
    }

    /// Calls `change` with every field that the pointer reaches.
    pub fn change_all(&self, object: &mut Value, change: &mut impl FnMut(&mut Value)) {
        change_each(&self.steps, object, change);
    }

    /// Sets the field. Objects on the way are created; a list is never.
    pub fn set(&self, object: &mut Value, value: Value) {
        let mut place = object;
        for step in &self.steps {
            place = match place {
                Value::Array(items) => {
                    match step.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                        Some(item) => item,
                        None => return,
                    }
                }
                Value::Object(fields) => fields.entry(step.clone()).or_insert(Value::Null),
                other => {
                    *other = Value::Object(Map::new());
                    &mut other[step.as_str()]
                }
            };
        }
        *place = value;
    }

    /// Removes the field. Returns whether it was there.
    pub fn remove(&self, object: &mut Value) -> bool {
        let Some((last, parents)) = self.steps.split_last() else { return false };
        let mut removed = false;
        change_each(parents, object, &mut |parent| {
            removed |= parent.as_object_mut().is_some_and(|fields| fields.remove(last).is_some());
        });
        removed
    }

    /// The pointer that continues with another one.
    #[must_use]
    pub fn join(&self, rest: &Self) -> Self {
        Self { steps: self.steps.iter().chain(&rest.steps).cloned().collect() }
    }

    /// The pointer to an element of the list.
    #[must_use]
    pub fn element(&self, index: usize) -> Self {
        Self { steps: self.steps.iter().cloned().chain([index.to_string()]).collect() }
    }

    /// The names of the fields on the way, the outermost first.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(String::as_str)
    }

    /// The pointers to the objects around the field, the outermost first.
    #[must_use]
    pub fn parents(&self) -> Vec<Self> {
        (1..self.steps.len()).map(|n| Self { steps: self.steps[..n].to_vec() }).collect()
    }

    /// Whether it reaches at most one field.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.steps.iter().all(|step| step != EVERY)
    }

    /// Whether a step stands for an element of a list, or for every one.
    #[must_use]
    pub fn is_element(step: &str) -> bool {
        step == EVERY || step.parse::<usize>().is_ok()
    }

    /// Whether the field is `top` itself or below it.
    #[must_use]
    pub fn is_below(&self, top: &str) -> bool {
        self.steps.first().is_some_and(|step| step == top)
    }

    /// The path in error messages of the API: `spec.replicatedJobs[1].template`.
    #[must_use]
    pub fn field_path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step.parse::<usize>() {
                Ok(index) => path += &format!("[{index}]"),
                Err(_) if path.is_empty() => path += step,
                Err(_) => path += &format!(".{step}"),
            }
        }
        path
    }
}

/// The JSON pointer.
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The tilde first, or that of an escaped slash would be escaped again.
        let escape = |step: &String| step.replace('~', "~0").replace('/', "~1");
        self.steps.iter().try_for_each(|step| write!(f, "/{}", escape(step)))
    }
}

fn child<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => value.get(step),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn change_each(steps: &[String], value: &mut Value, change: &mut impl FnMut(&mut Value)) {
    let Some((step, rest)) = steps.split_first() else { return change(value) };
    match value {
        Value::Array(items) if step == EVERY => {
            items.iter_mut().for_each(|item| change_each(rest, item, change));
        }
        Value::Object(fields) if step == EVERY => {
            fields.values_mut().for_each(|field| change_each(rest, field, change));
        }
        Value::Array(items) => {
            if let Some(item) = step.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                change_each(rest, item, change);
            }
        }
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(step) {
                change_each(rest, field, change);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointer(text: &str) -> Pointer {
        Pointer::try_from(text.to_owned()).expect("a pointer")
    }

    #[test]
    fn a_star_stands_for_every_element_of_a_list_or_map() {
        let object = json!({ "list": [{ "n": 1 }, {}, { "n": 2 }], "map": { "a": { "n": 3 } } });
        let numbers = |text: &str| -> Vec<i64> {
            pointer(text).all(&object).into_iter().filter_map(Value::as_i64).collect()
        };
        assert_eq!(numbers("/list/*/n"), [1, 2]);
        assert_eq!(numbers("/map/*/n"), [3]);
        assert_eq!(numbers("/none/*/n"), [0; 0]);
        assert_eq!(pointer("/list/2/n").number(&object), Some(2));
        assert_eq!(pointer("/list/9/n").number(&object), None);
    }

    #[test]
    fn a_field_is_set_with_the_objects_around_it() {
        let mut object = json!({ "spec": null, "list": [{}] });
        pointer("/spec/run/suspend").set(&mut object, json!(true));
        pointer("/list/0/a").set(&mut object, json!(1));
        pointer("/list/1/a").set(&mut object, json!(1));
        assert_eq!(object, json!({ "spec": { "run": { "suspend": true } }, "list": [{ "a": 1 }] }));
    }

    #[test]
    fn fields_are_removed_wherever_the_pointer_reaches() {
        let mut object = json!({ "jobs": [{ "ttl": 1, "n": 1 }, { "ttl": null }] });
        assert!(pointer("/jobs/*/ttl").remove(&mut object));
        assert!(!pointer("/jobs/*/ttl").remove(&mut object));
        assert_eq!(object, json!({ "jobs": [{ "n": 1 }, {}] }));
    }

    #[test]
    fn a_pointer_has_the_form_of_json_and_that_of_error_messages() {
        let jobs = pointer("/spec/jobs").element(1).join(&pointer("/a~1b"));
        assert_eq!(jobs.to_string(), "/spec/jobs/1/a~1b");
        assert_eq!(jobs.field_path(), "spec.jobs[1].a/b");
        let parents: Vec<String> =
            pointer("/spec/run/suspend").parents().iter().map(ToString::to_string).collect();
        assert_eq!(parents, ["/spec", "/spec/run"]);
        assert!(Pointer::try_from("spec".to_owned()).is_err());
    }
}
