//! The condition `Active` of a dispatching AdmissionCheck. Source and texts: docs/reference/multikueue.md §1.4.

/// What is known of a cluster that a MultiKueueConfig lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterAvailability {
    /// There is no such MultiKueueCluster.
    Missing,
    /// Its condition `Active` is not true.
    Inactive,
    /// It can be used.
    Active,
}

/// The condition. Its reason is one of `crds::names::reasons`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckStatus {
    /// True or False.
    pub status: bool,
    /// Reason.
    pub reason: &'static str,
    /// Message.
    pub message: String,
}

/// The condition that follows from the clusters, in the order of the configuration.
pub fn check_status<'a>(
    clusters: impl IntoIterator<Item = (&'a str, ClusterAvailability)>,
) -> CheckStatus {
    let (mut missing, mut inactive, mut active) = (Vec::new(), Vec::new(), 0);
    for (name, presence) in clusters {
        match presence {
            ClusterAvailability::Missing => missing.push(name),
            ClusterAvailability::Inactive => inactive.push(name),
            ClusterAvailability::Active => active += 1,
        }
    }
    let parts = [("Missing", &missing), ("Inactive", &inactive)];
    let told = parts.iter().filter(|(_, names)| !names.is_empty());
    let told = told.map(|(what, names)| format!("{what} clusters: [{}]", names.join(" ")));
    let message = told.collect::<Vec<_>>().join(", ");
    match (active, message.is_empty()) {
        (0, _) => CheckStatus { status: false, reason: "NoUsableClusters", message },
        (_, false) => CheckStatus { status: true, reason: "SomeActiveClusters", message },
        (_, true) => {
            let message = "The admission check is active".to_owned();
            CheckStatus { status: true, reason: "Active", message }
        }
    }
}

/// The condition of a check whose parameters cannot be loaded.
pub fn bad_config(error: &str) -> CheckStatus {
    let message = format!("Cannot load the AdmissionChecks parameters: {error}");
    CheckStatus { status: false, reason: "BadConfig", message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_upstreams() {
        use ClusterAvailability::{Active, Inactive, Missing};
        type Case<'a> = (&'a [(&'a str, ClusterAvailability)], bool, &'a str, &'a str);
        let table: [Case<'_>; 4] = [
            (&[("a", Active)], true, "Active", "The admission check is active"),
            (
                &[("a", Active), ("c", Inactive)],
                true,
                "SomeActiveClusters",
                "Inactive clusters: [c]",
            ),
            (
                &[("a", Missing), ("c", Inactive), ("b", Missing)],
                false,
                "NoUsableClusters",
                "Missing clusters: [a b], Inactive clusters: [c]",
            ),
            (&[], false, "NoUsableClusters", ""),
        ];
        for (clusters, status, reason, message) in table {
            let expected = CheckStatus { status, reason, message: message.to_owned() };
            assert_eq!(check_status(clusters.iter().copied()), expected);
        }
        let bad = bad_config("not found");
        assert_eq!(bad.message, "Cannot load the AdmissionChecks parameters: not found");
        assert_eq!((bad.status, bad.reason), (false, "BadConfig"));
    }
}
