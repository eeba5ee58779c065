//! The incarnation of a hub: which copies belong to the history that this hub knows.
//!
//! A hub that was restored from a backup lacks what happened after the backup. Its epochs and its list of Workloads are older
//! than the copies on the workers, so neither may decide that a copy is removed. Every copy therefore carries the
//! incarnation and the term of the leader that created it, and the uid and resourceVersion of the Workload that it was
//! created from. Source: docs/reference/dispatch.md §6, §9.

/// What a copy carries beside origin and epoch. A copy of an earlier version of Sluice carries the epoch only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyStamp {
    /// The epoch; 1 without an annotation.
    pub epoch: u64,
    /// The incarnation of the hub.
    pub incarnation: Option<u64>,
    /// The term of the hub's leader.
    pub term: Option<u64>,
    /// The resourceVersion of the hub's Workload.
    pub hub_version: Option<u64>,
    /// The uid of the hub's Workload.
    pub workload_uid: Option<Box<str>>,
}

/// The hub's Workload of the name of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresentWorkload<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its resourceVersion.
    pub version: u64,
}

/// An earlier incarnation of which copies are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedIncarnation {
    /// The incarnation.
    pub id: u64,
    /// What it shares with the present one; `None` if a person has accepted all of it.
    pub shared: Option<SharedHistory>,
}

/// The part of an earlier incarnation that the hub still knows after it went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedHistory {
    /// Copies of versions up to this one are known.
    pub version: u64,
    /// Copies of this term are known: its leader found out.
    pub term: u64,
}

/// The incarnation of the hub, as its leader has recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubIncarnation {
    /// Grows with each restore.
    pub id: u64,
    /// Grows with each leader.
    pub term: u64,
    /// The resourceVersion at which this leader began.
    pub began_at: u64,
    /// Earlier incarnations.
    pub accepted: Vec<AcceptedIncarnation>,
}

/// Whether the hub knows the history that a copy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyHistory {
    /// The copy belongs to the Workload that the hub has.
    #[default]
    Known,
    /// It belongs to an earlier Workload of the name, whose deletion was observed.
    Departed,
    /// It comes from another incarnation, from a later version of the Workload than the hub has, or belongs to a Workload of another
    /// uid: only a user decides about it.
    Unknown,
}

impl HubIncarnation {
    /// Whether a copy comes from a history that this hub knows.
    #[must_use]
    pub fn knows(&self, stamp: &CopyStamp) -> bool {
        let Some(id) = stamp.incarnation else {
            return true;
        };
        if id == self.id {
            return !self.is_behind(stamp);
        }
        let mut accepted = self.accepted.iter().filter(|one| one.id == id);
        accepted.any(|one| {
            one.shared.is_none_or(|shared| {
                stamp.hub_version <= Some(shared.version) || stamp.term == Some(shared.term)
            })
        })
    }

    /// Whether a copy proves that the hub went back: another leader of this incarnation created it from a version that is newer than the
    /// start of the present leader. Leaders follow one another, so that version is lost.
    #[must_use]
    pub fn is_behind(&self, stamp: &CopyStamp) -> bool {
        stamp.incarnation == Some(self.id)
            && stamp.term != Some(self.term)
            && stamp.hub_version > Some(self.began_at)
    }

    /// Whether a copy was made from a version of the Workload that the hub does not have: another leader has seen it. Revisions of a
    /// hub that were raised at its restore hide this from [`Self::is_behind`], but the Workload keeps the version that it had.
    fn is_ahead(&self, stamp: &CopyStamp, version: u64) -> bool {
        stamp.term != Some(self.term) && stamp.hub_version > Some(version)
    }

    /// Whether a copy of a known history was made from a version of the Workload that this hub may still observe: the list of a process
    /// that begins to lead may be older than what the former leader has seen.
    #[must_use]
    pub fn may_be_observed_late(&self, stamp: &CopyStamp, present: PresentWorkload<'_>) -> bool {
        let is_of_present = stamp.workload_uid.as_deref() == Some(present.uid);
        self.knows(stamp) && is_of_present && self.is_ahead(stamp, present.version)
    }

