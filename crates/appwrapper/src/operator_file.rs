//! The configuration file of the official operator: that of its ConfigMap `appwrapper-operator-config`, of which the block
//! `appwrapper` counts.
//!
//! Source: docs/reference/appwrapper.md §6. Blocks about the process itself are left out: the agent has flags of its own.

use std::{collections::BTreeMap, time::Duration};

use crds::{go_duration, yaml::decode_yaml};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use crate::{
    names::AUTOPILOT_LABEL,
    settings::{FaultTolerance, WrapperSettings},
};

/// Why a file is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrapperFileError {
    /// It is no YAML, or has unknown fields, or fields of another type.
    #[error("read the configuration of the operator of AppWrapper: {0}")]
    Malformed(String),
    /// A period is longer than another one allows.
    #[error("appwrapper.faultTolerance: {period} exceeds {bound}")]
    TooLong {
        /// The field.
        period: &'static str,
        /// The field that bounds it.
        bound: &'static str,
    },
    /// Components would go at once.
    #[error("appwrapper.faultTolerance: successTTLCeiling is not a positive duration")]
    NoTimeToLive,
    /// The official operator has it.
    #[error("appwrapper.{field} has no effect here: {why}")]
    NotBuilt {
        /// The field.
        field: &'static str,
        /// What happens instead.
        why: &'static str,
    },
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WrapperFile {
    appwrapper: WrapperBlock,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct WrapperBlock {
    default_queue_name: String,
    scheduler_name: String,
    #[serde(rename = "userRBACAdmissionCheck")]
    user_rbac_admission_check: Option<bool>,
    fault_tolerance: FaultToleranceBlock,
    autopilot: AutopilotBlock,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct FaultToleranceBlock {
    admission_grace_period: Period,
    warmup_grace_period: Period,
    failure_grace_period: Period,
    reset_pause: Period,
    retry_limit: Option<i32>,
    deletion_grace_period: Period,
    grace_period_ceiling: Period,
    #[serde(rename = "successTTLCeiling")]
    success_ttl_ceiling: Period,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct AutopilotBlock {
    inject_anti_affinities: Option<bool>,
    monitor_nodes: Option<bool>,
    resource_taints: BTreeMap<String, Vec<AutopilotTaint>>,
    prefer_no_schedule_weight: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AutopilotTaint {
    key: String,
    value: String,
    effect: String,
}

/// Taints by their value and effect, which decisions know.
const TAINTS: [(&str, &str); 3] =
    [("WARN", "PreferNoSchedule"), ("TESTING", "NoSchedule"), ("EVICT", "NoExecute")];

/// A duration: a number of nanoseconds, as in the official file, or a text such as `90s`. Absent: the default.
#[derive(Clone, Copy, Default)]
struct Period(Option<Duration>);

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match &value {
            Value::Number(number) => number.as_u64().map(Duration::from_nanos),
            Value::String(text) => go_duration::parse(text),
            _ => None,
        };
        let malformed = || D::Error::custom(format!("{value} is no duration"));
        read.map(|period| Self(Some(period))).ok_or_else(malformed)
    }
}

impl Period {
    fn set(self, place: &mut Duration) {
        *place = self.0.unwrap_or(*place);
    }
}

impl WrapperSettings {
    /// The defaults with the file.
    ///
    /// # Errors
    /// If a field is unknown, malformed, or would have no effect, or if periods contradict each other.
    pub fn parse(text: &str) -> Result<Self, WrapperFileError> {
        // By way of JSON: a decoder of YAML is large, and each type would have one.
        let fields: Value = decode_yaml(text).map_err(WrapperFileError::Malformed)?;
        let file: WrapperFile = serde_json::from_value(without_nulls(fields))
            .map_err(|error| WrapperFileError::Malformed(error.to_string()))?;
        let block = file.appwrapper;
        let refused = |field, why| Err(WrapperFileError::NotBuilt { field, why });
        if !block.default_queue_name.is_empty() {
            return refused("defaultQueueName", "the manager gives AppWrappers their queue");
        }
        if block.user_rbac_admission_check == Some(false) {
            return refused("userRBACAdmissionCheck", "config/appwrapper-rights is the check");
        }
        let mut settings = Self {
            scheduler_name: Some(block.scheduler_name).filter(|name| !name.is_empty()),
            fault_tolerance: block.fault_tolerance.complete()?,
            ..Self::default()
        };
        block.autopilot.set(&mut settings)?;
        Ok(settings)
    }
}

/// A block or a field without a value has its defaults, as for the official operator; so has an empty file.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(given.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Null => Value::Object(serde_json::Map::new()),
        value => value,
    }
}

impl FaultToleranceBlock {
    /// Refuses what the official operator refuses.
    fn complete(&self) -> Result<FaultTolerance, WrapperFileError> {
        let mut all = FaultTolerance::default();
        self.admission_grace_period.set(&mut all.admission_grace);
        self.warmup_grace_period.set(&mut all.warmup_grace);
        self.failure_grace_period.set(&mut all.failure_grace);
        self.reset_pause.set(&mut all.reset_pause);
        self.deletion_grace_period.set(&mut all.forceful_deletion_grace);
        self.grace_period_ceiling.set(&mut all.grace_ceiling);
        self.success_ttl_ceiling.set(&mut all.success_ttl);
        all.retry_limit = self.retry_limit.unwrap_or(all.retry_limit);
        let (ceiling, bound) = (all.grace_ceiling, "gracePeriodCeiling");
        for (period, most, name, bound) in [
            (all.forceful_deletion_grace, ceiling, "deletionGracePeriod", bound),
            (all.reset_pause, ceiling, "resetPause", bound),
            (all.failure_grace, ceiling, "failureGracePeriod", bound),
            (all.admission_grace, ceiling, "admissionGracePeriod", bound),
            (all.warmup_grace, ceiling, "warmupGracePeriod", bound),
            (all.admission_grace, all.warmup_grace, "admissionGracePeriod", "warmupGracePeriod"),
        ] {
            if period > most {
                return Err(WrapperFileError::TooLong { period: name, bound });
            }
        }
        if all.success_ttl.is_zero() { Err(WrapperFileError::NoTimeToLive) } else { Ok(all) }
    }
}

