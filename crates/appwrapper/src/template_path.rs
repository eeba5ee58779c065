//! Paths of pod templates in a component: `template.spec.replicatedJobs[0].template`.

use serde_json::Value;

use crate::pod_spec_fault::pod_spec_fault;

/// Why a path leads nowhere, in the words of the official controller.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplatePathError {
    /// The path does not begin with `template`.
    #[error("first element of the path must be 'template'")]
    NoTemplate,
    /// A field is missing.
    #[error("at path position '{at}' missing field '{field}'")]
    MissingField {
        /// What was found so far.
        at: String,
        /// The field.
        field: String,
    },
    /// A list is too short.
    #[error("at path position '{at}' out of bounds index '{index}'")]
    OutOfBounds {
        /// What was found so far.
        at: String,
        /// The index.
        index: i64,
    },
    /// An index of a value that is no list.
    #[error("at path position '{0}' found non-array value")]
    NoList(String),
    /// A field of a value that is no object, or a template that is none.
    #[error("at path position '{0}' non-map value")]
    NoObject(String),
    /// An index that is no number.
    #[error("at path position '{at}' invalid index expression '{index}'")]
    NoNumber {
        /// What was found so far.
        at: String,
        /// What stands between the brackets.
        index: String,
    },
    /// An index without its second bracket.
    #[error("at path position '{at}' invalid array index '{rest}'")]
    OpenIndex {
        /// What was found so far.
        at: String,
        /// The rest of the path.
        rest: String,
    },
    /// Neither a field nor an index.
    #[error("at path position '{at}' invalid path element '{rest}'")]
    NoElement {
        /// What was found so far.
        at: String,
        /// The rest of the path.
        rest: String,
    },
    /// There is no pod at the path.
    #[error("content at {0} does not contain a spec")]
    NoPod(String),
    /// What is there is no pod.
    #[error("content at {path}.spec not parseable as a v1.PodSpec: {fault}")]
    NoPodSpec {
        /// The path.
        path: String,
        /// What is wrong.
        fault: String,
    },
}

/// Checks that a path of a component leads to a pod template.
///
/// # Errors
/// If it does not.
pub fn check_pod_template(template: &Value, path: &str) -> Result<(), TemplatePathError> {
    let mut template = template.clone();
    let found = value_at(&mut template, path)?;
    if !found.is_object() {
        return Err(TemplatePathError::NoObject(path.to_owned()));
    }
    if !found["spec"].is_object() {
        return Err(TemplatePathError::NoPod(path.to_owned()));
    }
    pod_spec_fault(&found["spec"])
        .map_or(Ok(()), |fault| Err(TemplatePathError::NoPodSpec { path: path.to_owned(), fault }))
}

/// One move along a path.
enum Move<'a> {
    Field(&'a str),
    Item(i64),
}

/// What remains of a path.
struct Walk<'a> {
    rest: &'a str,
    /// What was walked, as messages say it.
    at: String,
}

impl<'a> Walk<'a> {
    fn begin(path: &'a str) -> Result<Self, TemplatePathError> {
        let rest = path.strip_prefix("template").ok_or(TemplatePathError::NoTemplate)?;
        Ok(Self { rest, at: "template".to_owned() })
    }

    /// The next move; none at the end of the path.
    fn next(&mut self) -> Result<Option<Move<'a>>, TemplatePathError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        if let Some(inner) = self.rest.strip_prefix('[') {
            return self.item(inner).map(Some);
        }
        let Some(rest) = self.rest.strip_prefix('.') else {
            let (at, rest) = (self.at.clone(), self.rest.to_owned());
            return Err(TemplatePathError::NoElement { at, rest });
        };
        // A point or bracket at the beginning belongs to the name, as with the official controller.
        let ends = |(at, it): (usize, char)| (at > 0 && (it == '.' || it == '[')).then_some(at);
        let end = rest.char_indices().find_map(ends).unwrap_or(rest.len());
        let (field, rest) = rest.split_at(end);
        self.at.push('.');
        self.rest = rest;
        Ok(Some(Move::Field(field)))
    }

    fn item(&mut self, inner: &'a str) -> Result<Move<'a>, TemplatePathError> {
        let at = || self.at.clone();
        let Some((index, rest)) = inner.split_once(']') else {
            return Err(TemplatePathError::OpenIndex { at: at(), rest: self.rest.to_owned() });
        };
        let Ok(number) = index.parse() else {
            return Err(TemplatePathError::NoNumber { at: at(), index: index.to_owned() });
        };
        self.rest = rest;
        Ok(Move::Item(number))
    }
}

