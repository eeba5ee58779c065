//! What follows for one check of a Workload with quota: its state, and one step about its request.
//!
//! ```text
//! no request --> templates --> request --> templates handed to the request
//!     ^                           |
//!     +-- the next attempt <------+ failed, and the check is Pending again
//! ```
//!
//! A step is repeated until the objects show it, so that an interrupted one is continued. Unused requests are deleted: earlier
//! attempts, requests that do not match their config, those of a Workload that is evicted or over.

use crds::{
    meta::{is_deleting, is_true},
    names::{
        check_states::{PENDING, READY},
        provisioning::{BOOKING_EXPIRED, CHECK_INACTIVE, FAILED, NO_REQUEST_NEEDED},
    },
    v1beta2::{AdmissionCheckState, ProvisioningRequestConfigSpec, Workload},
};
use jobs::admitted_infos::AssignedFlavors;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::{
    api::{EntryTemplate, ProvisioningRequest},
    attempt::{attempt_of, is_owned, request_name, template_name},
    check_state::{Attempt, CheckUpdate, next_state},
    request::{matches_config, new_request},
    requested_pods::{EntryPods, entries},
    template::{TemplateOwner, entry_template, owners_with_request},
};

/// A Workload and what exists in its namespace.
#[derive(Debug, Clone, Copy)]
pub struct AskingWorkload<'a> {
    /// The Workload.
    pub workload: &'a Workload,
    /// The requests that it controls, and those of the names that it would use.
    pub requests: &'a [&'a ProvisioningRequest],
    /// Templates of its namespace with the label `kueue.x-k8s.io/managed` that it or one of the requests may use.
    pub templates: &'a [&'a EntryTemplate],
    /// What the assigned flavors add to the pods.
    pub flavors: AssignedFlavors<'a>,
}

impl<'a> AskingWorkload<'a> {
    fn template(self, name: &str) -> Option<&'a EntryTemplate> {
        let mut templates = self.templates.iter().copied();
        templates.find(|one| one.metadata.name.as_deref() == Some(name))
    }
}

/// A check of the Workload.
#[derive(Debug, Clone, Copy)]
pub struct AskedCheck<'a> {
    /// Its state.
    pub known: &'a AdmissionCheckState,
    /// Its config; `None` while the check is not usable.
    pub config: Option<&'a ProvisioningRequestConfigSpec>,
}

/// What is to be done about the request of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestStep {
    /// Creates the templates that are missing.
    CreateTemplates(Vec<EntryTemplate>),
    /// Deletes templates of a former request of the name, by name.
    DeleteTemplates(Vec<String>),
    /// Creates the request. All of its templates exist.
    CreateRequest(Box<ProvisioningRequest>),
    /// Gives templates these owners: the request in place of the Workload. By name.
    HandOver(Vec<(String, Vec<OwnerReference>)>),
}

/// What follows for a check.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckDecision {
    /// Its next state, if that differs.
    pub update: Option<CheckUpdate>,
    /// Names of requests that the Workload has no use for.
    pub unused: Vec<String>,
    /// The next step.
    pub step: Option<RequestStep>,
}

/// Whether the requests of a Workload are for nothing: it is over, or evicted.
#[must_use]
pub fn is_over(workload: &Workload, cleans_up_evicted: bool) -> bool {
    workload.is_finished() || (cleans_up_evicted && workload.is_evicted())
}

/// Whether a Workload asks for room: it holds quota that it is not about to lose.
#[must_use]
pub fn asks(workload: &Workload) -> bool {
    workload.has_quota_reservation()
        && !workload.is_finished()
        && !workload.is_evicted()
        && !is_deleting(&workload.metadata)
        && workload.status.admission.is_some()
}

/// Decides about one check of a Workload that [`asks`].
#[must_use]
pub fn decide(asking: AskingWorkload<'_>, check: AskedCheck<'_>) -> CheckDecision {
    let known = check.known;
    let Some(config) = check.config else {
        return inactive(asking, known);
    };
    match entries(asking.workload, config) {
        // The admission is incomplete, so that nothing can be asked.
        Err(error) => problem(known, error.to_string()),
        Ok(entries) if entries.is_empty() => not_needed(asking, known),
        Ok(entries) => of_request(asking, known, config, &entries),
    }
}

