use super::*;

#[test]
fn defaults_follow_the_stage() {
    let gates = Gates::default();
    for entry in TABLE {
        let beta_off =
            [Gate::UnadmittedWorkloadsExplicitStatus, Gate::TASNodeFeasibilityForAllLevels]
                .contains(&entry.gate);
        let on = matches!(entry.stage, GateStage::Beta | GateStage::Ga) && !beta_off;
        assert_eq!(gates.enabled(entry.gate), on, "{}", entry.gate.name());
    }
    assert_eq!(Gates::parse("").expect("no gates"), gates);
}

#[test]
fn the_dependencies_of_every_default_are_enabled() {
    for entry in TABLE.iter().filter(|entry| entry.default) {
        for need in entry.needs {
            assert!(Gates::default().enabled(*need), "{} needs {}", entry.gate.name(), need.name());
        }
    }
}

#[test]
fn the_flag_changes_gates() {
    let cases: &[(&str, Gate, bool)] = &[
        ("PartialAdmission=false", Gate::PartialAdmission, false),
        ("PriorityBoost=true", Gate::PriorityBoost, true),
        ("AllAlpha=true", Gate::PriorityBoost, true),
        ("AllAlpha=true,PriorityBoost=false", Gate::PriorityBoost, false),
        ("PriorityBoost=false, AllAlpha=true", Gate::PriorityBoost, false),
        ("AllBeta=false", Gate::MultiKueue, false),
        ("AllBeta=false,MultiKueue=true", Gate::MultiKueue, true),
        ("AllBeta=true", Gate::UnadmittedWorkloadsExplicitStatus, true),
        ("AllBeta=true", Gate::TASNodeFeasibilityForAllLevels, true),
        // A file of v0.20, which does not have this gate, has to start.
        ("AllBeta=true", Gate::ReservedResourceNameValidation, false),
        ("TopologyAwareScheduling=false", Gate::TASReplaceNodeOnNodeTaints, false),
        ("TASFailedNodeReplacement=false", Gate::TASFailedNodeReplacementFailFast, false),
        // What depends on nothing stays on, and may be set by name.
        ("TASFailedNodeReplacement=false", Gate::TASReplaceNodeOnNodeTaints, true),
        (
            "TASFailedNodeReplacement=false,TASReplaceNodeOnNodeTaints=true",
            Gate::TASReplaceNodeOnNodeTaints,
            true,
        ),
        (
            "TopologyAwareScheduling=false,TASAssignmentsEncodingByHostnamePrefix=true",
            Gate::TASAssignmentsEncodingByHostnamePrefix,
            true,
        ),
        (
            "TopologyAwareScheduling=false,TASCacheNodeMatchResults=true,TASCachingRemainingResources=true,TASCacheTopologyTree=true",
            Gate::TASCacheTopologyTree,
            true,
        ),
        ("TopologyAwareScheduling=false", Gate::TASValidateWorkloadSliceSize, true),
        (
            "SchedulingEquivalenceHashing=false",
            Gate::SchedulingEquivalenceHashingIgnorePodSetName,
            false,
        ),
        ("FlavorFungibility=false", Gate::FlavorFungibilityPreserveScanProgress, false),
        ("KueueDRAIntegration=false", Gate::KueueDRAIntegrationExtendedResource, false),
    ];
    for (flag, gate, on) in cases {
        let gates = Gates::parse(flag).expect(flag);
        assert_eq!(gates.enabled(*gate), *on, "{flag}");
    }
}

