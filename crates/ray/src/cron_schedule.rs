//! Schedules of cron: five fields, or a descriptor such as `@daily` or `@every 1h`.
//!
//! Source: docs/reference/ray.md §10.

use std::time::Duration;

use crds::{
    go_duration::{self, GoDurationError},
    go_parse,
};
use jiff::{SignedDuration, Timestamp, Zoned, civil::DateTime, tz::TimeZone};

/// The years after which a time that does not come is given up, such as 30 February.
const MOST_YEARS: i16 = 5;

/// When something is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CronSchedule {
    /// At every minute that all fields allow.
    Fields(CronFields),
    /// After each period.
    Every(Duration),
}

/// The allowed values of each field, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CronFields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day must be in both of its fields, as one of them is `*`; otherwise in one of them.
    both_days: bool,
}

/// Why a text is no schedule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronScheduleError {
    /// The text is empty.
    #[error("empty spec string")]
    Empty,
    /// The text has another number of fields.
    #[error("expected exactly 5 fields, found {count}: [{text}]")]
    FieldCount {
        /// How many.
        count: usize,
        /// The fields.
        text: String,
    },
    /// The descriptor is not known.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// The duration of `@every` is none.
    #[error("failed to parse duration {descriptor}: {why}")]
    Duration {
        /// The whole text.
        descriptor: String,
        /// What is wrong.
        #[source]
        why: GoDurationError,
    },
    /// A number is none.
    #[error("failed to parse int from {text}: {why}")]
    Number {
        /// The text.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// A number is below zero.
    #[error("negative number ({0}) not allowed: {1}")]
    Negative(i64, String),
    /// A range has more than two ends.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// A range has more than one step.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// A range begins below the least value.
    #[error("beginning of range ({value}) below minimum ({least}): {text}")]
    BelowLeast {
        /// The value.
        value: u64,
        /// The least one.
        least: u64,
        /// The part of the field.
        text: String,
    },
    /// A range ends above the greatest value.
    #[error("end of range ({value}) above maximum ({most}): {text}")]
    AboveMost {
        /// The value.
        value: u64,
        /// The greatest one.
        most: u64,
        /// The part of the field.
        text: String,
    },
    /// A range ends before it begins.
    #[error("beginning of range ({begin}) beyond end of range ({end}): {text}")]
    Reversed {
        /// Where it begins.
        begin: u64,
        /// Where it ends.
        end: u64,
        /// The part of the field.
        text: String,
    },
    /// A step is zero.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}

/// A field: its least and greatest value, and names of values.
struct FieldRange {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MINUTES: FieldRange = FieldRange { least: 0, most: 59, names: &[] };
const HOURS: FieldRange = FieldRange { least: 0, most: 23, names: &[] };
const DAYS: FieldRange = FieldRange { least: 1, most: 31, names: &[] };
const MONTHS: FieldRange = FieldRange {
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: FieldRange =
    FieldRange { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl CronSchedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// If the text is none.
    pub fn parse(text: &str) -> Result<Self, CronScheduleError> {
        if text.is_empty() {
            return Err(CronScheduleError::Empty);
        }
        if text.starts_with('@') {
            return Self::descriptor(text);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            let (count, text) = (fields.len(), fields.join(" "));
            return Err(CronScheduleError::FieldCount { count, text });
        };
        Ok(Self::Fields(CronFields {
            minutes: bits(minutes, &MINUTES)?,
            hours: bits(hours, &HOURS)?,
            days: bits(days, &DAYS)?,
            months: bits(months, &MONTHS)?,
            weekdays: bits(weekdays, &WEEKDAYS)?,
            both_days: is_star(days) || is_star(weekdays),
        }))
    }

    fn descriptor(text: &str) -> Result<Self, CronScheduleError> {
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ => {
                let Some(period) = text.strip_prefix("@every ") else {
                    return Err(CronScheduleError::Descriptor(text.to_owned()));
                };
                let period = go_duration::parse_signed(period).map_err(|why| {
                    CronScheduleError::Duration { descriptor: text.to_owned(), why }
                })?;
                // A period below a second would never end.
                let seconds = period.as_secs().max(1).unsigned_abs();
                return Ok(Self::Every(Duration::from_secs(seconds)));
            }
        };
        Self::parse(fields)
    }

    /// The first time after `base`; none if there is none in the next years.
    #[must_use]
    pub fn next(&self, base: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Every(period) => {
                // The time is stored in whole seconds.
                let base = Timestamp::from_second(base.as_second()).ok()?;
                base.checked_add(SignedDuration::try_from(*period).ok()?).ok()
            }
            Self::Fields(fields) => fields.next(base, zone),
        }
    }
}

impl CronFields {
    /// Goes forward in time, so that an hour that is left out or comes twice is treated as the clock shows it.
    fn next(&self, base: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = base.as_second().div_euclid(60).checked_add(1)?;
        let mut at = Timestamp::from_second(minute.checked_mul(60)?).ok()?;
        let last_year = at.to_zoned(zone.clone()).year().checked_add(MOST_YEARS)?;
        loop {
            let local = at.to_zoned(zone.clone());
            if local.year() > last_year {
                return None;
            }
            let next = if !has(self.months, local.month()) {
                start_of(local.date().last_of_month().tomorrow().ok()?.at(0, 0, 0, 0), zone)?
            } else if !self.has_day(&local) {
                start_of(local.date().tomorrow().ok()?.at(0, 0, 0, 0), zone)?
            } else if !has(self.hours, local.hour()) {
                let left = 60 - i64::from(local.minute());
                at.checked_add(SignedDuration::from_mins(left)).ok()?
            } else if has(self.minutes, local.minute()) {
                return Some(at);
            } else {
                at.checked_add(SignedDuration::from_mins(1)).ok()?
            };
            // A day may begin after a transition, but time goes on in any case.
            at = next.max(at.checked_add(SignedDuration::from_mins(1)).ok()?);
        }
    }

    fn has_day(&self, local: &Zoned) -> bool {
        let day = has(self.days, local.day());
        let weekday = has(self.weekdays, local.weekday().to_sunday_zero_offset());
        if self.both_days { day && weekday } else { day || weekday }
    }
}

fn start_of(day: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_timestamp(day).ok()
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| bits >> value & 1 == 1)
}