    /// The history of a copy of a Workload. `present` is the hub's Workload, `departed` the uid of the last one of the name.
    #[must_use]
    pub fn history(
        &self,
        stamp: &CopyStamp,
        present: Option<PresentWorkload<'_>>,
        departed: Option<&str>,
    ) -> CopyHistory {
        if !self.knows(stamp) {
            return CopyHistory::Unknown;
        }
        let of = stamp.workload_uid.as_deref();
        match (of, present) {
            (Some(of), Some(one)) if of == one.uid && self.is_ahead(stamp, one.version) => {
                CopyHistory::Unknown
            }
            (Some(of), Some(one)) if of == one.uid => CopyHistory::Known,
            (Some(of), _) if departed == Some(of) => CopyHistory::Departed,
            (Some(_), Some(_)) => CopyHistory::Unknown,
            // Absence of the Workload is the intent to delete its copies.
            (None, _) | (_, None) => CopyHistory::Known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> HubIncarnation {
        let accepted = vec![
            AcceptedIncarnation { id: 1, shared: None },
            AcceptedIncarnation { id: 2, shared: Some(SharedHistory { version: 50, term: 6 }) },
        ];
        HubIncarnation { id: 3, term: 7, began_at: 100, accepted }
    }

    fn stamp(incarnation: u64, term: u64, hub_version: u64) -> CopyStamp {
        let (incarnation, term) = (Some(incarnation), Some(term));
        CopyStamp {
            epoch: 1,
            incarnation,
            term,
            hub_version: Some(hub_version),
            ..CopyStamp::default()
        }
    }

    #[test]
    fn a_copy_of_another_incarnation_is_unknown_unless_a_person_or_the_shared_history_accepts_it() {
        for (incarnation, term, hub_version, known) in [
            (3, 1, 1, true),
            (1, 1, 999, true),
            (2, 5, 50, true),
            (2, 5, 51, false),
            (2, 6, 51, true),
            (4, 1, 1, false),
        ] {
            let stamp = stamp(incarnation, term, hub_version);
            assert_eq!(hub().knows(&stamp), known, "{stamp:?}");
        }
        assert!(hub().knows(&CopyStamp::default()), "of a version without incarnations");
    }

    #[test]
    fn a_version_above_the_start_of_the_leader_is_lost_unless_the_leader_wrote_it() {
        for (term, hub_version, behind) in
            [(6, 100, false), (6, 101, true), (7, 101, false), (8, 101, true)]
        {
            let stamp = stamp(3, term, hub_version);
            assert_eq!(
                (hub().is_behind(&stamp), hub().knows(&stamp)),
                (behind, !behind),
                "{stamp:?}"
            );
        }
        assert!(!hub().is_behind(&stamp(2, 6, 101)), "of another incarnation");
    }

    #[test]
    fn a_copy_of_a_later_version_than_the_hub_has_is_unknown_unless_this_leader_made_it() {
        use CopyHistory::{Known, Unknown};
        let of = |stamp| CopyStamp { workload_uid: Some("a".into()), ..stamp };
        for (stamp, version, history) in [
            (of(stamp(3, 6, 50)), 50, Known),
            (of(stamp(3, 6, 50)), 49, Unknown),
            (of(stamp(3, 7, 50)), 49, Known),
            (of(CopyStamp::default()), 49, Known),
        ] {
            let present = Some(PresentWorkload { uid: "a", version });
            assert_eq!(hub().history(&stamp, present, None), history, "{stamp:?} {version}");
        }
        let late =
            |stamp| hub().may_be_observed_late(&stamp, PresentWorkload { uid: "a", version: 49 });
        assert!(late(of(stamp(3, 6, 50))));
        assert!(!late(of(stamp(3, 6, 49))), "it was observed");
        assert!(!late(stamp(3, 6, 50)), "of another uid");
        assert!(!late(of(stamp(3, 6, 101))), "the hub went back");
    }

    #[test]
    fn a_copy_of_another_uid_is_unknown_unless_the_end_of_its_workload_was_observed() {
        use CopyHistory::{Departed, Known, Unknown};
        let of = |uid: &str| CopyStamp { workload_uid: Some(uid.into()), ..stamp(3, 7, 1) };
        for (stamp, uid, departed, history) in [
            (of("a"), Some("a"), None, Known),
            (of("a"), Some("b"), Some("a"), Departed),
            (of("a"), Some("b"), None, Unknown),
            (of("a"), Some("b"), Some("c"), Unknown),
            (of("a"), None, None, Known),
            (stamp(3, 7, 1), Some("b"), None, Known),
            (stamp(4, 7, 1), None, None, Unknown),
        ] {
            let present = uid.map(|uid| PresentWorkload { uid, version: 1 });
            assert_eq!(
                hub().history(&stamp, present, departed),
                history,
                "{stamp:?} {uid:?} {departed:?}"
            );
        }
    }
}
