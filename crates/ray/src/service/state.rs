//! The status of a RayService while a pass changes it.
//!
//! Source: docs/reference/ray.md §9.

use std::collections::BTreeMap;

use crds::decode::from_value;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    cluster::{no_cluster_status, rfc3339},
    json::{items, text},
    v1::{AppStatus, RayServiceStatus},
};

/// What the status says of one of the two clusters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClusterSlot {
    /// The name of the cluster; empty if there is none.
    pub(super) cluster: String,
    pub(super) applications: BTreeMap<String, AppStatus>,
    /// Capacity of its applications in percent, during an incremental upgrade.
    pub(super) target_capacity: Option<i32>,
    /// Its part of the traffic in percent.
    pub(super) traffic: Option<i32>,
    /// When that part last changed.
    pub(super) traffic_moved: Option<String>,
    /// A copy of the cluster's status. Changes of it alone are not written.
    pub(super) copy: Value,
}

/// The status of a RayService.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServiceState {
    pub(super) active: ClusterSlot,
    pub(super) pending: ClusterSlot,
    pub(super) conditions: Vec<Value>,
    pub(super) endpoints: i32,
    pub(super) observed_generation: i64,
    pub(super) is_running: bool,
}

impl Default for ClusterSlot {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            applications: BTreeMap::new(),
            target_capacity: None,
            traffic: None,
            traffic_moved: None,
            copy: no_cluster_status(),
        }
    }
}

impl ClusterSlot {
    pub(super) fn of(cluster: String) -> Self {
        Self { cluster, ..Self::default() }
    }

    /// Whether the cluster has all capacity and all traffic.
    pub(super) fn has_all(&self) -> bool {
        [self.target_capacity, self.traffic].iter().all(|part| part.is_none_or(|it| it == 100))
    }

    /// Reads a part of the status. What does not decode counts as absent.
    fn read(value: &Value) -> Self {
        let mut value = value.clone();
        // Without it, because the copy is not decoded.
        let copy = value.as_object_mut().and_then(|fields| fields.remove("rayClusterStatus"));
        let copy = copy.filter(Value::is_object);
        let fields: RayServiceStatus = from_value(&value).unwrap_or_default();
        Self {
            cluster: fields.ray_cluster_name,
            applications: fields.application_statuses,
            target_capacity: fields.target_capacity,
            traffic: fields.traffic_routed_percent,
            traffic_moved: fields.last_traffic_migrated_time,
            copy: copy.unwrap_or_else(no_cluster_status),
        }
    }

    fn to_value(&self) -> Value {
        let mut value = json!(RayServiceStatus {
            application_statuses: self.applications.clone(),
            last_traffic_migrated_time: self.traffic_moved.clone(),
            ray_cluster_name: self.cluster.clone(),
            target_capacity: self.target_capacity,
            traffic_routed_percent: self.traffic,
            ..RayServiceStatus::default()
        });
        value["rayClusterStatus"] = self.copy.clone();
        value
    }

    fn differs(&self, other: &Self) -> bool {
        let compared = |slot: &Self| Self { copy: Value::Null, ..slot.clone() };
        compared(self) != compared(other)
    }
}

/// The parts of a status about the active cluster and the pending one.
const SLOTS: [&str; 2] = ["activeServiceStatus", "pendingServiceStatus"];

/// The names of both clusters as the status of a RayService has them; empty without one.
pub(super) fn clusters_of(service: &Value) -> [&str; 2] {
    SLOTS.map(|slot| text(&service["status"][slot]["rayClusterName"]))
}

impl ServiceState {
    pub(super) fn read(service: &Value) -> Self {
        let status = &service["status"];
        let number = |name: &str| status[name].as_i64().unwrap_or_default();
        let [active, pending] = SLOTS.map(|slot| ClusterSlot::read(&status[slot]));
        Self {
            active,
            pending,
            conditions: items(&status["conditions"]).to_vec(),
            endpoints: i32::try_from(number("numServeEndpoints")).unwrap_or_default(),
            observed_generation: number("observedGeneration"),
            is_running: text(&status["serviceStatus"]) == "Running",
        }
    }

    /// The status as it is stored: what is empty is left out.
    pub(super) fn to_value(&self, now: Timestamp) -> Value {
        let mut status = Map::new();
        for (slot, of) in SLOTS.iter().zip([&self.active, &self.pending]) {
            status.insert((*slot).to_owned(), of.to_value());
        }
        status.insert("lastUpdateTime".to_owned(), json!(rfc3339(now)));
        if !self.conditions.is_empty() {
            status.insert("conditions".to_owned(), json!(self.conditions));
        }
        if self.endpoints != 0 {
            status.insert("numServeEndpoints".to_owned(), json!(self.endpoints));
        }
        if self.observed_generation != 0 {
            status.insert("observedGeneration".to_owned(), json!(self.observed_generation));
        }
        if self.is_running {
            status.insert("serviceStatus".to_owned(), json!("Running"));
        }
        Value::Object(status)
    }

    /// Whether a write is worth it. Copies of the status of clusters and a new generation alone are none, as in the official operator.
    pub(super) fn differs(&self, before: &Self) -> bool {
        self.active.differs(&before.active)
            || self.pending.differs(&before.pending)
            || self.conditions != before.conditions
            || self.endpoints != before.endpoints
            || self.is_running != before.is_running
    }

    /// Forgets all clusters.
    pub(super) fn reset(&mut self) {
        self.active = ClusterSlot::default();
        self.pending = ClusterSlot::default();
        self.endpoints = 0;
        self.is_running = false;
    }

    /// The names of the clusters that are in use.
    pub(super) fn clusters(&self) -> [&str; 2] {
        [&self.active.cluster, &self.pending.cluster]
    }
}
