//! The pods that belong to a Workload, on the cluster that runs it.

use std::collections::HashMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use visibility::workload_pods::{
    ObservedObject, ObservedPod, ObservedPodPage, PodBelonging, PodsRefusal, WorkloadOwners,
    owner_path,
};

use super::reads::{ClusterReads, JSON, METADATA, WantedObject};

/// Pods of a page.
const PAGE: usize = 100;

/// The most pages of a namespace.
const PAGES: usize = 50;

/// The most owners that are read for a list. Pods of one job share theirs.
const OWNERS: usize = 200;

/// The most owners between a pod and its job.
const DEEPEST: usize = 8;

/// The search of one request.
pub(super) struct PodSearch<'a> {
    reads: &'a ClusterReads,
    namespace: &'a str,
    owners: WorkloadOwners,
    /// Whether an owner belongs to the Workload, by uid.
    known: HashMap<String, bool>,
    n_read: usize,
    /// Why an owner of a pod that names the Workload was not read.
    unread: Option<PodsRefusal>,
}

/// Pods, and what keeps them from being all.
#[derive(Default)]
pub(super) struct FoundPods {
    pub(super) pods: Vec<ObservedPod>,
    pub(super) incomplete: Option<String>,
}

impl<'a> PodSearch<'a> {
    /// For the pods of these owners.
    pub(super) fn new(reads: &'a ClusterReads, namespace: &'a str, owners: WorkloadOwners) -> Self {
        Self { reads, namespace, owners, known: HashMap::new(), n_read: 0, unread: None }
    }

    /// All pods of the Workload.
    pub(super) async fn all(&mut self) -> Result<FoundPods, PodsRefusal> {
        let mut found = FoundPods::default();
        let mut next = String::new();
        for _ in 0..PAGES {
            let path = format!("/api/v1/namespaces/{}/pods?limit={PAGE}{next}", self.namespace);
            let right = ("list", "pods");
            let wanted = WantedObject { path: &path, accept: JSON, right };
            let page: ObservedPodPage = self.reads.read(wanted).await?.unwrap_or_default();
            let token = page.next();
            for pod in page.items {
                if self.is_own(&pod.metadata).await? {
                    found.pods.push(pod);
                }
            }
            match token {
                Some(token) if self.n_read < OWNERS => next = format!("&continue={token}"),
                Some(_) => break,
                None => {
                    found.incomplete = self.owners_left();
                    return Ok(found);
                }
            }
        }
        let text = format!("not all pods of namespace {:?} were searched", self.namespace);
        found.incomplete = Some(self.owners_left().unwrap_or(text));
        Ok(found)
    }

    fn owners_left(&self) -> Option<String> {
        match &self.unread {
            Some(refusal) => Some(refusal.to_string()),
            None => (self.n_read >= OWNERS)
                .then(|| format!("more than {OWNERS} owners of pods are there")),
        }
    }

    /// One pod, if it belongs to the Workload.
    pub(super) async fn one(&mut self, name: &str) -> Result<Option<ObservedPod>, PodsRefusal> {
        let pod = pod(self.reads, self.namespace, name).await?;
        match pod {
            Some(pod) if self.is_own(&pod.metadata).await? => Ok(Some(pod)),
            _ => self.unread.take().map_or(Ok(None), Err),
        }
    }

    /// Whether a pod belongs to the Workload. One with an owner that cannot be read does not: namespaces have pods of other operators.
    async fn is_own(&mut self, pod: &ObjectMeta) -> Result<bool, PodsRefusal> {
        let mut belonging = self.owners.of_pod(pod);
        let mut asked = Vec::new();
        let is_own = loop {
            let owner = match belonging {
                PodBelonging::Own => break true,
                PodBelonging::Foreign => break false,
                PodBelonging::As(owner) => owner,
            };
            if let Some(known) = self.known.get(&owner.uid) {
                break *known;
            }
            let path = owner_path(self.namespace, &owner);
            let Some(path) = path.filter(|_| asked.len() < DEEPEST && self.n_read < OWNERS) else {
                break false;
            };
            self.n_read += 1;
            let right = ("get", &*owner.kind);
            let wanted = WantedObject { path: &path, accept: METADATA, right };
            let read: Option<ObservedObject> = match self.reads.read(wanted).await {
                Ok(read) => read,
                Err(late @ PodsRefusal::Late(_)) => return Err(late),
                Err(refusal) => {
                    if self.owners.is_named_by(pod) {
                        self.unread = Some(refusal);
                    }
                    None
                }
            };
            belonging = self.owners.of_owner(&owner, read.as_ref().map(|one| &one.metadata));
            asked.push(owner.uid);
        };
        self.known.extend(asked.into_iter().map(|uid| (uid, is_own)));
        Ok(is_own)
    }
}

/// A pod of a cluster, of whatever Workload.
pub(super) async fn pod(
    reads: &ClusterReads,
    namespace: &str,
    name: &str,
) -> Result<Option<ObservedPod>, PodsRefusal> {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    reads.read(WantedObject { path: &path, accept: JSON, right: ("get", "pods") }).await
}
