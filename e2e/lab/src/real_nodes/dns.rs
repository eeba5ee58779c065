//! Names of Services for pods on real nodes: a server of DNS at the gateway's address.
//!
//! One server serves all clusters of a lab: the address of a pod says which cluster it belongs to. Each question is a request to that
//! cluster's API server, so that nothing is kept. Names of other zones do not exist.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use tokio::net::UdpSocket;
use tokio::sync::OnceCell;

use super::dns_message::{DnsAnswer, DnsQuestion};
use super::node::GATEWAY;
use crate::kubeconfig::{self, KubeconfigFailure};
use crate::state::ClusterState;

/// The domain of a cluster, as a kubelet names it to pods.
pub const DOMAIN: &str = "cluster.local";

/// Where resolvers send their questions.
pub const PORT: u16 = 53;

/// A question of a resolver is short.
const LONGEST: usize = 512;

/// Why a name could not be looked up.
#[derive(Debug, thiserror::Error)]
enum DnsError {
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigFailure),
    #[error("{operation} {namespace}/{name}: {source}")]
    Request { operation: &'static str, namespace: String, name: String, source: kube::Error },
}

/// A cluster with pods that ask. Its client is made at the first question, as its API server starts after the gateway.
struct AskedCluster {
    state: ClusterState,
    client: OnceCell<Client>,
}

/// Answers questions about these clusters until the process ends.
pub(super) async fn serve(socket: UdpSocket, clusters: &[ClusterState]) {
    let asked = |state: &ClusterState| {
        Rc::new(AskedCluster { state: state.clone(), client: OnceCell::new() })
    };
    let clusters: Vec<Rc<AskedCluster>> = clusters.iter().map(asked).collect();
    let socket = Rc::new(socket);
    let mut message = [0; LONGEST];
    loop {
        // The kernel reports here that a pod which asked has gone.
        let Ok((length, from)) = socket.recv_from(&mut message).await else { continue };
        let question = message.get(..length).and_then(DnsQuestion::parse);
        let (Some(question), Some(cluster)) = (question, cluster_of(from, &clusters)) else {
            continue;
        };
        let (socket, cluster) = (Rc::clone(&socket), Rc::clone(cluster));
        tokio::task::spawn_local(async move {
            let answer = cluster.look_up(&question.name).await.unwrap_or_else(|error| {
                eprintln!("look up {}: {error}", question.name);
                DnsAnswer::Failed
            });
            // The pod that asked may have gone.
            drop(socket.send_to(&question.answer(&answer), from).await);
        });
    }
}

/// The cluster of the pod or node that has an address.
fn cluster_of(from: SocketAddr, clusters: &[Rc<AskedCluster>]) -> Option<&Rc<AskedCluster>> {
    let IpAddr::V4(address) = from.ip() else { return None };
    clusters.iter().find(|cluster| cluster.state.real_nodes.iter().any(|node| node.has(address)))
}

impl AskedCluster {
    async fn look_up(&self, name: &str) -> Result<DnsAnswer, DnsError> {
        let Some((name, namespace)) = service_of(name) else {
            return Ok(DnsAnswer::NoSuchName);
        };
        let client = self.client.get_or_try_init(|| self.connect()).await?.clone();
        let failed = |operation| {
            move |source| DnsError::Request {
                operation,
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                source,
            }
        };
        let services: Api<Service> = Api::namespaced(client.clone(), namespace);
        let Some(service) = services.get_opt(name).await.map_err(failed("get Service"))? else {
            return Ok(DnsAnswer::NoSuchName);
        };
        let address = service.spec.and_then(|spec| spec.cluster_ip);
        if let Some(address) = address.as_deref().and_then(|address| address.parse().ok()) {
            return Ok(DnsAnswer::Addresses(vec![address]));
        }
        // A Service without an address of its own has those of its pods.
        let slices: Api<EndpointSlice> = Api::namespaced(client, namespace);
        let of_service =
            ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
        let slices = slices.list(&of_service).await.map_err(failed("list EndpointSlices of"))?;
        Ok(DnsAnswer::Addresses(addresses(&slices.items)))
    }

    /// A client through the gateway, as this process has no other way to the host.
    async fn connect(&self) -> Result<Client, DnsError> {
        let admin = Kubeconfig::read_from(self.state.kubeconfig());
        let admin = admin.map_err(KubeconfigFailure::from)?;
        let server = format!("https://{GATEWAY}:{}", self.state.api_port);
        Ok(kubeconfig::client(kubeconfig::at_server(admin, &server)).await?)
    }
}

/// Name and namespace of the Service that a name stands for.
fn service_of(name: &str) -> Option<(&str, &str)> {
    let name = name.strip_suffix(DOMAIN)?.strip_suffix(".svc.")?;
    let (name, namespace) = name.split_once('.')?;
    (!name.is_empty() && !namespace.contains('.')).then_some((name, namespace))
}

/// The addresses of ready endpoints, in order.
fn addresses(slices: &[EndpointSlice]) -> Vec<Ipv4Addr> {
    let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    });
    let all = ready.flat_map(|endpoint| &endpoint.addresses);
    let mut all: Vec<Ipv4Addr> = all.filter_map(|address| address.parse().ok()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_names_of_services_are_looked_up() {
        assert_eq!(service_of("head.ns.svc.cluster.local"), Some(("head", "ns")));
        for other in [
            "example.com",
            "head.ns.svc.cluster.local.example.com",
            "head.ns.svc.cluster.local.ns.svc.cluster.local",
            "pod.head.ns.svc.cluster.local",
            ".ns.svc.cluster.local",
            "ns.svc.cluster.local",
            "svc.cluster.local",
            "",
        ] {
            assert_eq!(service_of(other), None, "{other}");
        }
    }

    #[test]
    fn endpoints_that_are_not_ready_have_no_name() {
        let slice: EndpointSlice = serde_json::from_value(json!({
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.220.1.9"], "conditions": {"ready": true}},
                {"addresses": ["10.220.1.7"], "conditions": {"ready": false}},
                {"addresses": ["10.220.1.8"], "conditions": {}},
            ],
        }))
        .unwrap();
        let expected = [Ipv4Addr::new(10, 220, 1, 8), Ipv4Addr::new(10, 220, 1, 9)];
        assert_eq!(addresses(&[slice.clone(), slice]), expected);
    }
}
