//! A drain that the annotations of a MultiKueueCluster ask for (docs/reference/dispatch.md §3).

use std::fmt::Display;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{
    go_duration,
    meta::annotation,
    names::annotations::{DRAIN, DRAIN_DEADLINE, DRAIN_WINDOW},
};

/// A drain with its window. Without bounds it holds as long as the annotation exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerDrain {
    /// The window.
    pub window: DrainWindow,
    /// When running work is withdrawn; never if unset.
    pub deadline: Option<Timestamp>,
}

/// From when until when a drain holds. The end is not part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainWindow {
    /// The beginning; it holds already if unset.
    pub from: Option<Timestamp>,
    /// The end; it does not end if unset.
    pub until: Option<Timestamp>,
}

/// Annotations that are no drain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DrainParseFailure {
    /// `sluice.dev/drain` is neither `true` nor `false`.
    #[error("{DRAIN}: {0:?} is neither \"true\" nor \"false\"")]
    NotBoolean(String),
    /// Another annotation without `sluice.dev/drain`.
    #[error("{0} has no effect without {DRAIN}")]
    Alone(&'static str),
    /// The window is no pair of times.
    #[error(
        "{DRAIN_WINDOW}: {0:?} is no window such as 2026-12-01T22:00:00Z/2026-12-02T04:00:00Z; one of both times may be missing"
    )]
    NoWindow(String),
    /// The window ends before it begins.
    #[error("{DRAIN_WINDOW}: {0:?} does not end after its beginning")]
    EmptyWindow(String),
    /// The deadline is neither a duration nor a time.
    #[error(
        "{DRAIN_DEADLINE}: {0:?} is neither a duration such as 30m nor a time such as 2026-12-01T23:00:00Z"
    )]
    NoDeadline(String),
    /// The deadline is a duration, and nothing says from when.
    #[error("{DRAIN_DEADLINE}: {0:?} counts from the beginning of {DRAIN_WINDOW}, which has none")]
    NoBeginning(String),
    /// The deadline would never be reached.
    #[error("{DRAIN_DEADLINE}: {0:?} is not before the end of {DRAIN_WINDOW}")]
    AfterWindow(String),
}

impl WorkerDrain {
    /// The drain that annotations ask for; `None` if they ask for none.
    ///
    /// # Errors
    /// If one of them has no meaning.
    pub fn read(metadata: &ObjectMeta) -> Result<Option<Self>, DrainParseFailure> {
        let (window, deadline) =
            (annotation(metadata, DRAIN_WINDOW), annotation(metadata, DRAIN_DEADLINE));
        let asked = match annotation(metadata, DRAIN) {
            Some("true") => true,
            Some("false") => false,
            Some(other) => return Err(DrainParseFailure::NotBoolean(other.to_owned())),
            None => match (window, deadline) {
                (None, None) => false,
                (Some(_), _) => return Err(DrainParseFailure::Alone(DRAIN_WINDOW)),
                (None, Some(_)) => return Err(DrainParseFailure::Alone(DRAIN_DEADLINE)),
            },
        };
        let window = window.map(DrainWindow::parse).transpose()?.unwrap_or_default();
        let drain = match deadline {
            Some(text) => window.with_deadline(window.read_deadline(text)?, &text)?,
            None => Self { window, deadline: None },
        };
        Ok(asked.then_some(drain))
    }
}

impl DrainWindow {
    /// Reads `FROM/UNTIL`; one of both times may be missing.
    ///
    /// # Errors
    /// If the text is no window, or an empty one.
    pub fn parse(text: &str) -> Result<Self, DrainParseFailure> {
        let failure = || DrainParseFailure::NoWindow(text.to_owned());
        let time = |part: &str| match part {
            "" => Ok(None),
            part => part.parse().map(Some).map_err(|_| failure()),
        };
        let (from, until) = text.split_once('/').ok_or_else(failure)?;
        let window = Self { from: time(from)?, until: time(until)? };
        match (window.from, window.until) {
            (None, None) => Err(failure()),
            (Some(from), Some(until)) if from >= until => {
                Err(DrainParseFailure::EmptyWindow(text.to_owned()))
            }
            _ => Ok(window),
        }
    }

    /// Reads a deadline: a time, or a duration from the beginning of the window.
    fn read_deadline(&self, text: &str) -> Result<Timestamp, DrainParseFailure> {
        match go_duration::parse(text) {
            Some(duration) => {
                let from =
                    self.from.ok_or_else(|| DrainParseFailure::NoBeginning(text.to_owned()))?;
                Ok(from.checked_add(duration).unwrap_or(Timestamp::MAX))
            }
            None => text.parse().map_err(|_| DrainParseFailure::NoDeadline(text.to_owned())),
        }
    }

