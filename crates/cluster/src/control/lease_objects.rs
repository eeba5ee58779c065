//! The Leases between managers and agents, and what copies and MultiKueueClusters carry of them, as objects.
//!
//! | object | field | value |
//! |---|---|---|
//! | Lease `sluice-agent` | `spec.holderIdentity`, annotation `sluice.dev/beat` | boot id and number of the last beat |
//! | Lease `sluice-hub-<origin>` | `spec.leaseDurationSeconds` | `leaseDuration` of the policy |
//! | | annotations `sluice.dev/{term, session}` | term of the leader, session of the worker |
//! | | annotation `sluice.dev/echo` | the beat that the manager has seen, as `boot/number` |
//! | clone, job | annotation `sluice.dev/lease` | `session/term` of the copy |
//! | MultiKueueCluster | annotation `sluice.dev/fence-record` | `session/term/seconds` of the worker: `seconds` is the longest duration of its grants |
//!
//! Both Leases are in the namespace of the agent and have the label `sluice.dev/grants: "true"`
//! (docs/reference/dispatch.md §7).

use crds::decode::Decode;
use crds::meta::annotation;
use crds::names::{
    AGENT_LEASE, HUB_LEASE_PREFIX,
    annotations::{BEAT, ECHO, LEASE_STAMP, SESSION, TERM},
    labels::GRANTS,
};
use dispatch::{AgentBeat, FenceRecord, HubGrant, LeaseStamp};
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::{watch::Key, write::Write};
use serde_json::{Value, json};

use super::{
    context::Context,
    outbox::{Intent, Tracked},
    time::SECOND,
};

/// The Lease of the agent.
pub(crate) fn agent_lease(namespace: &str) -> Key {
    Key { namespace: Some(namespace.into()), name: AGENT_LEASE.into() }
}

/// The Lease of the manager with this origin.
pub(crate) fn hub_lease(namespace: &str, origin: &str) -> Key {
    Key { namespace: Some(namespace.into()), name: format!("{HUB_LEASE_PREFIX}{origin}").into() }
}

/// The origin of the manager in the name of its Lease.
pub(crate) fn origin_of(name: &str) -> Option<&str> {
    name.strip_prefix(HUB_LEASE_PREFIX)
}

/// The beat in the Lease of an agent.
pub(crate) fn beat_of(lease: &Lease) -> Option<AgentBeat> {
    let boot = lease.spec.as_ref()?.holder_identity.as_deref()?;
    Some(AgentBeat {
        boot: boot.into(),
        sequence: annotation(&lease.metadata, BEAT)?.parse().ok()?,
    })
}

/// The grant in the Lease of a manager.
pub(crate) fn grant_of(lease: &Lease) -> Option<HubGrant> {
    let number = |name| annotation(&lease.metadata, name)?.parse().ok();
    let seconds = lease.spec.as_ref()?.lease_duration_seconds?;
    let echo = annotation(&lease.metadata, ECHO).and_then(|text| text.rsplit_once('/'));
    Some(HubGrant {
        term: number(TERM)?,
        session: number(SESSION)?,
        duration: i64::from(seconds).saturating_mul(SECOND),
        echo: echo.and_then(|(boot, sequence)| {
            Some(AgentBeat { boot: boot.into(), sequence: sequence.parse().ok()? })
        }),
    })
}

/// Fields of a beat.
pub(crate) fn beat_fields(beat: &AgentBeat) -> Value {
    json!({
        "metadata": { "annotations": { BEAT: beat.sequence.to_string() } },
        "spec": { "holderIdentity": beat.boot },
    })
}

/// Fields of a grant. The duration is a number of whole seconds.
pub(crate) fn grant_fields(grant: &HubGrant) -> Value {
    let echo = grant.echo.as_ref().map(|echo| format!("{}/{}", echo.boot, echo.sequence));
    json!({
        "metadata": { "annotations": {
            TERM: grant.term.to_string(), SESSION: grant.session.to_string(), ECHO: echo,
        } },
        "spec": { "leaseDurationSeconds": grant.duration / SECOND },
    })
}

/// Writes a Lease: creates it, or merges the fields into the version that is known. Returns false if it cannot be encoded.
pub(crate) fn submit(
    intent: Intent,
    known: Option<&Tracked<Lease>>,
    mut fields: Value,
    ctx: &mut Context,
) -> bool {
    let metadata = &mut fields["metadata"];
    if let Some(known) = known {
        metadata["resourceVersion"] = json!(known.object().metadata.resource_version);
        return ctx
            .outbox
            .submit(intent, |purpose, key| Write::merge::<Lease>(purpose, key, None, &fields));
    }
    metadata["namespace"] = json!(intent.target.key.namespace.as_deref());
    metadata["name"] = json!(&*intent.target.key.name);
    metadata["labels"] = json!({ GRANTS: "true" });
    // Fields without a value are left out of an object that is created.
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|_, value| !value.is_null());
    }
    let lease = Lease::decode(&fields).unwrap_or_default();
    ctx.outbox.submit(intent, |purpose, _| Write::create(purpose, &lease))
}

/// What a copy carries; `None` for one that needs no grant.
pub(crate) fn stamp_of(metadata: &ObjectMeta) -> Option<LeaseStamp> {
    let (session, term) = pair(annotation(metadata, LEASE_STAMP)?)?;
    Some(LeaseStamp { session, term })
}

/// A session and a term as an annotation.
pub(crate) fn session_and_term(session: u64, term: u64) -> String {
    format!("{session}/{term}")
}

/// The record about a worker as an annotation. Durations are numbers of whole seconds.
pub(crate) fn record_text(record: FenceRecord) -> String {
    format!("{}/{}", session_and_term(record.session, record.term), record.longest / SECOND)
}

/// The record of an annotation. One of an earlier version has no duration.
pub(crate) fn record_of(text: &str) -> Option<FenceRecord> {
    let (session, rest) = text.split_once('/')?;
    let (term, seconds) = rest.split_once('/').unwrap_or((rest, "0"));
    let longest = seconds.parse::<i64>().ok()?.saturating_mul(SECOND);
    Some(FenceRecord { session: session.parse().ok()?, term: term.parse().ok()?, longest })
}

/// Session and term of an annotation.
fn pair(text: &str) -> Option<(u64, u64)> {
    let (session, term) = text.split_once('/')?;
    Some((session.parse().ok()?, term.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(fields: Value) -> Lease {
        serde_json::from_value(fields).expect("a Lease")
    }

    #[test]
    fn beats_and_grants_read_as_they_were_written() {
        let beat = AgentBeat { boot: "host_1".into(), sequence: 7 };
        assert_eq!(beat_of(&lease(beat_fields(&beat))), Some(beat.clone()));
        let grant = HubGrant { term: 3, session: 2, duration: 9 * SECOND, echo: Some(beat) };
        assert_eq!(grant_of(&lease(grant_fields(&grant))), Some(grant));
        assert_eq!(grant_of(&Lease::default()), None);
        assert_eq!(pair("2/3"), Some((2, 3)));
        let record = FenceRecord { session: 2, term: 3, longest: 60 * SECOND };
        assert_eq!(record_text(record), "2/3/60");
        assert_eq!(record_of("2/3/60"), Some(record));
        assert_eq!(record_of("2/3"), Some(FenceRecord { longest: 0, ..record }), "earlier");
        assert_eq!((record_of("2"), record_of("2/3/long")), (None, None));
        assert_eq!(pair("2"), None);
    }
}