/// Requests of the Workload that are those of none of its checks, by name: a check was taken from its list.
#[must_use]
pub fn unclaimed(asking: AskingWorkload<'_>, checks: &[&AdmissionCheckState]) -> Vec<String> {
    let own = asking.requests.iter().copied().filter(|one| is_owned(one, asking.workload));
    let of_none = own.filter(|request| {
        let name = request.metadata.name.as_deref().unwrap_or_default();
        let is_of = |check: &&AdmissionCheckState| {
            let expected = check.retry_count.unwrap_or(0) + 1;
            attempt_of(name, name_text(asking.workload), &check.name, expected).is_some()
        };
        !is_deleting(&request.metadata) && !checks.iter().any(is_of)
    });
    of_none.map(name_of).collect()
}

/// Names that requests of a check may have next: after the retries of its state, and after the attempts that exist.
#[must_use]
pub fn next_names(asking: AskingWorkload<'_>, known: &AdmissionCheckState) -> Vec<String> {
    let retries = known.retry_count.unwrap_or(0);
    let numbers = of_check(asking, known).map(|one| one.number).chain([retries]);
    numbers
        .map(|number| request_name(name_text(asking.workload), &known.name, number + 1))
        .collect()
}

/// A check without a usable config: no request is one of its config. A Ready one stays with its request: its room was provided.
fn inactive(asking: AskingWorkload<'_>, known: &AdmissionCheckState) -> CheckDecision {
    if known.state == READY {
        return CheckDecision::default();
    }
    let update = CheckUpdate::to(known, PENDING, CHECK_INACTIVE).if_differing(known);
    let present = of_check(asking, known).filter(|attempt| !is_deleting(&attempt.request.metadata));
    let unused = present.map(|attempt| name_of(attempt.request)).collect();
    CheckDecision { update, unused, step: None }
}

/// No pod needs room: Ready, without a request.
fn not_needed(asking: AskingWorkload<'_>, known: &AdmissionCheckState) -> CheckDecision {
    let unused = of_check(asking, known).map(|attempt| name_of(attempt.request)).collect();
    if known.state == READY {
        return CheckDecision { unused, ..Default::default() };
    }
    let ready = CheckUpdate::to(known, READY, NO_REQUEST_NEEDED);
    let update = CheckUpdate { pod_set_updates: Vec::new(), ..ready };
    CheckDecision { update: Some(update), unused, ..Default::default() }
}

fn of_request(
    asking: AskingWorkload<'_>,
    known: &AdmissionCheckState,
    config: &ProvisioningRequestConfigSpec,
    entries: &[EntryPods<'_>],
) -> CheckDecision {
    let workload = asking.workload;
    let attempts: Vec<Attempt<'_>> = of_check(asking, known).collect();
    // What has made a check Ready stays, whatever the config says now: the pods use its room.
    let is_used = |one: &&Attempt<'_>| {
        !is_deleting(&one.request.metadata)
            && (known.state == READY || matches_config(one.request, workload, config))
    };
    let present = attempts.iter().filter(is_used).max_by_key(|one| one.number).copied();
    let unused = attempts
        .iter()
        .filter(|one| present.is_none_or(|present| present.number != one.number))
        .filter(|one| !is_deleting(&one.request.metadata))
        .map(|one| name_of(one.request))
        .collect();
    let update = present.map(|attempt| next_state(known, attempt, workload, config));
    let state = CheckUpdate::unchanged(known).state;
    let state = update.as_ref().map_or(state, |update| update.state);
    let mut decision = CheckDecision {
        update: update.clone().and_then(|one| one.if_differing(known)),
        unused,
        step: None,
    };
    let repeats = |one: &Attempt<'_>| is_over_before_admission(one.request, workload);
    let further = state == PENDING && present.as_ref().is_none_or(repeats);
    if !further {
        decision.step = present.and_then(|present| hand_over(asking, present.request));
        return decision;
    }
    // The status counts the attempts without a request.
    let attempt = present.map_or(known.retry_count.unwrap_or(0), |one| one.number) + 1;
    let name = request_name(name_text(workload), &known.name, attempt);
    match create(asking, &name, config, entries) {
        Ok(step) => decision.step = step,
        Err(message) => decision.update = problem(known, message).update,
    }
    decision
}

