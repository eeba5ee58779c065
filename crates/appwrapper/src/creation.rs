//! The creation of components, in their order.
//!
//! Source: docs/reference/appwrapper.md §2 "Resuming".

use serde_json::Value;

use crate::{
    autoscaled::limit_groups,
    component::component_object,
    json::{name, text},
    names,
    pod_sets::pod_sets,
    state::{WrapperState, set_condition},
    step::{WrapperAnswer, WrapperPass, WrapperStep},
    v1beta2::AppWrapperComponentStatus,
};

/// Why the components were not made.
pub(crate) struct CreationError {
    /// The human-readable message.
    pub(crate) message: String,
    /// Whether another attempt would fail, too.
    pub(crate) is_final: bool,
}

/// Fills the list of component statuses, before anything is made.
pub(crate) fn initialize(state: &mut WrapperState<'_>) {
    let components = state.spec.components.iter();
    let status = components.map(|component| AppWrapperComponentStatus {
        pod_sets: pod_sets(component),
        ..AppWrapperComponentStatus::default()
    });
    state.status.component_status = status.collect();
}

/// Makes the components that are missing. Orders without an answer are no error.
pub(crate) fn create_components(
    state: &mut WrapperState<'_>,
    pass: &mut WrapperPass<'_>,
) -> Result<(), CreationError> {
    if state.status.component_status.len() != state.spec.components.len() {
        initialize(state);
    }
    let spec = state.spec;
    for (index, component) in spec.components.iter().enumerate() {
        // A component that was made is not made again; the phase Running notices that it is gone.
        if state.is_deployed(index) {
            continue;
        }
        let made = component_object(state.wrapper, (index, component), state.settings);
        let mut made =
            // Final, because a template cannot be changed.
            made.map_err(|error| CreationError { message: error.to_string(), is_final: true })?;
        let recorded = state.status.component_status.get(index);
        limit_groups(&mut made, component, recorded.map_or(&[], |status| &status.pod_sets));
        name_component(state, index, &made);
        create_component(state, pass, index, made)?;
    }
    Ok(())
}

fn create_component(
    state: &mut WrapperState<'_>,
    pass: &mut WrapperPass<'_>,
    index: usize,
    made: Value,
) -> Result<(), CreationError> {
    if let Some(present) = state.object_named_as(index) {
        // The object was made before a crash, or its create was not answered.
        if state.owns(present) {
            mark(state, index, "True", names::CREATED);
            return Ok(());
        }
        mark(state, index, "False", names::CREATION_ERRORED);
        let message =
            format!("resource {} exists, but is not controlled by appwrapper", name(&made));
        return Err(CreationError { message, is_final: true });
    }
    match pass.order(WrapperStep::Create(made)) {
        None => {}
        Some(WrapperAnswer::Done(_)) => mark(state, index, "True", names::CREATED),
        Some(WrapperAnswer::Refused { why, message }) => {
            mark(state, index, "False", names::CREATION_ERRORED);
            return Err(CreationError { message: message.clone(), is_final: why.is_final() });
        }
    }
    Ok(())
}

fn name_component(state: &mut WrapperState<'_>, index: usize, made: &Value) {
    if let Some(status) = state.status.component_status.get_mut(index) {
        status.api_version = text(&made["apiVersion"]).to_owned();
        status.kind = text(&made["kind"]).to_owned();
        status.name = name(made).to_owned();
    }
}

/// Sets the condition of a component.
pub(crate) fn mark(state: &mut WrapperState<'_>, index: usize, status: &str, reason: &str) {
    let now = state.now();
    if let Some(component) = state.status.component_status.get_mut(index) {
        let texts = [names::RESOURCES_DEPLOYED, status, reason, ""];
        set_condition(&mut component.conditions, now, texts);
    }
}
