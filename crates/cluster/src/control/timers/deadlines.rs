//! Times at which Workloads reach a limit (PodsReady timeout, maximum execution time): at most one per Workload, so a limit
//! that moves leaves no stale timer behind.

use std::collections::BTreeSet;

use crate::control::key_map::KeyMap;
use jiff::Timestamp;
use runtime::watch::Key;

/// One time per Workload, in order.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    of: KeyMap<Key, Timestamp>,
    in_order: BTreeSet<(Timestamp, Key)>,
}

impl Deadlines {
    /// Sets the time of a Workload; `None` removes it.
    pub(crate) fn set(&mut self, key: &Key, at: Option<Timestamp>) {
        if self.of.get(key).copied() == at {
            return;
        }
        let before = match at {
            Some(at) => {
                self.in_order.insert((at, key.clone()));
                self.of.insert(key.clone(), at)
            }
            None => self.of.remove(key),
        };
        if let Some(before) = before {
            self.in_order.remove(&(before, key.clone()));
        }
    }

    /// The time of a Workload.
    pub(crate) fn at(&self, key: &Key) -> Option<Timestamp> {
        self.of.get(key).copied()
    }

    /// Takes the Workloads whose time is not after `now`.
    pub(crate) fn take_reached(&mut self, now: Timestamp) -> Vec<Key> {
        let mut reached = Vec::new();
        while let Some((at, key)) = self.in_order.pop_first() {
            if at > now {
                self.in_order.insert((at, key));
                break;
            }
            self.of.remove(&key);
            reached.push(key);
        }
        reached
    }

    /// Takes the first of these Workloads, at most so many.
    pub(crate) fn take_first_reached(&mut self, now: Timestamp, most: usize) -> Vec<Key> {
        let reached = self.in_order.iter().take_while(|(at, _)| *at <= now).take(most);
        let reached: Vec<Key> = reached.map(|(_, key)| key.clone()).collect();
        reached.iter().for_each(|key| self.set(key, None));
        reached
    }

    /// The earliest time.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.in_order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_has_one_time_and_is_taken_once() {
        let key = |name: &str| Key { namespace: None, name: name.into() };
        let at = |second| Timestamp::from_second(second).expect("a time");
        let mut deadlines = Deadlines::default();
        deadlines.set(&key("a"), Some(at(10)));
        deadlines.set(&key("b"), Some(at(20)));
        deadlines.set(&key("c"), Some(at(15)));
        deadlines.set(&key("a"), Some(at(30)));
        deadlines.set(&key("c"), None);
        assert_eq!(deadlines.next(), Some(at(20)));
        assert_eq!((deadlines.at(&key("a")), deadlines.at(&key("c"))), (Some(at(30)), None));
        assert_eq!(deadlines.take_reached(at(19)), []);
        deadlines.set(&key("d"), Some(at(19)));
        deadlines.set(&key("e"), Some(at(19)));
        assert_eq!(deadlines.take_first_reached(at(19), 1), [key("d")]);
        assert_eq!(deadlines.take_first_reached(at(19), 2), [key("e")]);
        assert_eq!(deadlines.take_reached(at(40)), [key("b"), key("a")]);
        assert_eq!((deadlines.next(), deadlines.take_reached(at(99))), (None, vec![]));
    }
}
