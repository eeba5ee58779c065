//! Name, addresses and place of a real node.
//!
//! A node's number is unique in its lab: all nodes of a lab, of whatever cluster, are connected to one gateway.

use std::iter;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The label of real nodes. kwok leaves nodes with this label alone.
pub const LABEL: &str = "lab.sluice.dev/node";

/// The value of [`LABEL`].
pub const REAL: &str = "real";

/// The most real nodes of a lab: their numbers are the last byte of their addresses, less one.
pub const MOST: usize = 200;

/// The address under which nodes and pods reach the API servers.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 210, 0, 1);

/// How many real nodes the clusters of a lab have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RealNodeCounts {
    /// Of the manager cluster.
    pub manager: usize,
    /// Of each worker cluster.
    pub each_worker: usize,
    /// What the last worker cluster has besides, so that workers are of unequal size.
    pub more_of_last: usize,
}

impl RealNodeCounts {
    /// All real nodes of a lab with so many workers.
    pub fn total(self, workers: usize) -> usize {
        self.of_clusters(workers).sum()
    }

    /// Those of each cluster of a lab with so many workers: of the manager's first.
    pub fn of_clusters(self, workers: usize) -> impl Iterator<Item = usize> {
        let of_worker =
            move |number| self.each_worker + if number == workers { self.more_of_last } else { 0 };
        iter::once(self.manager).chain((1..=workers).map(of_worker))
    }
}

/// A real node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RealNode {
    /// Its name in the API, unique in its cluster.
    pub name: String,
    /// Unique in the lab, from 1.
    pub number: u8,
    /// Its files.
    pub directory: PathBuf,
}

impl RealNode {
    /// The node `place` (from 1) of the cluster in `cluster`; `number` is unique in the lab.
    pub fn new(cluster: &Path, place: usize, number: u8) -> Self {
        let name = format!("real-{place}");
        Self { directory: cluster.join(&name), name, number }
    }

    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 210, 0, self.number + 1)
    }

    /// The addresses of its pods.
    pub fn pod_range(&self) -> String {
        format!("10.220.{}.0/24", self.number)
    }

    /// Whether an address is its own or that of one of its pods.
    pub fn has(&self, address: Ipv4Addr) -> bool {
        let [first, second, third, _] = address.octets();
        address == self.address() || [first, second, third] == [10, 220, self.number]
    }

    /// The gateway's end of its link.
    pub fn link(&self) -> String {
        format!("node{}", self.number)
    }

    /// The log of one of its programs.
    pub fn log(&self, program: &str) -> PathBuf {
        self.directory.join(format!("{program}.log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_worker_may_have_more_nodes_than_the_others() {
        let counts = RealNodeCounts { manager: 1, each_worker: 2, more_of_last: 3 };
        assert_eq!(counts.of_clusters(3).collect::<Vec<_>>(), [1, 2, 2, 5]);
        assert_eq!((counts.total(3), counts.total(0)), (10, 1));
    }

    #[test]
    fn two_nodes_of_a_lab_share_no_address() {
        let nodes = [1, 2, 200].map(|number| RealNode::new(Path::new("/l/worker-1"), 1, number));
        let addresses = nodes.each_ref().map(RealNode::address);
        assert_eq!(addresses.map(|one| one.octets()[3]), [2, 3, 201]);
        assert!(!addresses.contains(&GATEWAY));
        assert_eq!(nodes[1].pod_range(), "10.220.2.0/24");
        let pod = Ipv4Addr::new(10, 220, 2, 9);
        assert_eq!(nodes.each_ref().map(|node| node.has(pod)), [false, true, false]);
        assert!(nodes[1].has(nodes[1].address()) && !nodes[0].has(nodes[1].address()));
        assert_eq!(nodes[2].directory, Path::new("/l/worker-1/real-1"));
    }
}
