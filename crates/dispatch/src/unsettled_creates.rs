//! Creates on workers whose outcome the watch does not show yet.
//!
//! ```text
//!  sent --> InFlight --stored--> Stored --the watch shows that version--> (settled)
//!              |                   | deleted by the watch, or not shown for a while
//!              | no answer, or the object exists                v
//!              +------------------------------------------> Doubtful --read--> Reading --> (settled)
//!              | refused                                        ^------ no answer ---+
//!              +--> (settled)
//! ```
//! A create without an answer may be applied at any time, so that time settles nothing: a consistent read does. The watch lags
//! behind. It may report the deletion of an earlier object of the name after the create was answered; such a report is
//! ignored, and a read decides. Source: docs/reference/dispatch.md §6.

use std::collections::BTreeMap;

use engine::Time;

/// How long the watch may take to show a stored object before it is read, in nanoseconds.
const READ_AFTER: i64 = 15_000_000_000;

/// The answer to a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateAnswer {
    /// The object was stored with this resourceVersion.
    Stored(u64),
    /// The API server refused it.
    Refused,
    /// An object of the name exists, of this create or an earlier one, or there was no answer.
    Unknown,
}

/// The answer to a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAnswer {
    /// The object exists with this resourceVersion.
    Present(u64),
    /// It does not exist.
    Absent,
    /// There was no answer.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreateState {
    InFlight,
    Stored { version: u64, read_at: Time },
    Doubtful,
    Reading,
}

#[derive(Debug)]
struct UnsettledCreate<W> {
    state: CreateState,
    /// The newest version that the watch has shown of the name.
    observed: u64,
    waiter: W,
}

/// Creates with an outcome that the watch does not show yet. `K` names an object on a worker; `W` is what waits for it.
#[derive(Debug)]
pub struct UnsettledCreates<K, W> {
    creates: BTreeMap<K, UnsettledCreate<W>>,
    /// Nothing is due before this time.
    due_at: Time,
}

impl<K, W> Default for UnsettledCreates<K, W> {
    fn default() -> Self {
        Self { creates: BTreeMap::new(), due_at: Time(i64::MAX) }
    }
}

impl<K: Ord + Clone, W: Clone> UnsettledCreates<K, W> {
    /// Records that a create was sent.
    pub fn sent(&mut self, object: K, waiter: W) {
        let state = CreateState::InFlight;
        self.creates.insert(object, UnsettledCreate { state, observed: 0, waiter });
    }

    /// A create of a former leader may have been applied: the object is to be read. `observed` is the version that the watch has
    /// shown, 0 without the object: it is not shown again.
    pub fn doubt(&mut self, object: K, observed: u64, waiter: W) {
        let doubtful = UnsettledCreate { state: CreateState::Doubtful, observed, waiter };
        self.creates.entry(object).or_insert(doubtful);
        self.due_at = Time(i64::MIN);
    }

    /// Records the answer to a create.
    pub fn answered(&mut self, object: &K, answer: CreateAnswer, now: Time) {
        let Some(create) = self.creates.get_mut(object) else {
            return;
        };
        if create.state != CreateState::InFlight {
            return;
        }
        match answer {
            CreateAnswer::Stored(version) if version > create.observed => {
                let read_at = Time(now.0.saturating_add(READ_AFTER));
                create.state = CreateState::Stored { version, read_at };
                self.due_at = self.due_at.min(read_at);
            }
            CreateAnswer::Stored(_) | CreateAnswer::Refused => {
                self.creates.remove(object);
            }
            CreateAnswer::Unknown => {
                create.state = CreateState::Doubtful;
                self.due_at = Time(i64::MIN);
            }
        }
    }

    /// Records that a consistent read was sent.
    pub fn reading(&mut self, object: &K) {
        if let Some(create) = self.creates.get_mut(object) {
            create.state = CreateState::Reading;
        }
    }

