//! The finalizers of RayClusters, RayJobs and RayServices.

use serde_json::{Value, json};

use crate::{
    json::{items, name, text},
    names,
    pass::{OrderOutcome, Pass, SOON},
    step::{ObjectTarget, RayStep},
};

/// A finalizer, and the reason of the event about a refused write of it.
pub(crate) struct RayFinalizer {
    name: &'static str,
    failure: &'static str,
}

/// Keeps a RayCluster until its keys are removed from Redis.
pub(crate) const OF_REDIS: RayFinalizer =
    RayFinalizer { name: names::REDIS_FINALIZER, failure: "FailedToUpdateRayCluster" };

/// Keeps a RayCluster until the bindings of its proxy are gone. It is written with what else secures the cluster.
pub(crate) const OF_SECURITY: RayFinalizer =
    RayFinalizer { name: names::OAUTH_FINALIZER, failure: "FailedToSecureRayCluster" };

/// Keeps a RayJob until its head was asked to stop the job.
pub(crate) const OF_JOB: RayFinalizer =
    RayFinalizer { name: names::JOB_FINALIZER, failure: "FailedToUpdateRayJob" };

/// Keeps a RayService until its clusters are gone.
pub(crate) const OF_SERVICE: RayFinalizer =
    RayFinalizer { name: names::SERVICE_FINALIZER, failure: "FailedToUpdateRayService" };

impl RayFinalizer {
    pub(crate) fn is_on(&self, object: &Value) -> bool {
        items(&object["metadata"]["finalizers"]).iter().any(|it| *it == self.name)
    }

    /// The finalizers of an object, and this one.
    pub(crate) fn with(&self, object: &Value) -> Vec<Value> {
        let finalizers = items(&object["metadata"]["finalizers"]).iter().cloned();
        finalizers.chain([json!(self.name)]).collect()
    }

    /// The finalizers of an object but this one.
    pub(crate) fn without(&self, object: &Value) -> Vec<Value> {
        let finalizers = items(&object["metadata"]["finalizers"]).iter();
        finalizers.filter(|it| **it != self.name).cloned().collect()
    }

    /// Adds the finalizer. The result is that of [`Self::replace`].
    pub(crate) fn add(&self, object: &Value, pass: &mut Pass<'_>) -> Option<Result<(), String>> {
        self.replace(object, &self.with(object), pass)
    }

    /// Lets the object go.
    pub(crate) fn remove(&self, object: &Value, pass: &mut Pass<'_>) {
        // Nothing is left to do for the object but to try again.
        let _ = self.replace(object, &self.without(object), pass);
    }

    /// Writes the list. It is replaced as a whole, so the write carries the version of the list that was read.
    ///
    /// `None` while the write is on its way, and when the object that was read is not the present one. Any other refusal is an event.
    fn replace(
        &self,
        object: &Value,
        finalizers: &[Value],
        pass: &mut Pass<'_>,
    ) -> Option<Result<(), String>> {
        let metadata = &object["metadata"];
        let version = &metadata["resourceVersion"];
        let mut patch = json!({"metadata": {"finalizers": finalizers}});
        if !version.is_null() {
            patch["metadata"]["resourceVersion"] = version.clone();
        }
        match pass.order(RayStep::Patch { target: ObjectTarget::of(object), patch }) {
            OrderOutcome::Done(_) => Some(Ok(())),
            OrderOutcome::Pending => None,
            OrderOutcome::Refused(refusal) => {
                pass.requeue(SOON);
                // The object changed, or it is gone: there is another pass, or none.
                if refusal.is_conflict() || refusal.is_not_found() {
                    return None;
                }
                let (kind, namespace) = (text(&object["kind"]), text(&metadata["namespace"]));
                let (name, why) = (name(object), &refusal.message);
                let message = format!(
                    "Failed to update the finalizers of the {kind} {namespace}/{name}: {why}"
                );
                pass.warning(self.failure, message);
                Some(Err(why.clone()))
            }
        }
    }
}
