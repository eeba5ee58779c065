//! Real nodes: a kubelet with containerd and runc, beside the nodes that kwok simulates (docs/reference/lab.md, "Real nodes").
//!
//! ```text
//! host                        │ network namespace "gateway"     │ one set of namespaces per node
//! API server <── host.sock ───┼── 10.210.0.1:PORT <─────────────┼── kubelet, kube-proxy, pods
//!     └──────── egress.sock ──┼─> CONNECT ──────────────────────┼─> kubelet :10250, pods
//!                             │   routes between the nodes      │   containerd, runc
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`node`] | name, addresses and place of a node |
//! | [`preflight`] | what the machine lacks |
//! | [`inotify`] | how many watchers of files they need |
//! | [`memory`] | how much memory they leave |
//! | [`configuration`] | the configuration of kubelet, kube-proxy, containerd and CNI |
//! | [`container_image`] | the images of a node, made here |
//! | [`files`] | all files of a node |
//! | [`cgroups`] | the control groups of a lab |
//! | [`gateway`] | the namespace that the nodes are connected to, and its two proxies |
//! | [`dns`] | names of Services |
//! | [`dns_message`] | questions and answers of DNS |
//! | [`links`] | the network of a node |
//! | [`init`] | process 1 of a node |
//! | [`running_node`] | a node as other processes find it; images imported later |
//! | [`faults`] | programs killed, links cut |
//!
//! Invariants:
//! * The network of the host is not changed. Only unix sockets connect it with the gateway: they do not belong to a network namespace.
//! * A node is one process for its owner: the kernel ends everything in the node's namespaces with it, mounts and links included. Only
//!   empty control groups remain ([`cgroups::remove`]).

pub mod cgroups;
pub mod configuration;
pub mod container_image;
pub mod dns;
pub mod dns_message;
pub mod faults;
pub mod files;
pub mod gateway;
pub mod init;
pub mod inotify;
pub mod links;
pub mod memory;
pub mod node;
pub mod preflight;
pub mod running_node;
