//! How many AppWrappers have entered each phase, as the official controller counts them.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    namespace: String,
    phase: String,
}

/// Counters of phases.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseMetrics {
    entered: Family<PhaseLabels, Counter>,
}

impl PhaseMetrics {
    /// Under upstream's name, without a prefix.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "How many AppWrappers have entered a phase";
        registry.register("appwrapper_phase", help, self.entered.clone());
    }

    /// Counts a status that was stored, if it has another phase than before.
    pub(super) fn note(&self, namespace: &str, before: &Value, after: &Value) {
        let Some(phase) = after["phase"].as_str().filter(|_| before["phase"] != after["phase"])
        else {
            return;
        };
        let labels = PhaseLabels { namespace: namespace.to_owned(), phase: phase.to_owned() };
        self.entered.get_or_create(&labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_phase_counts_when_it_is_entered() {
        let phases = PhaseMetrics::default();
        let (running, reset) = (json!({"phase": "Running"}), json!({"phase": "Resetting"}));
        for (before, after) in
            [(&Value::Null, &running), (&running, &running), (&running, &reset), (&reset, &running)]
        {
            phases.note("ns", before, after);
        }
        let mut registry = Registry::default();
        phases.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("it encodes");
        for line in [
            r#"appwrapper_phase_total{namespace="ns",phase="Running"} 2"#,
            r#"appwrapper_phase_total{namespace="ns",phase="Resetting"} 1"#,
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
