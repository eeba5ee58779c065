//! What is kept between the passes about a RayService.
//!
//! It is lost with the process: a configuration is then sent once more, which changes nothing at a head that has it, and the delay of a
//! removal begins again. The official operator keeps both in the same way. The old cluster of an incremental upgrade has another
//! configuration than the spec, so that one is read from its head (`serve_config`).

use std::collections::BTreeMap;

use jiff::Timestamp;

/// The memory of the passes about one RayService.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceMemory {
    /// By cluster, the configuration that its head took.
    sent: BTreeMap<String, String>,
    /// By cluster, when it is removed.
    removals: BTreeMap<String, Timestamp>,
}

impl ServiceMemory {
    /// The configuration that the head of a cluster took; empty if none is known.
    pub(super) fn sent(&self, cluster: &str) -> &str {
        self.sent.get(cluster).map_or("", String::as_str)
    }

    /// Notes what a head took. An empty configuration is sent again and again, as by the official operator.
    pub(super) fn note_sent(&mut self, cluster: &str, config: &str) {
        if !config.is_empty() {
            self.sent.insert(cluster.to_owned(), config.to_owned());
        }
    }

    /// When a cluster that is not needed any more is removed: after `delay` from its first mention.
    pub(super) fn removal(&mut self, cluster: &str, planned: Timestamp) -> Timestamp {
        *self.removals.entry(cluster.to_owned()).or_insert(planned)
    }

    /// Forgets clusters that are neither used nor there to be removed.
    pub(super) fn retain(&mut self, used: &[&str], superfluous: &[&str]) {
        self.sent.retain(|cluster, _| used.contains(&cluster.as_str()));
        self.removals.retain(|cluster, _| superfluous.contains(&cluster.as_str()));
    }
}
