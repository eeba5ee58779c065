//! Which cluster a list came from.
//!
//! An address may lead to another cluster from one request to the next: a cluster that was recreated behind the same name, a proxy with
//! another backend. Its first list would say that everything is gone, before the next probe compares the identity. So the identity is read
//! after each list, through the same client.

use std::{pin::Pin, time::Instant};

use kube::Client;
use leader::ListConfirmation;
use runtime::jitter;
use tokio::{sync::Mutex, time};

use crate::{cluster_uid, context::ConnectionTiming};

/// Confirms the lists of one connection.
pub(super) struct ConfirmedLists {
    cluster: Box<str>,
    client: Client,
    timing: ConnectionTiming,
    /// The identity that was claimed; every list counts if the account may not read it.
    uid: Option<Box<str>>,
    /// When the last read began that found this identity. Lists that are complete together wait for one read.
    confirmed: Mutex<Option<Instant>>,
}

impl ConfirmedLists {
    /// Confirms lists of the cluster with this identity.
    pub(super) fn new(
        cluster: &str,
        client: Client,
        timing: ConnectionTiming,
        uid: Option<&str>,
    ) -> Self {
        let (cluster, uid) = (cluster.into(), uid.map(Into::into));
        Self { cluster, client, timing, uid, confirmed: Mutex::new(None) }
    }

    /// Reads the identity. Returns whether it is this one.
    async fn is_claimed(&self, claimed: &str) -> bool {
        match cluster_uid::uid(&self.client, self.timing.deadline).await {
            Ok(Some(uid)) if uid == claimed => true,
            Ok(_) => {
                // The next probe ends the connection, with the identity in its status.
                tracing::warn!(cluster = &*self.cluster, "a list came from another cluster");
                false
            }
            Err(error) => {
                tracing::debug!(cluster = &*self.cluster, %error, "a list was not confirmed");
                false
            }
        }
    }
}

impl ListConfirmation for ConfirmedLists {
    fn confirm(&self, listed: Instant) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let Some(claimed) = &self.uid else { return };
            let mut confirmed = self.confirmed.lock().await;
            while confirmed.is_none_or(|began| began < listed) {
                let began = Instant::now();
                if self.is_claimed(claimed).await {
                    *confirmed = Some(began);
                } else {
                    time::sleep(jitter::lengthened(self.timing.first_pause)).await;
                }
            }
        })
    }
}
