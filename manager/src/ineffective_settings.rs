//! Settings that are used and have no effect, as a metric.

use config::support::IneffectiveSetting;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SettingLabels {
    setting: String,
}

/// Registers `sluice_setting_without_effect`: 1 for each such setting.
pub(crate) fn register(sluice: &mut Registry, ineffective: &[IneffectiveSetting]) {
    let family = Family::<SettingLabels, Gauge>::default();
    for setting in ineffective {
        family.get_or_create_owned(&SettingLabels { setting: setting.name.clone() }).set(1);
    }
    let help =
        "Settings of Kueue that are used and have no effect here; the log of the start says why";
    sluice.register("setting_without_effect", help, family);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_without_effect_has_a_series() {
        let ineffective = |name: &str| IneffectiveSetting { name: name.to_owned(), reason: "none" };
        let mut registry = Registry::default();
        register(&mut registry, &[ineffective("clientConnection"), ineffective("--zap-devel")]);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for name in ["clientConnection", "--zap-devel"] {
            let line = format!("setting_without_effect{{setting=\"{name}\"}} 1");
            assert!(text.contains(&line), "{text}");
        }
    }
}
