//! Topology annotations of pod templates, and pod set groups.

use crds::{
    names::annotations::{
        POD_SET_GROUP_NAME, POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY,
        POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
        POD_SET_SLICE_SIZE, POD_SET_UNCONSTRAINED_TOPOLOGY,
    },
    validation::{Errors, FieldError, labels::check_key},
};

use super::{AnnotatedTemplate, slices};
use crate::{JobGates, go_parse};

/// Annotations of which a template has at most one.
const LEVELS: [&str; 3] =
    [POD_SET_REQUIRED_TOPOLOGY, POD_SET_PREFERRED_TOPOLOGY, POD_SET_UNCONSTRAINED_TOPOLOGY];

/// Annotations that exclude a pod set group.
const SLICES: [&str; 3] = [
    POD_SET_SLICE_SIZE,
    POD_SET_SLICE_REQUIRED_TOPOLOGY,
    POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
];

/// Errors of each template.
pub(crate) fn check(templates: &[AnnotatedTemplate<'_>], gates: JobGates) -> Errors {
    let mut errors = Errors::new();
    for template in templates {
        errors.extend(check_levels(template));
        errors.extend(check_group_name(template, gates));
        errors.extend(slices::check(template, gates));
    }
    errors
}

fn check_levels(template: &AnnotatedTemplate<'_>) -> Errors {
    let mut errors = Errors::new();
    if LEVELS.iter().filter(|key| template.get(key).is_some()).count() > 1 {
        let names = LEVELS.map(|key| format!("{key:?}")).join(", ");
        errors.push(FieldError::invalid_together(
            template.field(),
            format!("must not contain more than one topology annotation: [{names}]"),
        ));
    }
    for key in [POD_SET_REQUIRED_TOPOLOGY, POD_SET_PREFERRED_TOPOLOGY] {
        if let Some(level) = template.get(key) {
            errors.extend(check_key(&template.field_of(key), level));
        }
    }
    if let Some(text) = template.get(POD_SET_UNCONSTRAINED_TOPOLOGY)
        && go_parse::boolean(text).is_err()
    {
        let field = template.field_of(POD_SET_UNCONSTRAINED_TOPOLOGY);
        errors.push(FieldError::invalid(field, text, "must be a boolean value"));
    }
    errors
}

fn check_group_name(template: &AnnotatedTemplate<'_>, gates: JobGates) -> Errors {
    let Some(name) = template.get(POD_SET_GROUP_NAME) else { return vec![] };
    let field = template.field_of(POD_SET_GROUP_NAME);
    let mut errors = Errors::new();
    // Upstream groups a pod set without this annotation under its index: a number could name
    // two groups.
    if go_parse::unsigned(name).is_some() {
        errors.push(FieldError::invalid(&field, name, "must not be a number"));
    }
    // Without its gate, layers are refused for the gate alone.
    let is_on =
        |key: &&str| gates.topology_layers || *key != POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS;
    for key in SLICES.into_iter().filter(is_on).filter(|key| template.get(key).is_some()) {
        errors.push(FieldError::forbidden(
            &field,
            format!("may not be set when '{key}' is specified"),
        ));
    }
    if level(template).is_none() {
        errors.push(FieldError::forbidden(
            &field,
            format!(
                "may not be set when neither '{POD_SET_PREFERRED_TOPOLOGY}' nor '{POD_SET_REQUIRED_TOPOLOGY}' is specified"
            ),
        ));
    }
    errors
}

/// The topology level of a template, with its annotation.
fn level<'a>(template: &'a AnnotatedTemplate<'_>) -> Option<(&'static str, &'a str)> {
    [POD_SET_REQUIRED_TOPOLOGY, POD_SET_PREFERRED_TOPOLOGY]
        .into_iter()
        .find_map(|key| template.get(key).map(|level| (key, level)))
}

/// A pod set group has two templates with the same level, one of them with a single pod. A template without a level is in none. Groups
/// are in the order of their first templates.
pub(crate) fn check_groups(templates: &[AnnotatedTemplate<'_>]) -> Errors {
    let mut groups: Vec<(&str, Vec<&AnnotatedTemplate<'_>>)> = Vec::new();
    for template in templates.iter().filter(|template| level(template).is_some()) {
        let Some(name) = template.get(POD_SET_GROUP_NAME) else { continue };
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, members)) => members.push(template),
            None => groups.push((name, vec![template])),
        }
    }
    groups.into_iter().flat_map(|(name, members)| check_group(name, &members)).collect()
}

fn check_group(name: &str, members: &[&AnnotatedTemplate<'_>]) -> Errors {
    let refuse_all = |detail: String| -> Errors {
        let fields = members.iter().map(|member| member.field_of(POD_SET_GROUP_NAME));
        fields.map(|field| FieldError::invalid(field, name, &detail)).collect()
    };
    let [first, second] = members else {
        let n_members = members.len();
        return refuse_all(format!(
            "can only define groups of exactly 2 pod sets, got: {n_members} pod set(s)"
        ));
    };
    let mut errors = Errors::new();
    if first.count != 1 && second.count != 1 {
        errors.extend(refuse_all(format!(
            "can only define groups where at least one pod set has only 1 replica, got: {} replica(s) and {} replica(s) in the group",
            first.count, second.count
        )));
    }
    if level(first) != level(second) {
        errors.extend([differing_level(name, first, second), differing_level(name, second, first)]);
    }
    errors
}

/// The error of a member of a group with another level than the other member.
fn differing_level(
    group: &str,
    member: &AnnotatedTemplate<'_>,
    other: &AnnotatedTemplate<'_>,
) -> FieldError {
    let detail = format!(
        "must specify '{POD_SET_REQUIRED_TOPOLOGY}' or '{POD_SET_PREFERRED_TOPOLOGY}' topology consistent with '{}' in group '{group}'",
        other.field()
    );
    FieldError::invalid_together(member.field(), detail)
}
