//! A cluster with a full store: reads succeed, writes fail.
//!
//! etcd is restarted with a quota below its size. The next write raises an alarm, which outlives the quota and has to be
//! disarmed with the id of its member.

use std::net::{Ipv4Addr, SocketAddr};

use lab::Component;
use serde_json::{Value, json};

use crate::cluster::{Cluster, ClusterError};
use crate::plain_http;

const ALARMS: &str = "/v3/maintenance/alarm";

impl Cluster {
    /// From now on every write fails with "database space exceeded".
    pub async fn fill_store(&self) -> Result<(), ClusterError> {
        self.restart_with(Component::Etcd, &["--quota-backend-bytes=4096"]).await
    }

    /// Restores the store.
    pub async fn empty_store(&self) -> Result<(), ClusterError> {
        self.restart(Component::Etcd).await?;
        let raised = self.ask_store(&json!({"action": "GET"})).await?;
        for alarm in raised["alarms"].as_array().into_iter().flatten() {
            let mut taken_back = alarm.clone();
            taken_back["action"] = json!("DEACTIVATE");
            self.ask_store(&taken_back).await?;
        }
        Ok(())
    }

    async fn ask_store(&self, request: &Value) -> Result<Value, ClusterError> {
        let failed =
            |reason: String| ClusterError::Store { cluster: self.name().to_owned(), reason };
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, self.state().etcd_port));
        let answer = plain_http::ask(server, ALARMS, &request.to_string()).await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        if !answer.is_ok() {
            return Err(failed(format!("{}: {}", answer.status, answer.body)));
        }
        serde_json::from_str(&answer.body).map_err(|error| failed(error.to_string()))
    }
}