/// The value at a path of a component.
///
/// # Errors
/// If the path leads nowhere.
pub fn value_at<'a>(
    template: &'a mut Value,
    path: &str,
) -> Result<&'a mut Value, TemplatePathError> {
    let mut value = template;
    let mut walk = Walk::begin(path)?;
    while let Some(step) = walk.next()? {
        let at = walk.at.clone();
        match step {
            Move::Field(field) => {
                let Value::Object(fields) = value else {
                    return Err(TemplatePathError::NoObject(at));
                };
                let missing = || TemplatePathError::MissingField { at, field: field.to_owned() };
                value = fields.get_mut(field).ok_or_else(missing)?;
                walk.at.push_str(field);
            }
            Move::Item(index) => {
                let Value::Array(items) = value else { return Err(TemplatePathError::NoList(at)) };
                let item = usize::try_from(index).ok().and_then(|index| items.get_mut(index));
                value = item.ok_or(TemplatePathError::OutOfBounds { at, index })?;
                // Without the second bracket, as the official controller says it.
                walk.at.push_str(&format!("[{index}"));
            }
        }
    }
    Ok(value)
}

/// The JSON pointer of a path of a component.
///
/// # Errors
/// If it is none.
pub(crate) fn pointer(path: &str) -> Result<String, TemplatePathError> {
    let mut walk = Walk::begin(path)?;
    let mut pointer = String::new();
    while let Some(step) = walk.next()? {
        pointer += &match step {
            Move::Field(field) => format!("/{}", field.replace('~', "~0").replace('/', "~1")),
            Move::Item(index) => format!("/{index}"),
        };
    }
    Ok(pointer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_through_fields_and_items() {
        let mut template = json!({"spec": {"jobs": [{"template": 1}, {"template": 2}]}});
        let found = value_at(&mut template, "template.spec.jobs[1].template");
        assert_eq!(found.map(|value| value.clone()), Ok(json!(2)));
    }

    #[test]
    fn a_pointer_leads_where_its_path_does() {
        let mut template = json!({"a/b": [[1, {"~": 2}]]});
        let path = "template.a/b[0][1].~";
        let found = value_at(&mut template, path).cloned();
        assert_eq!(template.pointer(&pointer(path).expect("a path")).cloned(), found.ok());
        assert_eq!(pointer("spec"), Err(TemplatePathError::NoTemplate));
    }

    #[test]
    fn a_path_to_nothing_is_refused_in_the_words_of_the_official_controller() {
        let mut template = json!({"spec": {"jobs": [{"a": 1}]}});
        for (path, expected) in [
            ("template.spec.nowhere", "at path position 'template.spec.' missing field 'nowhere'"),
            ("template..x", "at path position 'template.' missing field '.x'"),
            ("template.", "at path position 'template.' missing field ''"),
            (
                "template.spec.jobs[3]",
                "at path position 'template.spec.jobs' out of bounds index '3'",
            ),
            (
                "template.spec.jobs[-1]",
                "at path position 'template.spec.jobs' out of bounds index '-1'",
            ),
            ("template.spec[0]", "at path position 'template.spec' found non-array value"),
            (
                "template.spec.jobs[x]",
                "at path position 'template.spec.jobs' invalid index expression 'x'",
            ),
            (
                "template.spec.jobs[0",
                "at path position 'template.spec.jobs' invalid array index '[0'",
            ),
            ("template.spec.jobs.a", "at path position 'template.spec.jobs.' non-map value"),
            (
                "template.spec.jobs[0].b",
                "at path position 'template.spec.jobs[0.' missing field 'b'",
            ),
            ("templates.spec", "at path position 'template' invalid path element 's.spec'"),
            ("", "first element of the path must be 'template'"),
            ("spec", "first element of the path must be 'template'"),
        ] {
            let found =
                value_at(&mut template, path).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(found, Err(expected.to_owned()), "{path}");
        }
    }

    #[test]
    fn a_template_has_the_spec_of_a_pod() {
        let pod = json!({"spec": {"containers": [{"name": "a"}]}});
        let template = json!({"spec": {"replicas": 2, "template": pod, "other": 3}});
        for (path, expected) in [
            ("template.spec.template", None),
            ("template.spec.other", Some("at path position 'template.spec.other' non-map value")),
            ("template.spec", Some("content at template.spec does not contain a spec")),
            (
                "template",
                Some(
                    "content at template.spec not parseable as a v1.PodSpec: strict decoding error: unknown field \"other\", unknown field \"replicas\", unknown field \"template\"",
                ),
            ),
        ] {
            let found = check_pod_template(&template, path).err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }
}
