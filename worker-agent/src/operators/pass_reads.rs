//! What a pass reads of the cluster: objects that no watch shows, tokens, and the kinds that it may write.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::DynamicObject};
use ray::step::ObjectTarget;
use runtime::{
    named_read::find,
    watch::{ApiResource, Key},
};
use serde_json::Value;
use tokio::time;

use super::{
    WRITE_DEADLINE,
    component_kinds::{KindLookupError, discover, has_code},
    parent::ParentKind,
    pass::{Interruption, OperatorPass},
    resources::{CLUSTER_ROLE_BINDING, openshift_kinds, route_kinds},
};

/// What a read of one object found.
pub(super) enum ObjectRead {
    There(Value),
    /// The cluster does not have it, or does not serve its kind.
    Absent,
    /// The agent may not read it.
    Forbidden(String),
}

impl OperatorPass {
    /// Read when it is needed, so that no token stays in memory.
    pub(super) async fn token(&self, namespace: &str, name: &str) -> Option<String> {
        let secrets: Api<Secret> = Api::namespaced(self.io.client.clone(), namespace);
        let secret = time::timeout(WRITE_DEADLINE, secrets.get(name)).await.ok()?.ok()?;
        let token = secret.data?.remove("auth_token")?;
        String::from_utf8(token.0).ok()
    }

    pub(super) async fn read(&self, target: &ObjectTarget) -> Result<ObjectRead, Interruption> {
        let Some(resource) = self.resource(target).await? else { return Ok(ObjectRead::Absent) };
        let namespace = self.id.key.namespace.as_deref().unwrap_or_default();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.io.client.clone(), namespace, &resource);
        match time::timeout(WRITE_DEADLINE, find(&api, &resource, &target.name)).await {
            Ok(Ok(object)) => {
                let object = object.and_then(|object| serde_json::to_value(object).ok());
                Ok(object.map_or(ObjectRead::Absent, ObjectRead::There))
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                Ok(ObjectRead::Forbidden(status.message))
            }
            // That of a kind which is not served any more names no object.
            Ok(Err(error @ kube::Error::Api(_))) if has_code(&error, 404) => {
                match self.discover(target).await? {
                    None => Ok(ObjectRead::Absent),
                    Some(_) => Err(self.interruption(&target.name, &error)),
                }
            }
            // Without an answer it is not known to be absent: an AppWrapper would fail for a missing component.
            Ok(Err(error)) => Err(self.interruption(&target.name, &error)),
            Err(elapsed) => Err(self.interruption(&target.name, &elapsed)),
        }
    }

    fn interruption(&self, name: &str, error: &dyn std::fmt::Display) -> Interruption {
        tracing::warn!(object = %self.id, name, %error, "cannot read what the object needs");
        Interruption
    }

    pub(super) async fn resource(
        &self,
        target: &ObjectTarget,
    ) -> Result<Option<ApiResource>, Interruption> {
        // An AppWrapper may not wrap these, so they are not among the kinds of all passes.
        let further = match self.id.kind {
            ParentKind::RayService => Some(route_kinds()),
            ParentKind::RayCluster => Some(openshift_kinds()),
            ParentKind::RayJob | ParentKind::RayCronJob | ParentKind::AppWrapper => None,
        };
        let is_wanted =
            |it: &ApiResource| it.api_version == target.api_version && it.kind == target.kind;
        if let Some(found) = further.into_iter().flatten().find(is_wanted) {
            return Ok(Some(found));
        }
        let known = self.io.kinds.resource(&self.io.client, &target.api_version, &target.kind);
        self.looked_up(target, known).await
    }

    /// Asks the API server whether it serves the kind now.
    pub(super) async fn discover(
        &self,
        target: &ObjectTarget,
    ) -> Result<Option<ApiResource>, Interruption> {
        let found = discover(&self.io.client, &target.api_version, &target.kind);
        self.looked_up(target, found).await
    }

    async fn looked_up(
        &self,
        target: &ObjectTarget,
        lookup: impl Future<Output = Result<Option<ApiResource>, KindLookupError>>,
    ) -> Result<Option<ApiResource>, Interruption> {
        match time::timeout(WRITE_DEADLINE, lookup).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(self.interruption(&target.kind, &error)),
            Err(elapsed) => Err(self.interruption(&target.kind, &elapsed)),
        }
    }

    pub(super) fn key(&self, target: &ObjectTarget) -> Key {
        let has_namespace = target.kind != CLUSTER_ROLE_BINDING;
        let namespace = self.id.key.namespace.clone().filter(|_| has_namespace);
        Key { namespace, name: target.name.as_str().into() }
    }
}