    /// A drain in this window. `shown` is the deadline as the error names it.
    ///
    /// # Errors
    /// If the deadline is not before the end of the window.
    pub fn with_deadline(
        self,
        deadline: Timestamp,
        shown: &dyn Display,
    ) -> Result<WorkerDrain, DrainParseFailure> {
        match self.until {
            Some(until) if deadline >= until => {
                Err(DrainParseFailure::AfterWindow(shown.to_string()))
            }
            _ => Ok(WorkerDrain { window: self, deadline: Some(deadline) }),
        }
    }

    /// Whether it is open.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= now) && self.until.is_none_or(|until| now < until)
    }

    /// When [`Self::holds`] changes next.
    #[must_use]
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        self.from.into_iter().chain(self.until).find(|time| *time > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-12-01T{text}:00Z").parse().expect("a time")
    }

    fn read(annotations: &[(&str, &str)]) -> Result<Option<WorkerDrain>, String> {
        let all = annotations.iter().map(|(name, value)| {
            (format!("sluice.dev/{name}"), value.replace("HH", "2026-12-01T"))
        });
        let metadata = ObjectMeta { annotations: Some(all.collect()), ..ObjectMeta::default() };
        WorkerDrain::read(&metadata).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_drain_has_a_window_and_a_deadline() {
        let drain = |from: Option<&str>, until: Option<&str>, deadline: Option<&str>| {
            let window = DrainWindow { from: from.map(at), until: until.map(at) };
            Ok(Some(WorkerDrain { window, deadline: deadline.map(at) }))
        };
        let on = ("drain", "true");
        let both = ("drain-window", "HH20:00:00Z/HH22:00:00Z");
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("drain", "false"), both]), Ok(None));
        assert_eq!(read(&[on]), drain(None, None, None));
        assert_eq!(read(&[on, both]), drain(Some("20:00"), Some("22:00"), None));
        let deadline = |text| read(&[on, both, ("drain-deadline", text)]);
        let wanted = drain(Some("20:00"), Some("22:00"), Some("21:30"));
        assert_eq!(deadline("1h30m"), wanted);
        assert_eq!(deadline("HH21:30:00Z"), wanted);
        assert_eq!(deadline("HH22:30:00+01:00"), wanted);
        let open = |window| read(&[on, ("drain-window", window)]);
        assert_eq!(open("/HH22:00:00Z"), drain(None, Some("22:00"), None));
        assert_eq!(open("HH20:00:00Z/"), drain(Some("20:00"), None, None));
    }

    #[test]
    fn a_drain_without_a_meaning_is_named() {
        let on = ("drain", "true");
        let window = |text| ("drain-window", text);
        let deadline = |text| ("drain-deadline", text);
        let whole = window("HH20:00:00Z/HH22:00:00Z");
        for (annotations, error) in [
            (vec![("drain", "yes")], "sluice.dev/drain: \"yes\" is neither"),
            (vec![("drain", "")], "sluice.dev/drain: \"\" is neither"),
            (vec![whole], "sluice.dev/drain-window has no effect without sluice.dev/drain"),
            (vec![deadline("1h")], "sluice.dev/drain-deadline has no effect"),
            (vec![on, window("")], "is no window"),
            (vec![on, window("/")], "is no window"),
            (vec![on, window("HH20:00:00Z")], "is no window"),
            (vec![on, window("20:00/22:00")], "is no window"),
            (vec![on, window("HH20:00:00Z/HH22:00:00Z/")], "is no window"),
            (vec![on, window("HH20:00:00Z/HH20:00:00Z")], "does not end after its beginning"),
            (vec![on, deadline("soon")], "is neither a duration"),
            (vec![on, deadline("-1h")], "is neither a duration"),
            (vec![on, deadline("1h")], "counts from the beginning of sluice.dev/drain-window"),
            (vec![on, whole, deadline("2h")], "is not before the end"),
            (vec![("drain", "false"), window("x")], "is no window"),
        ] {
            let failure = read(&annotations).expect_err(error);
            assert!(failure.contains(error), "{failure}");
        }
    }

    #[test]
    fn a_window_holds_from_its_beginning_until_its_end() {
        let window = DrainWindow { from: Some(at("20:00")), until: Some(at("22:00")) };
        for (now, holds, next) in [
            ("19:59", false, Some("20:00")),
            ("20:00", true, Some("22:00")),
            ("21:59", true, Some("22:00")),
            ("22:00", false, None),
        ] {
            assert_eq!(window.holds(at(now)), holds, "{now}");
            assert_eq!(window.next_change(at(now)), next.map(at), "{now}");
        }
        assert!(DrainWindow::default().holds(at("00:00")));
    }
}
