//! Which build this is, as a metric and in the user agent.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

/// The version of the program.
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// What the API server sees in its audit log.
pub(crate) const USER_AGENT: &str = concat!("sluice-manager/", env!("CARGO_PKG_VERSION"));

/// Upstream's labels; no Go built this.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    git_version: &'static str,
    git_commit: &'static str,
    build_date: &'static str,
    go_version: &'static str,
    compiler: &'static str,
    platform: String,
}

/// Registers `kueue_build_info` (docs/reference/kueue.md §6.2).
pub(crate) fn register(kueue: &mut Registry) {
    let info = Family::<Labels, Gauge>::default();
    let labels = Labels {
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
