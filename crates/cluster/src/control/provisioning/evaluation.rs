//! What a Workload asks next: the states of its checks, and the writes of its requests.

use std::sync::Arc;

use ::provisioning::{
    AskedCheck, AskingWorkload, CheckUpdate, EntryTemplate, ProvisioningRequest, RequestStep, asks,
    attempt::template_name, decide, is_over, next_names, unclaimed,
};
use crds::v1beta2::{AdmissionCheckState, Workload};
use jobs::admitted_infos::AssignedFlavors;
use runtime::watch::Key;

use super::Provisioning;
use crate::control::context::Context;

impl Provisioning {
    /// Takes the next steps of a Workload. Returns the next states of its checks.
    pub(crate) fn evaluate(
        &mut self,
        key: &Key,
        workload: &Workload,
        flavors: AssignedFlavors<'_>,
        ctx: &mut Context,
    ) -> Vec<CheckUpdate> {
        if !asks(workload) {
            self.refusals.remove(key);
            if is_over(workload, self.cleans_up_evicted) {
                self.clean_up(key, ctx);
            }
            return Vec::new();
        }
        let checks = workload.status.admission_checks.iter();
        let checks: Vec<&AdmissionCheckState> =
            checks.filter(|one| self.checks.is_provisioning(&one.name)).collect();
        let requests = self.requests.of_workload(key);
        // Most Workloads have no such check.
        if checks.is_empty() && requests.is_empty() {
            return Vec::new();
        }
        let asked = (requests, checks.as_slice());
        self.evaluate_checks(key, workload, asked, (flavors, ctx))
    }

    fn evaluate_checks(
        &mut self,
        key: &Key,
        workload: &Workload,
        (requests, checks): (Vec<Arc<ProvisioningRequest>>, &[&AdmissionCheckState]),
        (flavors, ctx): (AssignedFlavors<'_>, &mut Context),
    ) -> Vec<CheckUpdate> {
        let (requests, templates) = self.known_objects(key, workload, requests, checks, flavors);
        let requests: Vec<&ProvisioningRequest> = requests.iter().map(|one| &**one).collect();
        let templates: Vec<&EntryTemplate> = templates.iter().map(|one| &**one).collect();
        let asking =
            AskingWorkload { workload, requests: &requests, templates: &templates, flavors };
        for name in unclaimed(asking, checks) {
            self.delete_request(key, &name, ctx);
        }
        let mut updates = Vec::new();
        // A request stays while no check is usable only because requests or templates cannot be observed.
        let observable = self.checks.obstacle().is_none();
        for known in checks {
            let config = self.checks.config(&known.name);
            let decision = decide(asking, AskedCheck { known, config });
            for name in decision.unused.iter().filter(|_| observable) {
                self.delete_request(key, name, ctx);
            }
            let created = decision.step.as_ref().map(created_names).unwrap_or_default();
            if let Some(step) = decision.step {
                self.take_step(key, step, ctx);
            }
            // What the API server said about an object that is still to be created.
            let refusals = self.refusals.get(key);
            let refusal = created.iter().find_map(|name| refusals?.get(name.as_str()));
            let failure = refusal.map(|message| CheckUpdate::failure(known, message.clone()));
            // Of two messages for one state each would replace the other, with every answer.
            let changes = |one: &&CheckUpdate| one.state != known.state;
            updates.extend(match (failure, decision.update) {
                (Some(failure), update) if update.as_ref().filter(changes).is_none() => {
                    failure.if_differing(known)
                }
                (_, update) => update,
            });
        }
        updates
    }

    /// Objects that decisions about a Workload read: requests that it controls, those of the names that it would use, and their templates.
    fn known_objects(
        &mut self,
        key: &Key,
        workload: &Workload,
        mut requests: Vec<Arc<ProvisioningRequest>>,
        checks: &[&AdmissionCheckState],
        flavors: AssignedFlavors<'_>,
    ) -> (Vec<Arc<ProvisioningRequest>>, Vec<Arc<EntryTemplate>>) {
        let owned: Vec<&ProvisioningRequest> = requests.iter().map(|one| &**one).collect();
        let asking = AskingWorkload { workload, requests: &owned, templates: &[], flavors };
        let own_names = owned.iter().filter_map(|one| one.metadata.name.clone());
        let next = checks.iter().flat_map(|known| next_names(asking, known));
        let names: Vec<String> = own_names.chain(next).collect();
        for name in &names {
            let known = self.requests.of_name(&in_namespace_of(key, name), key);
            let new = known.filter(|one| !requests.iter().any(|other| Arc::ptr_eq(one, other)));
            requests.extend(new.cloned());
        }
        let pod_sets = workload.spec.pod_sets.iter();
        let templates =
            pod_sets.flat_map(|set| names.iter().map(|name| template_name(name, &set.name)));
        let templates: Vec<String> = templates.collect();
        let templates = templates.iter();
        let templates = templates
            .filter_map(|name| self.templates.of_name(&in_namespace_of(key, name), key).cloned());
        (requests, templates.collect())
    }

    /// Deletes what a Workload asked with that needs no room any more. Templates of requests go with these.
    fn clean_up(&mut self, key: &Key, ctx: &mut Context) {
        for request in self.requests.of_workload(key) {
            if request.metadata.deletion_timestamp.is_none() {
                self.delete_request(key, request.metadata.name.as_deref().unwrap_or_default(), ctx);
            }
        }
        for template in self.templates.of_workload(key) {
            if template.metadata.deletion_timestamp.is_none() {
                let name = template.metadata.name.as_deref().unwrap_or_default();
                self.delete_template(key, name, ctx);
            }
        }
    }
}

/// Names of the objects that a step creates.
fn created_names(step: &RequestStep) -> Vec<String> {
    match step {
        RequestStep::CreateTemplates(all) => {
            all.iter().filter_map(|one| one.metadata.name.clone()).collect()
        }
        RequestStep::CreateRequest(one) => one.metadata.name.iter().cloned().collect(),
        RequestStep::DeleteTemplates(_) | RequestStep::HandOver(_) => Vec::new(),
    }
}

/// The key of an object in the namespace of a Workload.
pub(super) fn in_namespace_of(workload: &Key, name: &str) -> Key {
    Key { namespace: workload.namespace.clone(), name: name.into() }
}
