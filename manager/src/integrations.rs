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

/// Registers `sluice_integration_built`: 1 for each enabled integration, 0 if this version does not have it.
pub(crate) fn register(sluice: &mut Registry, kinds: &JobKinds) {
    let built = Family::<IntegrationLabels, Gauge>::default();
    let set = |framework: &str, value| {
        built
            .get_or_create_owned(&IntegrationLabels { framework: framework.to_owned() })
            .set(value);
    };
    kinds.handled.iter().for_each(|kind| set(kind.framework(), 1));
    kinds.not_built.iter().for_each(|framework| set(framework, 0));
    let help = "Enabled integrations; 0 if this version does not have it, so that its jobs run without quota";
    sluice.register("integration_built", help, built);
}

#[cfg(test)]
mod tests {
    use config::Configuration;
    use jobs::Kinds;

    use super::*;

    #[test]
    fn enabled_integrations_are_counted_built_or_not() {
        let mut file = Configuration::default();
        file.integrations.frameworks = vec!["batch/job".to_owned()];
        let kinds = JobKinds::configured(&file, &Kinds::default());
        let mut registry = Registry::default();
        register(&mut registry, &JobKinds { not_built: vec!["missing"], ..kinds });
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains("integration_built{framework=\"batch/job\"} 1"), "{text}");
        assert!(text.contains("integration_built{framework=\"missing\"} 0"), "{text}");
    }
}
