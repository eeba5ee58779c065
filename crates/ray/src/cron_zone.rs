//! The time zone of a schedule.
//!
//! Zones are those of the program, which has to enable a database of jiff: its image has no files of the system.

use jiff::tz::TimeZone;

/// Why a name is none of a zone.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronZoneError {
    /// It might lead out of the directory of zones.
    #[error("time: invalid location name")]
    Location,
    /// There is no such zone.
    #[error("unknown time zone {0}")]
    Unknown(String),
}

/// The zone of this name, or UTC without a name: the zone of a pod is that of its image.
///
/// # Errors
/// If there is no such zone.
pub fn zone_of(name: Option<&str>) -> Result<TimeZone, CronZoneError> {
    let name = match name {
        None | Some("" | "Local") => return Ok(TimeZone::UTC),
        Some(name) => name,
    };
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err(CronZoneError::Location);
    }
    // In Go names are those of files, which differ in upper and lower case. A zone for unknown places is none of them.
    let is_its = |zone: &TimeZone| zone.iana_name() == Some(name) && !zone.is_unknown();
    let zone = TimeZone::get(name).ok().filter(is_its);
    zone.ok_or_else(|| CronZoneError::Unknown(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_its_exact_name() {
        for name in ["Asia/Tokyo", "UTC", "Etc/GMT+5", "US/Pacific"] {
            let zone = zone_of(Some(name)).expect(name);
            assert_eq!(zone.iana_name(), Some(name));
        }
        for name in [None, Some("Local")] {
            assert_eq!(zone_of(name), Ok(TimeZone::UTC));
        }
        for name in ["asia/tokyo", "utc", "local", "Europe/Nowhere", "Etc/Unknown", "Asia\\Tokyo"] {
            assert_eq!(zone_of(Some(name)), Err(CronZoneError::Unknown(name.to_owned())));
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_no_location() {
        for name in ["../Tokyo", "Asia/../UTC", "Asia..Tokyo", "/Asia/Tokyo", "\\Tokyo"] {
            let error = zone_of(Some(name)).expect_err(name);
            assert_eq!(error.to_string(), "time: invalid location name");
        }
    }
}
