//! The version of the program, as a metric and as user agent.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

/// The version of the program.
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// The user agent, visible in the audit log of the API server.
pub(crate) const USER_AGENT: &str = concat!("sluice-manager/", env!("CARGO_PKG_VERSION"));

/// Kueue's labels. Those about Go have no value here.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildInfoLabels {
    git_version: &'static str,
    git_commit: &'static str,
    build_date: &'static str,
    go_version: &'static str,
    compiler: &'static str,
    platform: String,
}

/// Registers `kueue_build_info` (docs/reference/kueue.md §6.2).
pub(crate) fn register(kueue: &mut Registry) {
    let info = Family::<BuildInfoLabels, Gauge>::default();
    let labels = BuildInfoLabels {
        git_version: VERSION,
        git_commit: option_env!("SLUICE_GIT_COMMIT").unwrap_or_default(),
        build_date: option_env!("SLUICE_BUILD_DATE").unwrap_or_default(),
        go_version: "",
        compiler: "rustc",
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    };
    info.get_or_create(&labels).set(1);
    kueue.register("build_info", "Which build is running; always 1", info);
}
