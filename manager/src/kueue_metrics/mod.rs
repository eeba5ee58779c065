//! Kueue's metrics: their series, fed by what control measures (docs/reference/kueue.md §6.2).
//!
//! Names, types, labels and buckets are Kueue's, so that its dashboards and alert rules work. The series of a queue end with
//! the queue. A process that does not lead has no series.
//!
//! | file | concept |
//! |---|---|
//! | `custom_labels` | labels of objects as labels of series |
//! | `families` | names, types, labels, buckets |
//! | `series` | the values of one process |
//! | `totals` | what sums over queues are made from |
//! | `recording` | what a measurement changes |

mod custom_labels;
mod families;
mod recording;
mod series;
mod totals;

use std::{sync::Arc, time::Duration};

use ::leader::MeasurementSink;
use cluster::control::measurement::Measurement;
use config::{
    Configuration, ConfiguredSelector, CustomLabel,
    gates::{Gate, Gates},
};
use parking_lot::Mutex;
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use self::{
    custom_labels::CustomLabels,
    families::{ALL, Family, INTEGRATIONS, MULTI_KUEUE, WORKERS},
    recording::Recording,
    series::Series,
    totals::Totals,
};

/// Kueue's metrics with their series. Clones share the series.
#[derive(Clone, Debug)]
pub(crate) struct KueueMetrics(Arc<SharedSeries>);

#[derive(Debug)]
struct SharedSeries {
    state: Mutex<MetricsState>,
    settings: MetricsSettings,
}

#[derive(Debug)]
struct MetricsState {
    series: Series,
    totals: Totals,
    custom: CustomLabels,
}

/// Which families are served.
#[derive(Clone, Debug)]
pub(crate) struct MetricsSettings {
    /// `metrics.enableClusterQueueResources`.
    pub(crate) cluster_queue_resources: bool,
    /// The LocalQueues that have series of their own; `None` without the gate LocalQueueMetrics.
    pub(crate) local_queues: Option<ConfiguredSelector>,
    /// Cohorts have series (gate MetricsForCohorts).
    pub(crate) cohorts: bool,
    /// The time from a job to its Workload is measured (gate MetricForWorkloadCreationLatency).
    pub(crate) creation_latency: bool,
    /// Workloads that are not admitted are counted by reason (gate UnadmittedWorkloadsObservability).
    pub(crate) unadmitted: bool,
    /// Equivalence classes of pending Workloads are counted (gate SchedulingEquivalenceHashing).
    pub(crate) equivalence_classes: bool,
    /// Labels of objects that series have.
    pub(crate) custom_labels: Vec<CustomLabel>,
    /// The process competes for a lease.
    pub(crate) elects: bool,
}

impl MetricsSettings {
    pub(crate) fn new(file: &Configuration, gates: &Gates) -> Self {
        let local = &file.metrics.local_queue_metrics;
        let enabled = local.enable && gates.enabled(Gate::LocalQueueMetrics);
        Self {
            cluster_queue_resources: file.metrics.enable_cluster_queue_resources,
            local_queues: enabled.then(|| local.local_queue_selector.clone().unwrap_or_default()),
            cohorts: gates.enabled(Gate::MetricsForCohorts),
            creation_latency: gates.enabled(Gate::MetricForWorkloadCreationLatency),
            unadmitted: gates.enabled(Gate::UnadmittedWorkloadsObservability),
            equivalence_classes: gates.enabled(Gate::SchedulingEquivalenceHashing),
            custom_labels: custom_labels::configured(file, gates),
            elects: file.leader_election.leader_elect,
        }
    }
}

impl KueueMetrics {
    pub(crate) fn new(settings: MetricsSettings) -> Self {
        // Control runs in leaders only.
        let role = if settings.elects { "leader" } else { "standalone" };
        let custom = CustomLabels::new(settings.custom_labels.clone());
        let state = MetricsState { series: Series::new(role), totals: Totals::default(), custom };
        Self(Arc::new(SharedSeries { state: Mutex::new(state), settings }))
    }

    /// MultiKueue's families, which have no prefix.
    pub(crate) fn multi_kueue(&self) -> OtherFamilies {
        OtherFamilies { metrics: self.clone(), families: MULTI_KUEUE }
    }

    /// The families of integrations, for the prefix `sluice`.
    pub(crate) fn integrations(&self) -> OtherFamilies {
        OtherFamilies { metrics: self.clone(), families: INTEGRATIONS }
    }

    /// The families of workers, for the prefix `sluice`.
    pub(crate) fn workers(&self) -> OtherFamilies {
        OtherFamilies { metrics: self.clone(), families: WORKERS }
    }
}

impl MeasurementSink for KueueMetrics {
    fn measure(&self, measurements: Vec<Measurement>, took: Duration) {
        let MetricsState { series, totals, custom } = &mut *self.0.state.lock();
        Recording { series, totals, custom, settings: &self.0.settings }.record(measurements, took);
    }
}

impl Collector for KueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let MetricsState { series, totals, custom } = &mut *self.0.state.lock();
        Recording { series, totals, custom, settings: &self.0.settings }.sum_cohorts();
        series.encode(ALL, custom, &mut encoder)
    }
}

/// Families of the same series that do not have the prefix `kueue`.
#[derive(Debug)]
pub(crate) struct OtherFamilies {
    metrics: KueueMetrics,
    families: &'static [&'static Family],
}

impl Collector for OtherFamilies {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let MetricsState { series, custom, .. } = &*self.metrics.0.state.lock();
        series.encode(self.families, custom, &mut encoder)
    }
}

#[cfg(test)]
mod tests;
