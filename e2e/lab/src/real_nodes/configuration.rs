//! The configuration files of a node's programs.
//!
//! What differs from the defaults, and why:
//! * The kubelet accepts cgroup v1 and swap, whatever the machine has, and does not lower its own OOM score, which needs a capability that
//!   root may lack. Its control groups lie below those of the lab.
//! * Disk pressure and the collection of images are off: the disk is the developer's, and images cannot be pulled again.
//! * Pods resolve names of Services, and no others: nothing outside of a lab is reached.
//! * kube-proxy leaves the machine's limits of connection tracking as they are.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Value, json};

use super::dns::DOMAIN;
use super::node::{GATEWAY, RealNode};

/// Where containerd listens, in the node's own `/run`.
pub const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// The image of a pod's sandbox.
pub const PAUSE_IMAGE: &str = "lab.sluice.dev/pause:1";

/// An image with a shell and common tools.
pub const BUSYBOX_IMAGE: &str = "lab.sluice.dev/busybox:1";

/// Its name in `config/samples`: the samples run where nothing can be pulled.
pub const SAMPLE_IMAGE: &str = "docker.io/library/busybox:1.37";

/// The most pods of a node.
const PODS: u16 = 60;

/// The kubelet's configuration. `authority` is the certificate file that the API server's client certificate is checked with.
pub fn kubelet(node: &RealNode, authority: &Path, cgroup_root: &str) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address(),
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": authority},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "enforceNodeAllocatable": ["pods"],
        "failCgroupV1": false,
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "maxPods": PODS,
        "podCIDR": node.pod_range(),
        "resolvConf": "",
        "clusterDNS": [GATEWAY],
        "clusterDomain": DOMAIN,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "8760h",
        "evictionHard": {
            "memory.available": "64Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
    })
}

/// kube-proxy's configuration.
pub fn kube_proxy(node: &RealNode, kubeconfig: &Path) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": node.name,
        "bindAddress": node.address(),
        "clusterCIDR": "10.220.0.0/16",
        "clientConnection": {"kubeconfig": kubeconfig},
        "nftables": {"minSyncPeriod": "200ms"},
        "oomScoreAdj": 0,
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
            "udpTimeout": "0s",
            "udpStreamTimeout": "0s",
        },
    })
}

/// containerd's configuration. Its files lie in the node's own `/var/lib` and `/run`.
pub fn containerd(runc: &Path, plugins: &Path, networks: &Path) -> String {
    let (runc, plugins, networks) = (runc.display(), plugins.display(), networks.display());
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{plugins}"
  conf_dir = "{networks}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "{runc}"
  SystemdCgroup = false
"#
    )
}

/// The network of pods: a routed link per pod, so that a Service whose backend is on the same node needs no bridge filter.
pub fn network(node: &RealNode) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "dataDir": "/var/lib/cni/networks",
                "ranges": [[{"subnet": node.pod_range()}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    })
}

/// The endpoint of the Service `default/kubernetes`, which the API server of a lab does not write.
pub fn kubernetes_endpoint(address: Ipv4Addr, port: u16) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> RealNode {
        RealNode::new(Path::new("/labs/x/worker-1"), 1, 3)
    }

    #[test]
    fn files_of_a_node_name_its_own_addresses() {
        let kubelet = kubelet(&node(), Path::new("/pki/ca.crt"), "/sluice-lab/x");
        assert_eq!(kubelet["address"], "10.210.0.4");
        assert_eq!(kubelet["cgroupRoot"], "/sluice-lab/x");
        let subnet = &network(&node())["plugins"][0]["ipam"]["ranges"][0][0]["subnet"];
        assert_eq!(subnet, &kubelet["podCIDR"]);
        let proxy = kube_proxy(&node(), Path::new("/kubeconfig"));
        assert_eq!(proxy["bindAddress"], kubelet["address"]);
    }

    #[test]
    fn containerd_keeps_to_the_directories_of_the_node() {
        let text = containerd(Path::new("/p/runc"), Path::new("/p/cni"), Path::new("/n/cni"));
        assert!(text.contains("BinaryName = \"/p/runc\""), "{text}");
        assert!(text.contains("sandbox_image = \"lab.sluice.dev/pause:1\""), "{text}");
    }
}
