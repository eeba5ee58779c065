//! Free ports on loopback.
//!
//! They are taken from *below* the kernel's range for outgoing connections, and the kernel is asked for each of them
//! whether it is free. Ports out of that range (what binding to port 0 gives) look simpler and fail in fault tests: while
//! an API server is down, its clients keep dialling its port, and sooner or later the kernel gives one of them that very
//! port as its own, which connects the client to itself and keeps the server from ever binding again.
//!
//! A port is bound seconds after it was chosen, so a process takes whole blocks of the range, and locks the file of each until it
//! ends: labs that start at the same time get ports of different blocks.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Below the default range of outgoing connections, and above well-known ports.
const LOWEST: u16 = 20_000;

/// Ports of a block.
const BLOCK: u16 = 128;

/// Not enough free ports.
#[derive(Debug, thiserror::Error)]
#[error("only {found} of {wanted} ports are free between {LOWEST} and {highest} on 127.0.0.1")]
pub struct NoPorts {
    found: usize,
    wanted: usize,
    highest: u16,
}

/// What this process has of the range.
#[derive(Default)]
struct OwnPorts {
    /// Ports that were handed out, free or not by now.
    handed_out: HashSet<u16>,
    /// Blocks, by their first ports, with the locks that hold them.
    blocks: Vec<(u16, Option<File>)>,
}

static OWN_PORTS: Mutex<Option<OwnPorts>> = Mutex::new(None);

/// `wanted` ports that are free now, that this process has not handed out before and that are none of `taken`.
pub fn free(wanted: usize, taken: &HashSet<u16>) -> Result<Vec<u16>, NoPorts> {
    let mut guard = OWN_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let own = guard.get_or_insert_default();
    let highest = lowest_outgoing() - 1;
    let most = usize::from(highest - LOWEST) + 1;
    if wanted > most {
        return Err(NoPorts { found: most, wanted, highest });
    }
    let mut found = Vec::new();
    for block in blocks(highest, std::process::id()) {
        if found.len() < wanted && own.holds(&block) {
            let ports = block.filter(|port| !taken.contains(port) && own.is_free(*port));
            found.extend(ports.take(wanted - found.len()));
        }
    }
    if found.len() < wanted {
        return Err(NoPorts { found: found.len(), wanted, highest });
    }
    own.handed_out.extend(&found);
    Ok(found)
}

impl OwnPorts {
    /// Whether the block belongs to this process, now at the latest.
    fn holds(&mut self, block: &Range<u16>) -> bool {
        if self.blocks.iter().any(|(first, _)| *first == block.start) {
            return true;
        }
        let Ok(lock) = lock(block.start) else {
            return false;
        };
        self.blocks.push((block.start, lock));
        true
    }

    fn is_free(&self, port: u16) -> bool {
        !self.handed_out.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    }
}

/// Another process holds the block.
struct Held;

/// Locks a block; `None` where files cannot be locked, and ports may be chosen twice.
fn lock(first: u16) -> Result<Option<File>, Held> {
    let folder = lock_folder();
    let path = folder.join(first.to_string());
    let open = || {
        std::fs::create_dir_all(&folder)?;
        OpenOptions::new().create(true).append(true).open(&path)
    };
    let Ok(file) = open() else {
        return Ok(None);
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Held),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn lock_folder() -> PathBuf {
    std::env::temp_dir().join("sluice-lab-ports")
}

/// One free port, for a server of a test.
pub fn one() -> Result<u16, NoPorts> {
    let ports = free(1, &HashSet::new())?;
    ports.first().copied().ok_or(NoPorts { found: 0, wanted: 1, highest: lowest_outgoing() })
}

/// The first of these ports that another program listens on.
pub(crate) fn taken(ports: &[u16]) -> Option<u16> {
    let is_taken = |port: &&u16| TcpListener::bind((Ipv4Addr::LOCALHOST, **port)).is_err();
    ports.iter().find(is_taken).copied()
}

/// All ports of the range once, in blocks, beginning at a place that differs per process, so that two processes that look for
/// ports at the same moment rarely meet.
fn blocks(highest: u16, seed: u32) -> impl Iterator<Item = Range<u16>> {
    let count = u32::from((highest - LOWEST) / BLOCK) + 1;
    let begin = seed.wrapping_mul(2_654_435_761) % count;
    (0..count).filter_map(move |step| {
        let first = LOWEST + u16::try_from((begin + step) % count).ok()? * BLOCK;
        Some(first..first.saturating_add(BLOCK).min(highest + 1))
    })
}

/// The first port of the kernel's range for outgoing connections.
fn lowest_outgoing() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .filter(|first| *first > LOWEST + 1_000)
        .unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_unique_and_not_in_use() {
        let first = free(20, &HashSet::new()).unwrap();
        let taken: HashSet<u16> = (first[19] + 1..first[19] + 40).collect();
        let second = free(20, &taken).unwrap();
        let all: HashSet<u16> = first.iter().chain(&second).copied().collect();
        assert_eq!(all.len(), 40);
        assert!(all.iter().all(|port| *port >= LOWEST && *port < lowest_outgoing()));
        assert!(second.iter().all(|port| !taken.contains(port)));
    }

    #[test]
    fn a_port_in_use_is_skipped() {
        // Handed out, so that no other test binds it.
        let port = free(1, &HashSet::new()).unwrap()[0];
        let own = OwnPorts::default();
        assert!(own.is_free(port));
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!own.is_free(port));
    }

    #[test]
    fn a_demand_above_what_is_free_names_both_numbers() {
        let said = free(70_000, &HashSet::new()).unwrap_err().to_string();
        assert!(said.starts_with("only ") && said.contains(" of 70000 ports are free"), "{said}");
        assert!(said.ends_with("on 127.0.0.1"), "{said}");
    }

    #[test]
    fn the_blocks_are_the_whole_range_once() {
        let all: Vec<u16> = blocks(LOWEST + 999, 12_345).flatten().collect();
        assert_eq!(all.len(), 1_000);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 1_000);
    }

    #[test]
    fn no_port_of_a_block_that_another_process_holds_is_taken() {
        let mut own = OwnPorts::default();
        // Below the range, so that no test that looks for ports has it.
        let first = u16::try_from(std::process::id() % u32::from(LOWEST)).unwrap();
        let block = first..first + BLOCK;
        // Locks belong to open files: two of one process are as those of two processes.
        let held = lock(block.start);
        assert!(!own.holds(&block));
        drop(held);
        assert!(own.holds(&block), "its process has ended");
        assert!(own.holds(&block) && lock(block.start).is_err());
    }
}