/// The values of a field: parts with commas.
fn bits(field: &str, range: &FieldRange) -> Result<u64, CronScheduleError> {
    field
        .split(',')
        .filter(|part| !part.is_empty())
        .try_fold(0, |bits, part| Ok(bits | part_bits(part, range)?))
}

/// `*`, `a`, `a-b`, each with an optional step.
fn part_bits(part: &str, range: &FieldRange) -> Result<u64, CronScheduleError> {
    let text = || part.to_owned();
    let (span, step) = part.split_once('/').map_or((part, None), |(a, b)| (a, Some(b)));
    let (begin, end) = ends(part, span, step.is_some(), range)?;
    let step = match step {
        None => 1,
        Some(step) if step.contains('/') => return Err(CronScheduleError::Slashes(text())),
        // A step is a count, which has no names as months and weekdays have.
        Some(step) => number(step)?,
    };
    if begin < range.least {
        return Err(CronScheduleError::BelowLeast {
            value: begin,
            least: range.least,
            text: text(),
        });
    }
    if end > range.most {
        return Err(CronScheduleError::AboveMost { value: end, most: range.most, text: text() });
    }
    if begin > end {
        return Err(CronScheduleError::Reversed { begin, end, text: text() });
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    if step == 0 {
        return Err(CronScheduleError::Step(text()));
    }
    Ok((begin..=end).step_by(step).fold(0, |bits, value| bits | 1 << value))
}

/// The first and the last value of a part of a field.
fn ends(
    part: &str,
    span: &str,
    has_step: bool,
    range: &FieldRange,
) -> Result<(u64, u64), CronScheduleError> {
    let (begin, end) = span.split_once('-').map_or((span, None), |(a, b)| (a, Some(b)));
    // What follows `*-` is not read.
    if matches!(begin, "*" | "?") {
        return Ok((range.least, range.most));
    }
    let begin = value(begin, range)?;
    let end = match end {
        Some(end) if end.contains('-') => return Err(CronScheduleError::Hyphens(part.to_owned())),
        Some(end) => value(end, range)?,
        // With a step a single value is the begin of a range.
        None if has_step => range.most,
        None => begin,
    };
    Ok((begin, end))
}

/// A value: a number, or a name of one.
fn value(text: &str, range: &FieldRange) -> Result<u64, CronScheduleError> {
    let lower = text.to_ascii_lowercase();
    match range.names.iter().position(|name| *name == lower) {
        Some(index) => Ok(u64::try_from(index).unwrap_or_default() + range.least),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, CronScheduleError> {
    let number = go_parse::integer(text)
        .map_err(|why| CronScheduleError::Number { text: text.to_owned(), why })?;
    u64::try_from(number).map_err(|_| CronScheduleError::Negative(number, text.to_owned()))
}

/// Whether a field restricts nothing. A field with a step above one does, so that it counts beside the other field of days.
fn is_star(field: &str) -> bool {
    field.split(',').any(|part| {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let low = range.split('-').next().unwrap_or_default();
        matches!(low, "*" | "?") && step.parse::<u32>().is_ok_and(|step| step <= 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, base: &str) -> Option<String> {
        let base = base.parse().expect("a time");
        let schedule = CronSchedule::parse(schedule).expect("a schedule");
        schedule.next(base, &TimeZone::UTC).map(|time| time.to_string())
    }

    #[test]
    fn the_next_time_is_after_the_base() {
        for (schedule, base, expected) in [
            ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
            ("*/15 * * * *", "2026-01-01T00:16:59Z", "2026-01-01T00:30:00Z"),
            ("0 0 1 1 *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("30 6 * * mon-fri", "2026-01-02T07:00:00Z", "2026-01-05T06:30:00Z"),
            ("0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("5/20 3 * * *", "2026-01-01T00:00:00Z", "2026-01-01T03:05:00Z"),
            // A step restricts the field: odd days or Mondays.
            ("0 0 */2 * 1", "2026-01-05T00:00:00Z", "2026-01-07T00:00:00Z"),
            ("0 0 */2 * 1", "2026-01-11T00:00:00Z", "2026-01-12T00:00:00Z"),
            ("0 0 */1 * 1", "2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z"),
            ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
            ("@every 90s", "2026-01-01T00:00:00.5Z", "2026-01-01T00:01:30Z"),
            ("@every -5m", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
            ("*-7 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
        ] {
            assert_eq!(next(schedule, base).as_deref(), Some(expected), "{schedule}");
        }
        assert_eq!(next("0 0 30 2 *", "2026-01-01T00:00:00Z"), None);
    }

    #[test]
    fn a_zone_moves_the_schedule() {
        let schedule = CronSchedule::parse("0 0 * * *").expect("a schedule");
        let zone = TimeZone::fixed(jiff::tz::offset(9));
        let base: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let next = schedule.next(base, &zone).map(|time| time.to_string());
        assert_eq!(next.as_deref(), Some("2026-01-01T15:00:00Z"));
    }

    #[test]
    fn bad_schedules_say_why() {
        for (schedule, expected) in [
            ("", "empty spec string"),
            ("each day", "expected exactly 5 fields, found 2: [each day]"),
            ("99 * * * *", "end of range (99) above maximum (59): 99"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            (
                "a * * * *",
                r#"failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax"#,
            ),
            (
                "-1 * * * *",
                r#"failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#,
            ),
            (
                "1/ * * * *",
                r#"failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#,
            ),
            (
                "99999999999999999999 * * * *",
                r#"failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range"#,
            ),
            ("*/-5 * * * *", "negative number (-5) not allowed: -5"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1-b-3 * * * *", "too many hyphens: 1-b-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("*/2/3 * * * *", "too many slashes: */2/3"),
            (
                "@every soon",
                r#"failed to parse duration @every soon: time: invalid duration "soon""#,
            ),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            let error = CronSchedule::parse(schedule).expect_err(schedule);
            assert_eq!(error.to_string(), expected);
        }
    }
}