    /// Records the answer to a read.
    pub fn read(&mut self, object: &K, answer: ReadAnswer, now: Time) {
        let Some(create) = self.creates.get_mut(object) else {
            return;
        };
        if create.state != CreateState::Reading {
            return;
        }
        match answer {
            ReadAnswer::Present(version) if version > create.observed => {
                let read_at = Time(now.0.saturating_add(READ_AFTER));
                create.state = CreateState::Stored { version, read_at };
                self.due_at = self.due_at.min(read_at);
            }
            // The watch does not repeat what it has shown.
            ReadAnswer::Present(_) | ReadAnswer::Absent => {
                self.creates.remove(object);
            }
            ReadAnswer::Unknown => {
                create.state = CreateState::Doubtful;
                self.due_at = Time(i64::MIN);
            }
        }
    }

    /// The watch shows an object with this version.
    pub fn observe(&mut self, object: &K, version: u64) {
        let Some(create) = self.creates.get_mut(object) else {
            return;
        };
        create.observed = version.max(create.observed);
        if matches!(create.state, CreateState::Stored { version: stored, .. } if version >= stored)
        {
            self.creates.remove(object);
        }
    }

    /// The watch, or a list that may be older than the create, lacks an object. Returns whether it is gone; otherwise it
    /// is to be read.
    pub fn observe_absence(&mut self, object: &K) -> bool {
        let Some(create) = self.creates.get_mut(object) else {
            return true;
        };
        create.observed = 0;
        match create.state {
            CreateState::Stored { .. } => {
                create.state = CreateState::Doubtful;
                self.due_at = Time(i64::MIN);
                false
            }
            CreateState::InFlight | CreateState::Doubtful | CreateState::Reading => true,
        }
    }

    /// Whether every create of an object is part of what the watch and the answers show.
    pub fn is_settled(&self, object: &K) -> bool {
        !self.creates.contains_key(object)
    }

    /// Objects with creates that are not settled, and what waits for them.
    pub fn waiting(&self) -> impl Iterator<Item = (&K, &W)> {
        self.creates.iter().map(|(object, create)| (object, &create.waiter))
    }

    /// Objects with creates that are not settled, from this one on.
    pub fn objects_from(&self, first: K) -> impl Iterator<Item = &K> {
        self.creates.range(first..).map(|(object, _)| object)
    }

    /// Objects whose creates are not settled.
    pub fn objects(&self) -> impl Iterator<Item = &K> {
        self.creates.keys()
    }

