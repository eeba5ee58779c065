//! Instances of inotify: the kernel limits them per user, over all labs and other programs.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{CreateFlags, init};

/// Those of the components of a cluster, with kwok: most watch their certificates.
const EACH_CLUSTER: usize = 9;

/// Those of kubelet, containerd and kube-proxy.
const EACH_NODE: usize = 8;

const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";

/// What labs will open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InotifyDemand {
    /// Clusters, with the manager's.
    pub clusters: usize,
    /// Real nodes of all clusters.
    pub nodes: usize,
}

impl InotifyDemand {
    fn instances(self) -> usize {
        self.clusters * EACH_CLUSTER + self.nodes * EACH_NODE
    }

    /// Opens as many, closes them again, and says how many are lacking.
    pub fn lacking(self) -> Option<String> {
        let limit = std::fs::read_to_string(LIMIT).unwrap_or_default();
        let failed = try_open(self.instances(), || Ok(init(CreateFlags::CLOEXEC)?)).err()?;
        Some(self.message(&failed, limit.trim()))
    }

    fn message(self, (opened, error): &(usize, io::Error), limit: &str) -> String {
        let Self { clusters, nodes } = self;
        let wanted = self.instances();
        format!(
            "{clusters} clusters with {nodes} real nodes open {wanted} inotify instances, and only {opened} can be opened ({error}); \
             end other programs of this user, or raise fs.inotify.max_user_instances, which is {limit}"
        )
    }
}

/// Holds so many at once. An error has the number that could be opened.
fn try_open(
    wanted: usize,
    mut open: impl FnMut() -> io::Result<OwnedFd>,
) -> Result<(), (usize, io::Error)> {
    let mut held = Vec::new();
    while held.len() < wanted {
        match open() {
            Ok(instance) => held.push(instance),
            Err(error) => return Err((held.len(), error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_sentence_names_what_is_wanted_what_there_is_and_the_setting() {
        let mut left = 52;
        let limited = || {
            left -= 1;
            match left {
                0.. => Ok(std::fs::File::open("/dev/null")?.into()),
                _ => Err(io::Error::from_raw_os_error(24)),
            }
        };
        let demand = InotifyDemand { clusters: 3, nodes: 6 };
        let failed = try_open(demand.instances(), limited).unwrap_err();
        let said = demand.message(&failed, "128");
        assert!(said.starts_with("3 clusters with 6 real nodes open 75 inotify"), "{said}");
        assert!(said.contains("only 52 can be opened (Too many open files"), "{said}");
        assert!(said.ends_with("fs.inotify.max_user_instances, which is 128"), "{said}");
    }

    /// A pipe ends for its reader once every writer is closed. Real instances would depend on what other programs hold.
    #[test]
    fn what_was_opened_as_a_trial_is_closed_again() {
        let (mut reader, writer) = io::pipe().unwrap();
        try_open(10, || Ok(writer.try_clone()?.into())).unwrap();
        drop(writer);
        let mut nothing = Vec::new();
        assert_eq!(reader.read_to_end(&mut nothing).unwrap(), 0);
    }
}
