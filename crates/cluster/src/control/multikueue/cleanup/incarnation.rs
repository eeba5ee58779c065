//! The record of the hub's incarnation and its leader's term: the ConfigMap `sluice-incarnation`.
//!
//! Every leader writes its term there before it does anything on a worker; the version of that write is where it begins
//! (docs/reference/dispatch.md §6). The incarnation rises when the ConfigMap was restored as an object (its uid differs), when
//! it was deleted, and when a copy on a worker proves that the hub went back. Clock times serve as numbers, so that no
//! history that was lost has used them.
//!
//! | key | value |
//! |---|---|
//! | `incarnation`, `term` | numbers |
//! | `uid` | uid of the ConfigMap when the term was written |
//! | `accepted` | earlier incarnations of which copies are followed, by comma; `id@version/term` for a shared history |

use std::{collections::BTreeMap, sync::Arc};

use crds::names::{
    INCARNATION_CONFIG_MAP,
    incarnation::{NUMBER, TERM},
};
use dispatch::{AcceptedIncarnation, HubIncarnation, SharedHistory};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use runtime::{
    watch::{Change, Key},
    write::Write,
    writer::WriteOutcome,
};
use serde_json::json;

use crate::control::{
    change::for_each_object,
    context::Context,
    outbox::{Intent, Purpose, Subject, Target, Tracked, decode, upsert_single},
    timers::Reevaluation,
};

const UID: &str = "uid";
const ACCEPTED: &str = "accepted";

/// Accepted incarnations that are kept: the newest ones.
const MAX_ACCEPTED: usize = 100;

type Data = BTreeMap<String, String>;

/// See the module.
#[derive(Debug)]
pub(crate) struct IncarnationRecord {
    key: Key,
    listed: bool,
    observed: Option<Tracked<ConfigMap>>,
    /// `None` until this leader has written its term.
    present: Option<HubIncarnation>,
    /// A copy proves that the hub went back, and the incarnation has not risen yet.
    went_back: bool,
    /// The incarnation has risen for such a copy since this process began.
    has_risen: bool,
}

impl IncarnationRecord {
    /// The record in the manager's namespace, which was not read yet.
    pub(crate) fn new(namespace: &str) -> Self {
        let key = Key { namespace: Some(namespace.into()), name: INCARNATION_CONFIG_MAP.into() };
        Self {
            key,
            listed: false,
            observed: None,
            present: None,
            went_back: false,
            has_risen: false,
        }
    }

    /// The incarnation; `None` before this leader may do anything on a worker.
    pub(crate) fn present(&self) -> Option<&HubIncarnation> {
        self.present.as_ref()
    }

    /// A copy proves that the hub went back: the incarnation rises, once. A cluster that is restored gets another leader, and a worker
    /// that writes such stamps again and again would push the accepted incarnations out of the record. What is newer is disputed
    /// all the same.
    pub(crate) fn hub_went_back(&mut self) {
        if !self.went_back && !self.has_risen && self.present.is_some() {
            tracing::error!("a copy is newer than this cluster, which was restored from a backup");
            self.went_back = true;
        }
    }

    /// Records a change of the ConfigMap. Returns whether the incarnation changed.
    pub(crate) fn observe(&mut self, change: Change<ConfigMap>) -> bool {
        self.listed |= change.is_list();
        for_each_object(change, |key, object| {
            if key == self.key {
                upsert_single(&mut self.observed, object);
            }
        });
        let before = self.present.clone();
        self.present = before.clone().and_then(|present| self.refreshed(present));
        self.present != before
    }

    /// Writes the term of this leader, or the next incarnation, if that is due.
    pub(crate) fn write(&self, ctx: &mut Context) {
        // Before its list nothing is known of the ConfigMap: if it exists, a create is refused.
        if !self.listed || self.present.is_some() && !self.went_back {
            return;
        }
        let target = Target::home(Subject::Incarnation, &self.key);
        // A watch may report the object before its create is answered. A second write would raise the term again, and the answers
        // of two writes may come in either order.
        if ctx.outbox.writes().is_in_flight(&target) {
            return;
        }
        let base = self.observed.as_ref().map(Tracked::stamp).unwrap_or_default();
        let waiter = Reevaluation::Clusters;
        if !ctx.free_or_wait(&target, &base, &waiter) {
            return;
        }
        let clock = u64::try_from(ctx.now.as_second()).unwrap_or(0);
        let intent = Intent { target, purpose: Purpose::Incarnation, base, waiter };
        let before = self.observed.as_ref().map(Tracked::object);
        let data = self.next(before.map(|object| &**object), clock);
        match before {
            None => ctx
                .outbox
                .submit(intent, |purpose, key| Write::create(purpose, &new_object(key, data))),
            Some(object) => {
                // Of two processes that both take themselves for the leader, the second one to write is refused.
                let version = &object.metadata.resource_version;
                let fields = json!({ "metadata": { "resourceVersion": version }, "data": data });
                ctx.outbox.submit(intent, |purpose, key| {
                    Write::merge::<ConfigMap>(purpose, key, None, &fields)
                })
            }
        };
    }

