//! Free ports on loopback.
//!
//! They are taken from *below* the kernel's range for outgoing connections, and the kernel is asked for each of them
//! whether it is free. Ports out of that range (what binding to port 0 gives) look simpler and fail in fault tests: while
//! an API server is down, its clients keep dialling its port, and sooner or later the kernel gives one of them that very
//! port as its own, which connects the client to itself and keeps the server from ever binding again.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Below the default range of outgoing connections, and above well-known ports.
const LOWEST: u16 = 20_000;

/// Not enough free ports.
#[derive(Debug, thiserror::Error)]
#[error("only {found} of {wanted} ports are free between {LOWEST} and {highest} on 127.0.0.1")]
pub struct NoPorts {
    found: usize,
    wanted: usize,
    highest: u16,
}

/// Ports this process has handed out, free or not by now.
static HANDED_OUT: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// `wanted` ports that are free now, that this process has not handed out before and that are none of `taken`.
pub fn free(wanted: usize, taken: &HashSet<u16>) -> Result<Vec<u16>, NoPorts> {
    let mut guard = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    let handed_out = guard.get_or_insert_default();
    let highest = lowest_outgoing() - 1;
    let found: Vec<u16> = candidates(highest, std::process::id())
        .filter(|port| !taken.contains(port) && !handed_out.contains(port))
        .filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .take(wanted)
        .collect();
    if found.len() < wanted {
        return Err(NoPorts { found: found.len(), wanted, highest });
    }
    handed_out.extend(&found);
    Ok(found)
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

/// All ports of the range once, beginning at a place that differs per process, so that two processes that look for
/// ports at the same moment rarely meet.
fn candidates(highest: u16, seed: u32) -> impl Iterator<Item = u16> {
    let count = u32::from(highest - LOWEST) + 1;
    let begin = seed.wrapping_mul(2_654_435_761) % count;
    (0..count)
        .filter_map(move |step| u16::try_from(u32::from(LOWEST) + (begin + step) % count).ok())
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
        let port = candidates(lowest_outgoing() - 1, 7)
            .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
            .unwrap();
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!free(50, &HashSet::new()).unwrap().contains(&port));
    }

    #[test]
    fn a_demand_above_what_is_free_names_both_numbers() {
        let said = free(70_000, &HashSet::new()).unwrap_err().to_string();
        assert!(said.starts_with("only ") && said.contains(" of 70000 ports are free"), "{said}");
        assert!(said.ends_with("on 127.0.0.1"), "{said}");
    }

    #[test]
    fn the_candidates_are_the_whole_range_once() {
        let all: Vec<u16> = candidates(LOWEST + 99, 12_345).collect();
        assert_eq!(all.len(), 100);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 100);
    }
}
