//! The end of a pod that its kubelet does not report: its phase, and a condition with the reason.

use ::jobs::pods;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::write::Write;
use serde_json::json;

use super::{context::Context, jobs::resource, outbox::Intent};

/// The field manager of the end of a pod.
const FIELD_MANAGER: &str = "kueue";

/// How a pod ends.
pub(crate) struct PodEnd<'a> {
    /// Type of the condition.
    pub(crate) condition: &'static str,
    /// Reason of the condition.
    pub(crate) reason: &'static str,
    /// Message of the condition.
    pub(crate) message: &'a str,
}

impl PodEnd<'_> {
    /// Submits the end of the pod that the intent names, as it was last observed. Returns whether it is sent.
    pub(crate) fn submit(&self, intent: Intent, ctx: &mut Context) -> bool {
        let (key, base) = (&intent.target.key, &intent.base);
        let fields = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": &*key.name, "namespace": key.namespace.as_deref(),
                "uid": base.uid, "resourceVersion": base.version.to_string(),
            },
            "status": { "phase": "Failed", "conditions": [{
                "type": self.condition, "status": "True",
                "reason": self.reason, "message": self.message,
                "lastTransitionTime": Time(ctx.now),
            }] },
        });
        // Applied, so that the conditions of others stay.
        ctx.outbox.submit(intent, |purpose, key| {
            let resource = resource(pods::kind());
            Write::of(purpose, &resource).apply(key, Some("status"), FIELD_MANAGER, &fields)
        })
    }
}
