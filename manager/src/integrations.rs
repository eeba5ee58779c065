//! Integrations that are enabled, as a metric.

use config::JobKinds;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IntegrationLabels {
    framework: String,
}

/// Registers `sluice_integration_enabled`: 1 for each enabled integration, 0 if its feature gate is off.
pub(crate) fn register(sluice: &mut Registry, kinds: &JobKinds) {
    let enabled = Family::<IntegrationLabels, Gauge>::default();
    let set = |framework: &str, value| {
        enabled
            .get_or_create_owned(&IntegrationLabels { framework: framework.to_owned() })
            .set(value);
    };
    kinds.handled.iter().for_each(|kind| set(kind.framework(), 1));
    kinds.gated.iter().for_each(|framework| set(framework, 0));
    let help =
        "Enabled integrations; 0 if its feature gate is off, so that its jobs run without quota";
    sluice.register("integration_enabled", help, enabled);
}

#[cfg(test)]
mod tests {
    use config::{Configuration, gates::Gates};
    use jobs::Kinds;

    use super::*;

    #[test]
    fn enabled_integrations_are_counted_with_their_gates() {
        let mut file = Configuration::default();
        file.integrations.frameworks = vec!["batch/job".to_owned()];
        let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
        let mut registry = Registry::default();
        register(&mut registry, &JobKinds { gated: vec!["missing"], ..kinds });
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains("integration_enabled{framework=\"batch/job\"} 1"), "{text}");
        assert!(text.contains("integration_enabled{framework=\"missing\"} 0"), "{text}");
    }
}