#[test]
fn bad_flags_are_refused() {
    let cases = [
        ("Nonsense=true", "unknown feature gate \"Nonsense\""),
        ("MultiKueue", "feature gate \"MultiKueue\" is not of the form Name=true or Name=false"),
        (
            "MultiKueue=maybe",
            "feature gate \"MultiKueue=maybe\" is not of the form Name=true or Name=false",
        ),
        (
            "ManagedJobsNamespaceSelectorAlwaysRespected=false",
            "feature gate ManagedJobsNamespaceSelectorAlwaysRespected is locked to true",
        ),
        (
            "TopologyAwareScheduling=false,TASBalancedPlacement=true",
            "TASBalancedPlacement requires TopologyAwareScheduling to be enabled",
        ),
        (
            "ElasticJobsViaWorkloadSlices=false,ElasticJobsViaWorkloadSlicesWithTAS=true",
            "ElasticJobsViaWorkloadSlicesWithTAS requires ElasticJobsViaWorkloadSlices to be enabled",
        ),
        (
            "UnadmittedWorkloadsObservability=false,UnadmittedWorkloadsExplicitStatus=true",
            "UnadmittedWorkloadsExplicitStatus requires UnadmittedWorkloadsObservability to be enabled",
        ),
        (
            "TopologyAwareScheduling=false,TASProfileMixed=true,ElasticJobsViaWorkloadSlicesWithTAS=true,ElasticJobsViaWorkloadSlices=false",
            "cannot use a TAS profile with TAS disabled; ElasticJobsViaWorkloadSlicesWithTAS requires ElasticJobsViaWorkloadSlices to be enabled; ElasticJobsViaWorkloadSlicesWithTAS requires TopologyAwareScheduling to be enabled",
        ),
    ];
    for (flag, text) in cases {
        assert_eq!(Gates::parse(flag).expect_err(flag).to_string(), text);
    }
}

#[test]
fn flag_and_file_exclude_each_other_and_errors_of_the_file_have_a_line() {
    let file = [GateSetting { name: "Nope".to_owned(), on: true, line: Some(7) }];
    assert_eq!(Gates::from_sources("MultiKueue=true", &file), Err(GateError::Both));
    let error = Gates::from_sources("", &file).expect_err("unknown");
    assert_eq!(error.to_string(), "line 7: featureGates: unknown feature gate \"Nope\"");
}

/// Gates of later versions of Kueue do not stop the start, and those without effect are named when they are set.
#[test]
fn gates_of_later_versions_are_known() {
    let idle = |flag: &str| -> Vec<String> {
        let gates = Gates::parse(flag).expect(flag);
        gates.without_effect().into_iter().map(|one| one.name).collect()
    };
    for (name, idle_value) in [
        ("FairSharingReevaluatePreemptionCandidates", Some(true)),
        ("DynamicQuotaOrchestration", Some(true)),
        ("ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp", Some(true)),
        ("MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster", Some(false)),
        ("SchedulingEquivalenceHashingIgnorePodSetName", Some(true)),
        ("ReservedResourceNameValidation", None),
    ] {
        for on in [true, false] {
            let expected = (idle_value == Some(on)).then(|| format!("featureGates.{name}"));
            assert_eq!(idle(&format!("{name}={on}")), Vec::from_iter(expected), "{name}={on}");
        }
    }
}

/// A file of another version of Kueue starts; a gate that it sets to what does not happen here is named.
#[test]
fn gates_that_only_other_versions_have_change_nothing() {
    for (name, acts_as) in [
        ("TASReplaceMultipleFailedNodes", false),
        ("AdmissionFairSharingAnchorAtQuotaReservation", false),
        ("PodIntegrationCountSucceededPodsAsReady", true),
        ("LendingLimit", true),
        ("ObjectRetentionPolicies", true),
        ("DynamicResourceAllocation", false),
        ("SchedulerLongRequeueInterval", false),
        ("PreemptionProtection", false),
        ("DeploymentParentSuspension", false),
        ("ClusterQueueExcludeResources", false),
        ("DefaultLocalQueueCreation", false),
        ("FailureAwareScheduling", false),
        ("JobFrameworkCRDReinstallation", true),
        ("MultiKueueRemoteObjectRetention", false),
        ("NodeAvoidanceScheduling", false),
        ("ReclaimBackoff", false),
        ("TASGroupedPodSetSlicing", false),
        ("TASSkipRecentlyFailedFlavors", false),
        ("WallTimeLimits", false),
    ] {
        for on in [true, false] {
            let flag = format!("{name}={on}");
            let gates = Gates::parse(&flag).unwrap_or_else(|error| panic!("{flag}: {error}"));
            let idle: Vec<String> =
                gates.without_effect().into_iter().map(|one| one.name).collect();
            let expected = (on != acts_as).then(|| format!("featureGates.{name}"));
            assert_eq!(idle, Vec::from_iter(expected), "{flag}");
            let others = Gates { foreign: BTreeMap::new(), ..gates };
            assert_eq!(others, Gates::default(), "{flag}");
        }
    }
    let last = Gates::parse("LendingLimit=false,LendingLimit=true").expect("gates");
    assert_eq!(last.without_effect(), []);
}