impl AutopilotBlock {
    /// Resources are added to the default one, as in the official operator.
    fn set(self, settings: &mut WrapperSettings) -> Result<(), WrapperFileError> {
        let known = |taint: &AutopilotTaint| {
            taint.key == AUTOPILOT_LABEL
                && TAINTS.contains(&(taint.value.as_str(), taint.effect.as_str()))
        };
        if !self.resource_taints.values().flatten().all(known) {
            return Err(WrapperFileError::NotBuilt {
                field: "autopilot.resourceTaints",
                why: "the taints are autopilot.ibm.com/gpuhealth: WARN, TESTING and EVICT",
            });
        }
        let resources = &mut settings.autopilot_resources;
        let added = self.resource_taints.into_keys().filter(|name| !resources.contains(name));
        let added: Vec<String> = added.collect();
        resources.extend(added);
        settings.injects_anti_affinities =
            self.inject_anti_affinities.unwrap_or(settings.injects_anti_affinities);
        settings.monitors_nodes = self.monitor_nodes.unwrap_or(settings.monitors_nodes);
        settings.autopilot_weight =
            self.prefer_no_schedule_weight.unwrap_or(settings.autopilot_weight);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &str) -> Result<WrapperSettings, WrapperFileError> {
        WrapperSettings::parse(&format!("appwrapper: {block}\ncontrollerManager: {{}}\n"))
    }

    #[test]
    fn the_file_has_the_settings_of_the_official_operator() {
        let read = read(
            "{schedulerName: mine, userRBACAdmissionCheck: true, faultTolerance: {admissionGracePeriod: 20000000000, \
             warmupGracePeriod: 30s, failureGracePeriod: 3s, resetPause: 4s, retryLimit: 1, deletionGracePeriod: 5m, \
             gracePeriodCeiling: 1h, successTTLCeiling: 9s}, autopilot: {injectAntiAffinities: false, monitorNodes: false, \
             preferNoScheduleWeight: 7, resourceTaints: {example.com/gpu: [{key: autopilot.ibm.com/gpuhealth, value: EVICT, effect: NoExecute}]}}}",
        );
        let settings = read.expect("a file");
        let seconds = |period: Duration| period.as_secs();
        let all = settings.fault_tolerance;
        assert_eq!(
            [
                seconds(all.admission_grace),
                seconds(all.warmup_grace),
                seconds(all.failure_grace),
                seconds(all.reset_pause),
                seconds(all.forceful_deletion_grace),
                seconds(all.grace_ceiling),
                seconds(all.success_ttl),
            ],
            [20, 30, 3, 4, 300, 3_600, 9]
        );
        assert_eq!((all.retry_limit, settings.autopilot_weight), (1, 7));
        assert_eq!(settings.scheduler_name.as_deref(), Some("mine"));
        assert_eq!(settings.autopilot_resources, ["nvidia.com/gpu", "example.com/gpu"]);
        assert!(!settings.injects_anti_affinities && !settings.monitors_nodes);
    }

    #[test]
    fn absent_fields_have_the_defaults() {
        let defaults = format!("{:?}", WrapperSettings::default());
        for text in ["appwrapper: {}\n", "webhooksEnabled: true\n", "appwrapper: {autopilot: {}}\n"]
        {
            let settings = WrapperSettings::parse(text).expect("defaults");
            assert_eq!(format!("{settings:?}"), defaults, "{text}");
        }
    }

    #[test]
    fn what_contradicts_itself_or_has_no_effect_is_refused() {
        for (block, part) in [
            (
                "{faultTolerance: {admissionGracePeriod: 6m}}",
                "admissionGracePeriod exceeds warmupGracePeriod",
            ),
            (
                "{faultTolerance: {gracePeriodCeiling: 2m}}",
                "deletionGracePeriod exceeds gracePeriodCeiling",
            ),
            ("{faultTolerance: {successTTLCeiling: 0}}", "not a positive duration"),
            ("{faultTolerance: {resetPause: -1}}", "-1 is no duration"),
            ("{faultTolerance: {pause: 1s}}", "unknown field `pause`"),
            ("{defaultQueueName: q}", "appwrapper.defaultQueueName has no effect here"),
            (
                "{userRBACAdmissionCheck: false}",
                "appwrapper.userRBACAdmissionCheck has no effect here",
            ),
            (
                "{autopilot: {resourceTaints: {a: [{key: b, value: EVICT, effect: NoExecute}]}}}",
                "resourceTaints",
            ),
        ] {
            let error = read(block).expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
    #[test]
    fn blocks_without_a_value_have_their_defaults() {
        let defaults = WrapperSettings::default();
        for text in [
            "",
            "# nothing\n",
            "appwrapper:\n",
            "appwrapper:\n  faultTolerance:\n  autopilot:\n    resourceTaints:\n  schedulerName: null\n",
        ] {
            let read = WrapperSettings::parse(text).expect("defaults");
            assert_eq!(format!("{read:?}"), format!("{defaults:?}"), "{text:?}");
        }
    }
}
