//! Paths of pod templates in a component: `template.spec.replicatedJobs[0].template`.

use serde_json::Value;

/// Why a path leads nowhere.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplatePathError {
    /// A field is missing.
    #[error("at path position '{at}' missing field '{field}'")]
    MissingField {
        /// What was found so far.
        at: String,
        /// The field.
        field: String,
    },
    /// A list is too short, or is none.
    #[error("at path position '{at}' there is no item {index}")]
    MissingItem {
        /// What was found so far.
        at: String,
        /// The index.
        index: usize,
    },
    /// The path does not begin with `template`.
    #[error("first element of the path must be 'template'")]
    NoTemplate,
    /// The path has an empty field, or an index that is no number.
    #[error("path '{0}' is no path of fields and indexes")]
    Malformed(String),
    /// There is no pod at the path.
    #[error("content at {0} does not contain a spec")]
    NoPod(String),
}

/// Checks that a path of a component leads to a pod template.
///
/// # Errors
/// If it does not.
pub fn check_pod_template(template: &Value, path: &str) -> Result<(), TemplatePathError> {
    let mut template = template.clone();
    let found = value_at(&mut template, path)?;
    if found["spec"].is_object() { Ok(()) } else { Err(TemplatePathError::NoPod(path.to_owned())) }
}

/// One move along a path.
enum Move<'a> {
    Field(&'a str),
    Item(usize),
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
    let mut at = "template".to_owned();
    for step in moves(path)? {
        match step {
            Move::Field(field) => {
                at.push('.');
                let missing =
                    || TemplatePathError::MissingField { at: at.clone(), field: field.to_owned() };
                value = value.get_mut(field).ok_or_else(missing)?;
                at.push_str(field);
            }
            Move::Item(index) => {
                let missing = || TemplatePathError::MissingItem { at: at.clone(), index };
                value = value.get_mut(index).ok_or_else(missing)?;
                at.push_str(&format!("[{index}]"));
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
    let part = |step| match step {
        Move::Field(field) => format!("/{}", field.replace('~', "~0").replace('/', "~1")),
        Move::Item(index) => format!("/{index}"),
    };
    Ok(moves(path)?.into_iter().map(part).collect())
}

fn moves(path: &str) -> Result<Vec<Move<'_>>, TemplatePathError> {
    let rest =
        path.strip_prefix("template").filter(|rest| rest.is_empty() || rest.starts_with('.'));
    let rest = rest.ok_or(TemplatePathError::NoTemplate)?;
    let malformed = || TemplatePathError::Malformed(path.to_owned());
    let mut moves = Vec::new();
    for part in rest.split('.').skip(1) {
        let (field, indexes) = part.split_once('[').map_or((part, None), |(a, b)| (a, Some(b)));
        if field.is_empty() {
            return Err(malformed());
        }
        moves.push(Move::Field(field));
        for index in indexes.into_iter().flat_map(|indexes| indexes.split('[')) {
            let index = index.strip_suffix(']').and_then(|index| index.parse().ok());
            moves.push(Move::Item(index.ok_or_else(malformed)?));
        }
    }
    Ok(moves)
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
        assert_eq!(
            pointer("template.a..b"),
            Err(TemplatePathError::Malformed("template.a..b".into()))
        );
    }

    #[test]
    fn a_path_to_nothing_names_the_place() {
        let mut template = json!({"spec": {"jobs": []}});
        let mut text = |path| value_at(&mut template, path).map(|_| ()).map_err(|e| e.to_string());
        let missing = "at path position 'template.spec.' missing field 'nowhere'";
        assert_eq!(text("template.spec.nowhere"), Err(missing.to_owned()));
        let missing = "at path position 'template.spec.jobs' there is no item 3";
        assert_eq!(text("template.spec.jobs[3]"), Err(missing.to_owned()));
        for path in ["template..x", "template.a[x]", "template.a[1"] {
            assert!(text(path).is_err_and(|text| text.contains("is no path")), "{path}");
        }
        for path in ["", "spec", "templates.spec"] {
            assert!(text(path).is_err_and(|text| text.starts_with("first element")), "{path}");
        }
    }
}
