//! Times at which Workloads reach a limit (PodsReady timeout, maximum execution time) or are explained: at most one per Workload, so a
//! time that moves leaves no stale timer behind.

use std::collections::BTreeSet;

use crate::control::{key_map::KeyMap, time::moved};
use jiff::{SignedDuration, Timestamp};
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

    /// The clock jumped: what lasts goes on. Not called for times that API objects determine.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { of, in_order } = self;
        of.for_each_mut(|_, at| *at = moved(*at, by));
        let all = std::mem::take(in_order).into_iter();
        *in_order = all.map(|(at, key)| (moved(at, by), key)).collect();
    }

    /// The time of a Workload.
    pub(crate) fn at(&self, key: &Key) -> Option<Timestamp> {
        self.of.get(key).copied()
    }

    /// Takes the Workloads whose time is not after `now`.
    pub(crate) fn take_reached(&mut self, now: Timestamp) -> Vec<Key> {
        std::iter::from_fn(|| self.take_first_reached(now)).collect()
    }

    /// Takes the first of these Workloads.
    pub(crate) fn take_first_reached(&mut self, now: Timestamp) -> Option<Key> {
        self.next().filter(|at| *at <= now)?;
        let (_, key) = self.in_order.pop_first()?;
        self.of.remove(&key);
        Some(key)
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
        assert_eq!(deadlines.take_first_reached(at(19)), Some(key("d")));
        assert_eq!(deadlines.take_first_reached(at(19)), Some(key("e")));
        assert_eq!(deadlines.take_first_reached(at(19)), None);
        assert_eq!(deadlines.take_reached(at(40)), [key("b"), key("a")]);
        assert_eq!((deadlines.next(), deadlines.take_reached(at(99))), (None, vec![]));
    }
}
