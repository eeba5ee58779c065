//! The removal of components, until their pods are gone, too.
//!
//! Source: docs/reference/appwrapper.md §2 "Deletion".

use std::time::Duration;

use serde_json::Value;

use crate::{
    creation::mark,
    json::{is_terminating, text},
    names,
    state::WrapperState,
    step::{WrapperPass, WrapperStep},
};

/// When the removal is looked at again.
pub(crate) const DELETION_CHECK: Duration = Duration::from_secs(5);

/// Removes the objects of the AppWrapper. Returns whether all of them and their pods are gone.
///
/// An object of another controller is left alone, also if it has the name of a component.
pub(crate) fn delete_components(state: &mut WrapperState<'_>, pass: &mut WrapperPass<'_>) -> bool {
    // Set once: the time of the condition is the begin of the grace period.
    if !state.is_true(names::DELETING_RESOURCES) {
        state.set(names::DELETING_RESOURCES, true, "DeletionInitiated", "");
    }
    let grace = state.limits().forceful_deletion_grace;
    let grace = state.period("forcefulDeletionGracePeriodDuration", grace);
    let force = state.remaining(names::DELETING_RESOURCES, grace).is_none();
    let mut is_done = true;
    for index in 0..state.spec.components.len() {
        match state.object_of(index) {
            Some(object) => {
                is_done = false;
                delete(pass, object, force);
            }
            None => mark_deleted(state, index),
        }
    }
    for pod in state.pods() {
        is_done = false;
        // Before that the garbage collector deletes the pods with their owners.
        if force {
            delete(pass, pod, true);
        }
    }
    if is_done {
        state.set(names::DELETING_RESOURCES, false, "DeletionComplete", "");
    } else {
        pass.note(WrapperStep::RequeueAfter(DELETION_CHECK));
    }
    is_done
}

/// A deletion that was sent is not repeated, but a forced one replaces it.
fn delete(pass: &mut WrapperPass<'_>, object: &Value, force: bool) {
    if is_terminating(object) && !force {
        return;
    }
    let owned = |value: &Value| text(value).to_owned();
    // A refusal shows when the object is looked at again.
    let _ = pass.order(WrapperStep::Delete {
        api_version: owned(&object["apiVersion"]),
        kind: owned(&object["kind"]),
        name: owned(&object["metadata"]["name"]),
        uid: owned(&object["metadata"]["uid"]),
        force,
    });
}

fn mark_deleted(state: &mut WrapperState<'_>, index: usize) {
    let component = state.status.component_status.get(index);
    let was_there =
        component.is_some_and(|it| crds::meta::is_true(&it.conditions, names::RESOURCES_DEPLOYED));
    if was_there {
        mark(state, index, "False", names::COMPONENT_DELETED);
    }
}