    /// Takes the answer to a write. Returns whether the incarnation is known now.
    pub(crate) fn answered(&mut self, answer: WriteOutcome) -> bool {
        match answer {
            WriteOutcome::Done(value) => {
                let Some(object) = decode::<ConfigMap>(&value) else {
                    return false;
                };
                self.observed = Some(Tracked::new(object));
                self.present = self.observed.as_ref().and_then(read);
                self.has_risen |= std::mem::take(&mut self.went_back);
                self.present.is_some()
            }
            // Only the watch may report the deletion; until then it is created again.
            WriteOutcome::Gone => {
                (self.observed, self.present) = (None, None);
                false
            }
            _ => false,
        }
    }

    /// The incarnation with what a person has changed. `None` if the record is gone.
    fn refreshed(&self, present: HubIncarnation) -> Option<HubIncarnation> {
        let recorded = self.observed.as_ref().and_then(read)?;
        // A later leader has written its term; this process is about to stop.
        if recorded.term != present.term {
            return Some(present);
        }
        Some(HubIncarnation { began_at: present.began_at, ..recorded })
    }

    /// The data that this leader writes.
    fn next(&self, object: Option<&ConfigMap>, clock: u64) -> Data {
        let mut data = object.and_then(|object| object.data.clone()).unwrap_or_default();
        let uid = object.and_then(|object| object.metadata.uid.clone());
        let restored = data.get(UID).is_some_and(|of| Some(of) != uid.as_ref());
        let id = number(&data, NUMBER);
        // Copies of the history that both sides share are followed further; only what came after the backup is
        // disputed.
        if let (true, Some(present)) = (self.went_back, &self.present) {
            let shared = format!("{}@{}/{}", present.id, present.began_at, present.term);
            let list = data.entry(ACCEPTED.to_owned()).or_default();
            let mut all: Vec<&str> = list.split(',').filter(|one| !one.is_empty()).collect();
            all.push(&shared);
            *list = all.split_off(all.len().saturating_sub(MAX_ACCEPTED)).join(",");
        }
        let raised = clock.max(id.unwrap_or(0).saturating_add(1));
        let id = id.filter(|_| !restored && !self.went_back).unwrap_or(raised);
        let term = clock.max(number(&data, TERM).unwrap_or(0).saturating_add(1));
        data.insert(NUMBER.to_owned(), id.to_string());
        data.insert(TERM.to_owned(), term.to_string());
        data.extend(uid.map(|uid| (UID.to_owned(), uid)));
        data
    }

    /// Sets the incarnation as if this leader had written its term.
    #[cfg(test)]
    pub(crate) fn set(&mut self, present: HubIncarnation) {
        self.present = Some(present);
    }
}

fn new_object(key: &Key, data: Data) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(key.name.to_string()),
        namespace: key.namespace.as_deref().map(str::to_owned),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

/// What the ConfigMap says; `None` without the numbers.
fn read(tracked: &Tracked<ConfigMap>) -> Option<HubIncarnation> {
    let object: &Arc<ConfigMap> = tracked.object();
    let data = object.data.as_ref()?;
    let accepted = data.get(ACCEPTED).map(String::as_str).unwrap_or_default();
    Some(HubIncarnation {
        id: number(data, NUMBER)?,
        term: number(data, TERM)?,
        began_at: tracked.version(),
        accepted: accepted.split(',').filter_map(|text| accepted_of(text.trim())).collect(),
    })
}

fn number(data: &Data, key: &str) -> Option<u64> {
    data.get(key)?.parse().ok()
}

fn accepted_of(text: &str) -> Option<AcceptedIncarnation> {
    let Some((id, shared)) = text.split_once('@') else {
        return Some(AcceptedIncarnation { id: text.parse().ok()?, shared: None });
    };
    let (version, term) = shared.split_once('/')?;
    let shared = SharedHistory { version: version.parse().ok()?, term: term.parse().ok()? };
    Some(AcceptedIncarnation { id: id.parse().ok()?, shared: Some(shared) })
}