/// Requests of a check that the Workload controls.
fn of_check<'a>(
    asking: AskingWorkload<'a>,
    known: &'a AdmissionCheckState,
) -> impl Iterator<Item = Attempt<'a>> {
    let workload = asking.workload;
    let owned = asking.requests.iter().copied().filter(|one| is_owned(one, workload));
    owned.filter_map(|request| {
        let name = request.metadata.name.as_deref()?;
        let expected = known.retry_count.unwrap_or(0) + 1;
        let number = attempt_of(name, name_text(workload), &known.name, expected)?;
        Some(Attempt { request, number })
    })
}

/// Whether another attempt follows a request, once its check is Pending again.
fn is_over_before_admission(request: &ProvisioningRequest, workload: &Workload) -> bool {
    let is = |condition| is_true(&request.status.conditions, condition);
    is(FAILED) || (is(BOOKING_EXPIRED) && !workload.is_admitted())
}

/// The next step towards a request of this name; `None` while one of its objects is about to go.
fn create(
    asking: AskingWorkload<'_>,
    name: &str,
    config: &ProvisioningRequestConfigSpec,
    entries: &[EntryPods<'_>],
) -> Result<Option<RequestStep>, String> {
    let same_name = asking.requests.iter().find(|one| one.metadata.name.as_deref() == Some(name));
    if let Some(other) = same_name {
        // The name is free again once a request of the Workload itself is gone.
        return if is_owned(other, asking.workload) {
            Ok(None)
        } else {
            Err(format!(
                "ProvisioningRequest {name:?} exists, and Workload {:?} does not control it",
                name_text(asking.workload)
            ))
        };
    }
    let (mut missing, mut stale) = (Vec::new(), Vec::new());
    for entry in entries {
        let template = template_name(name, &entry.pod_set.name);
        let Some(known) = asking.template(&template) else {
            let made = entry_template(asking.workload, name, entry, asking.flavors);
            missing.push(made.map_err(|error| error.to_string())?);
            continue;
        };
        match TemplateOwner::of(known, asking.workload, name, None) {
            TemplateOwner::Workload | TemplateOwner::Request => {}
            // Its pods may be others than those of this admission.
            TemplateOwner::FormerRequest => stale.push(template),
            TemplateOwner::Other => {
                return Err(format!(
                    "PodTemplate {template:?} exists, and Workload {:?} does not control it",
                    name_text(asking.workload)
                ));
            }
        }
    }
    Ok(Some(if !stale.is_empty() {
        RequestStep::DeleteTemplates(stale)
    } else if !missing.is_empty() {
        RequestStep::CreateTemplates(missing)
    } else {
        let request = new_request(asking.workload, name, config, entries);
        RequestStep::CreateRequest(Box::new(request))
    }))
}

/// Gives the templates of a request to it, so that they are deleted with it.
fn hand_over(asking: AskingWorkload<'_>, request: &ProvisioningRequest) -> Option<RequestStep> {
    let (own_name, uid) = (name_of(request), request.metadata.uid.as_deref());
    let templates = request.spec.pod_sets.iter().filter_map(|entry| {
        let name = &entry.pod_template_ref.name;
        let template = asking.template(name)?;
        let owner = TemplateOwner::of(template, asking.workload, &own_name, uid);
        (owner == TemplateOwner::Workload)
            .then(|| (name.clone(), owners_with_request(template, request)))
    });
    let templates: Vec<_> = templates.collect();
    (!templates.is_empty()).then_some(RequestStep::HandOver(templates))
}

/// Keeps the state of a check, with a message that says what stands in the way.
fn problem(known: &AdmissionCheckState, message: String) -> CheckDecision {
    let update = CheckUpdate::failure(known, message).if_differing(known);
    CheckDecision { update, ..Default::default() }
}

fn name_of(request: &ProvisioningRequest) -> String {
    request.metadata.name.clone().unwrap_or_default()
}

fn name_text(workload: &Workload) -> &str {
    workload.metadata.name.as_deref().unwrap_or_default()
}