    /// Forgets the creates of other objects.
    pub fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.creates.retain(|object, _| keep(object));
    }

    /// The clock that times come from was set by so many nanoseconds.
    pub fn clock_jumped(&mut self, by: i64) {
        let Self { creates, due_at } = self;
        let stored = creates.values_mut().filter_map(|create| match &mut create.state {
            CreateState::Stored { read_at, .. } => Some(read_at),
            CreateState::InFlight | CreateState::Doubtful | CreateState::Reading => None,
        });
        for at in stored.chain([due_at]) {
            *at = Time(at.0.saturating_add(by));
        }
    }

    /// Objects to be read, with what waits for them.
    pub fn take_reads(&mut self, now: Time) -> Vec<(K, W)> {
        if now < self.due_at {
            return Vec::new();
        }
        self.due_at = Time(i64::MAX);
        let mut reads = Vec::new();
        for (object, create) in &self.creates {
            match create.state {
                CreateState::Stored { read_at, .. } if read_at > now => {
                    self.due_at = self.due_at.min(read_at);
                }
                // It stays due until the read is sent.
                CreateState::Stored { .. } | CreateState::Doubtful => {
                    self.due_at = Time(i64::MIN);
                    reads.push((object.clone(), create.waiter.clone()));
                }
                CreateState::InFlight | CreateState::Reading => {}
            }
        }
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> UnsettledCreates<u8, ()> {
        let mut creates = UnsettledCreates::default();
        creates.sent(1, ());
        creates
    }

    fn is_due(creates: &mut UnsettledCreates<u8, ()>, now: i64) -> bool {
        !creates.take_reads(Time(now)).is_empty()
    }

    #[test]
    fn a_create_is_settled_when_the_watch_shows_it_before_or_after_its_answer() {
        let mut creates = sent();
        creates.answered(&1, CreateAnswer::Stored(5), Time(0));
        creates.observe(&1, 4);
        assert!(!creates.is_settled(&1), "an earlier object of the name");
        creates.observe(&1, 6);
        assert!(creates.is_settled(&1));
        let mut creates = sent();
        creates.observe(&1, 5);
        assert!(!creates.is_settled(&1), "it may be an earlier object");
        creates.answered(&1, CreateAnswer::Stored(5), Time(0));
        assert!(creates.is_settled(&1));
    }

    #[test]
    fn a_refusal_settles_a_create_and_time_never_does() {
        let mut creates = sent();
        creates.answered(&1, CreateAnswer::Refused, Time(0));
        assert!(creates.is_settled(&1));
        let mut creates = sent();
        assert!(!is_due(&mut creates, i64::MAX - 1), "the answer comes first");
        creates.answered(&1, CreateAnswer::Unknown, Time(0));
        assert!(!creates.is_settled(&1) && is_due(&mut creates, 0));
        assert!(!creates.is_settled(&1) && is_due(&mut creates, i64::MAX - 1));
    }

    #[test]
    fn a_read_settles_what_had_no_answer() {
        for (answer, settled, due) in [
            (ReadAnswer::Absent, true, false),
            (ReadAnswer::Present(10), false, false),
            (ReadAnswer::Present(9), true, false),
            (ReadAnswer::Unknown, false, true),
        ] {
            let mut creates = sent();
            creates.answered(&1, CreateAnswer::Unknown, Time(0));
            creates.observe(&1, 9);
            assert!(!creates.is_settled(&1), "the watch may show an earlier object");
            creates.reading(&1);
            creates.read(&1, answer, Time(0));
            assert_eq!(
                (creates.is_settled(&1), is_due(&mut creates, 0)),
                (settled, due),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn what_the_watch_has_shown_before_the_read_is_settled_by_the_read() {
        let mut creates = UnsettledCreates::default();
        creates.doubt(1, 5, ());
        creates.reading(&1);
        creates.read(&1, ReadAnswer::Present(5), Time(0));
        assert!(creates.is_settled(&1), "it was listed before");
        creates.doubt(1, 0, ());
        creates.reading(&1);
        creates.observe(&1, 5);
        creates.read(&1, ReadAnswer::Present(5), Time(0));
        assert!(creates.is_settled(&1), "the watch was faster than the answer");
    }

    #[test]
    fn a_late_deletion_of_an_earlier_object_does_not_hide_the_stored_one() {
        let mut creates = sent();
        assert!(creates.observe_absence(&1), "before the answer there is nothing to hide");
        creates.answered(&1, CreateAnswer::Stored(5), Time(0));
        assert!(!creates.observe_absence(&1) && is_due(&mut creates, 0));
        creates.reading(&1);
        creates.read(&1, ReadAnswer::Absent, Time(0));
        assert!(creates.is_settled(&1) && creates.observe_absence(&1));
    }

    #[test]
    fn a_stored_object_that_the_watch_does_not_show_is_read() {
        let mut creates = sent();
        creates.answered(&1, CreateAnswer::Stored(5), Time(0));
        assert!(!is_due(&mut creates, READ_AFTER - 1) && is_due(&mut creates, READ_AFTER));
    }

    #[test]
    fn a_clock_that_is_set_puts_a_read_neither_off_nor_forward() {
        for by in [-READ_AFTER * 9, READ_AFTER * 9] {
            let mut creates = sent();
            creates.answered(&1, CreateAnswer::Stored(5), Time(0));
            creates.clock_jumped(by);
            assert!(!is_due(&mut creates, by + READ_AFTER - 1), "{by}");
            assert!(is_due(&mut creates, by + READ_AFTER), "{by}");
        }
        let mut creates = sent();
        creates.answered(&1, CreateAnswer::Unknown, Time(0));
        creates.clock_jumped(READ_AFTER * 9);
        assert!(is_due(&mut creates, 0), "what is due stays so");
    }

    #[test]
    fn the_answer_to_a_read_says_nothing_about_a_later_create() {
        let mut creates = sent();
        creates.answered(&1, CreateAnswer::Unknown, Time(0));
        creates.reading(&1);
        creates.sent(1, ());
        creates.read(&1, ReadAnswer::Absent, Time(0));
        assert!(!creates.is_settled(&1));
    }
}
