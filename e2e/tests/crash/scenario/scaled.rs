//! A StatefulSet that is scaled to zero while it runs, and back.

use anyhow::Result;
use crds::{meta::is_true, names::labels::POD_GROUP_NAME, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use harness::annotation;
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    observed_job::{ObservedJob, create},
    setup::PODS,
};

impl ObservedJob<'_> {
    /// The Workload gives its quota back at zero, gets it again, and goes with the set.
    pub(super) async fn scaled(&self) -> Result<()> {
        create(&self.api::<StatefulSet>(), &serde_json::from_value(self.stateful_set())?).await?;
        // The first run may have ended while the set had no replicas.
        self.scale(1).await?;
        self.until_workload("is admitted", |one| is_true(&one.status.conditions, "Admitted"))
            .await?;
        self.scale(0).await?;
        self.until_workload("is on hold", |one| one.status.is_on_hold()).await?;
        self.scale(1).await?;
        self.until_workload("is admitted again", |one| {
            is_true(&one.status.conditions, "Admitted") && !one.status.is_on_hold()
        })
        .await?;
        // The Workload is that of the set: the pod joins it later.
        let pod = format!("{}-0", self.name);
        let joined = |pod: &Pod| {
            let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
            pod.annotations().contains_key(POD_GROUP_NAME) && gates.is_none_or(Vec::is_empty)
        };
        self.hub().until(&self.api::<Pod>(), &pod, "is started", TIMEOUT, joined).await?;
        let sets = self.api::<StatefulSet>();
        sets.delete(self.name, &DeleteParams::background()).await?;
        let prefix = format!("{}-", self.name);
        let gone = |all: &[Pod]| {
            !all.iter().any(|pod| pod.metadata.name.iter().any(|name| name.starts_with(&prefix)))
        };
        self.hub().until_all(&self.api::<Pod>(), "", "its pods are gone", TIMEOUT, gone).await?;
        let over = |all: &[Workload]| !all.iter().any(|one| self.owns(one));
        self.hub().until_all(&self.api::<Workload>(), "", "it is gone", TIMEOUT, over).await?;
        Ok(())
    }

    async fn scale(&self, replicas: u32) -> Result<()> {
        let sets = self.api::<StatefulSet>();
        self.change(&sets, self.name, json!({"spec": {"replicas": replicas}})).await
    }

    fn stateful_set(&self) -> Value {
        json!({
            "metadata": {"name": self.name, "labels": {"kueue.x-k8s.io/queue-name": PODS}},
            "spec": {
                "serviceName": self.name, "replicas": 1,
                "selector": {"matchLabels": {"app": self.name}},
                "template": {
                    "metadata": {
                        "labels": {"app": self.name},
                        "annotations": {annotation::RUN_SECONDS: "3600"},
                    },
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{
                            "name": "main", "image": "main",
                            "resources": {"requests": {"cpu": "1"}},
                        }],
                    },
                },
            },
        })
    }
}
