//! How many nodes the clusters have, and the inotify instances that these need.

use anyhow::{Result, bail};

/// The file with the limit per user.
pub(crate) const INOTIFY_LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";

/// How many nodes the clusters have.
#[derive(Clone, Copy)]
pub(crate) enum KindNodeCounts {
    /// One, one and three.
    Unequal,
    /// One, one and two.
    Few,
    /// One each.
    One,
}

impl KindNodeCounts {
    /// The file that has the nodes of the cluster `file`.
    pub(crate) fn file(self, file: &str) -> &str {
        match self {
            Self::Unequal => file,
            Self::Few if file == "worker-2" => "worker-2-few",
            Self::Few => file,
            Self::One => "manager",
        }
    }

    /// How many nodes there are, and the limit of inotify instances that they need. For more than four it is the one in kind's own
    /// documentation.
    fn demand(self) -> (&'static str, u32) {
        match self {
            Self::Unequal => ("five", 512),
            Self::Few => ("four", 128),
            Self::One => ("three", 128),
        }
    }

    /// Nodes without watches do not become ready, and do not say why. `limit` is unknown where the kernel has none.
    pub(crate) fn check_inotify(self, limit: Option<&str>) -> Result<()> {
        let limit = limit.and_then(|limit| limit.trim().parse::<u32>().ok());
        let (nodes, needed) = self.demand();
        if let Some(limit) = limit.filter(|limit| *limit < needed) {
            bail!(
                "fs.inotify.max_user_instances is {limit}, and {nodes} nodes of kind need {needed}: \
                 `sysctl fs.inotify.max_user_instances={needed}`, or `--ignore-inotify`"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_of_inotify_is_named_with_the_command_that_raises_it() {
        let five = KindNodeCounts::Unequal;
        assert!(five.check_inotify(Some("512\n")).is_ok() && five.check_inotify(None).is_ok());
        let said = five.check_inotify(Some("128\n")).unwrap_err().to_string();
        assert!(said.starts_with("fs.inotify.max_user_instances is 128, and five nodes"), "{said}");
        assert!(said.contains("`sysctl fs.inotify.max_user_instances=512`"), "{said}");
        assert!(KindNodeCounts::Few.check_inotify(Some("128\n")).is_ok());
        let said = KindNodeCounts::Few.check_inotify(Some("127\n")).unwrap_err().to_string();
        assert!(said.contains("four nodes of kind need 128"), "{said}");
        assert!(KindNodeCounts::One.check_inotify(Some("128\n")).is_ok());
        let said = KindNodeCounts::One.check_inotify(Some("64\n")).unwrap_err().to_string();
        assert!(said.contains("three nodes of kind need 128"), "{said}");
    }
}
