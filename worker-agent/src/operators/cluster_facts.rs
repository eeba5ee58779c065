//! Reads definitions and leases of the cluster.

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::Lease,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, ResourceExt, api::ListParams};

use super::{
    parent::ParentKind,
    takeover::{
        AGENT, ClusterFacts, FOREIGN_OPERATORS, ForeignLease, ForeignOperator, LeaseSightings,
        OPERATED_BY,
    },
};

/// What `takeover` decides from. What cannot be read counts as not labelled, so that nothing is operated by mistake.
pub(super) async fn cluster_facts(client: &Client, sightings: &mut LeaseSightings) -> ClusterFacts {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut facts = ClusterFacts::default();
    for kind in ParentKind::ALL {
        let resource = kind.resource();
        let name = format!("{}.{}", resource.plural, resource.group);
        match definitions.get_metadata_opt(&name).await {
            Ok(Some(found)) if found.labels().get(OPERATED_BY).is_some_and(|it| it == AGENT) => {
                facts.labelled.push(kind.name());
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(name, %error, "cannot read a definition"),
        }
    }
    for operator in FOREIGN_OPERATORS {
        match foreign_leases(client, operator).await {
            Ok(leases) => {
                let held = leases.into_iter();
                let held = held.filter_map(|lease| with_holder(operator, lease, sightings));
                facts.foreign_leases.extend(held);
            }
            Err(error) => {
                let lease = operator.lease;
                tracing::warn!(lease, %error, "cannot read the lease of an official operator");
                facts.labelled.clear();
            }
        }
    }
    facts
}

async fn foreign_leases(client: &Client, operator: ForeignOperator) -> kube::Result<Vec<Lease>> {
    let leases: Api<Lease> = Api::all(client.clone());
    let params = ListParams::default().fields(&format!("metadata.name={}", operator.lease));
    Ok(leases.list(&params).await?.items)
}

/// A lease that was released has no holder.
fn with_holder(
    operator: ForeignOperator,
    lease: Lease,
    sightings: &mut LeaseSightings,
) -> Option<ForeignLease> {
    let id = (lease.namespace().unwrap_or_default(), lease.name_any());
    let version = lease.resource_version().unwrap_or_default();
    let spec = lease.spec?;
    spec.holder_identity.filter(|holder| !holder.is_empty())?;
    let said = spec.renew_time.or(spec.acquire_time).map(|time| time.0);
    let renewed = sightings.renewed(id, version, said, Timestamp::now());
    Some(ForeignLease { operator, renewed, seconds: spec.lease_duration_seconds })
}
