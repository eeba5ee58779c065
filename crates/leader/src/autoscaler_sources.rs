//! What an agent observes of autoscalers. Every watch is optional: most clusters have no autoscaler, or one, and an agent without the
//! right to read its objects reports no headroom.

use cluster::control::{AgentInput, AutoscalerInput};
use crds::decode::Decode;
use kube::Resource;
use provisioning::headroom::{
    AutoscalerStatus, MachineDeployment, NodeClaim, NodePool,
    autoscaler_status::{STATUS_CONFIG_MAP, STATUS_NAMESPACE},
};
use runtime::watch::{Change, Config, Stores, Watch, WatchSource};

use crate::sources::Sources;

impl Sources<AgentInput> {
    /// The status of cluster-autoscaler, node groups of Cluster API, and the objects of Karpenter.
    pub(crate) fn autoscalers(&mut self, stores: &mut Stores) {
        // Only this object: the namespace has many ConfigMaps.
        let name = format!("metadata.name={STATUS_CONFIG_MAP}");
        let status = stores.source().in_namespace(STATUS_NAMESPACE);
        let status = status.with_config(Config::default().fields(&name));
        self.autoscaler::<AutoscalerStatus>("status", stores, &status, AutoscalerInput::Status);
        let all = stores.source();
        let wrap = AutoscalerInput::MachineDeployment;
        self.autoscaler::<MachineDeployment>("machinedeployments", stores, &all, wrap);
        self.autoscaler::<NodePool>("nodepools", stores, &all, AutoscalerInput::NodePool);
        self.autoscaler::<NodeClaim>("nodeclaims", stores, &all, AutoscalerInput::NodeClaim);
    }

    fn autoscaler<K>(
        &mut self,
        name: &str,
        stores: &mut Stores,
        source: &WatchSource,
        wrap: fn(Change<K>) -> AutoscalerInput,
    ) where
        K: Resource<DynamicType = ()> + Decode + Send + Sync + 'static,
    {
        let name = format!("autoscalers/{name}");
        let watch = Watch::typed(&name, K::decode_text, source, stores.metrics()).optional();
        self.feed(&stores.start(watch), move |change| AgentInput::Autoscaler(wrap(change)));
    }
}
