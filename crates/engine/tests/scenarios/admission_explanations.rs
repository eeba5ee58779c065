//! Explanations of pending Workloads: what would make them admissible.

use expect_test::expect;

use super::check::check;

#[test]
fn quota_priority_and_the_end_of_a_workload_are_named_if_each_suffices() {
    check(
        "
        cq team-a nvidia.com/gpu/a100=16 within=lower
        wl train-77 q=team-a nvidia.com/gpu=8 prio=499 t=1
        cycle
        wl train-78 q=team-a nvidia.com/gpu=8 prio=900 t=2
        cycle
        wl waits q=team-a nvidia.com/gpu=8 prio=100 t=3
        cycle
        advise waits
        ",
        &expect![[r#"
            1  reserve train-77 team-a nvidia.com/gpu=a100:8
            2  reserve train-78 team-a nvidia.com/gpu=a100:8
            3  inadmissible-class waits team-a NoCandidates
            !  Admissible with +8 nvidia.com/gpu in flavor a100; or with priority ≥ 500, by preemption; or when train-77 ends. Missing: flavor a100: 8 of 8 nvidia.com/gpu (used by team-a 16).
        "#]],
    );
}

#[test]
fn the_end_of_the_smallest_sufficient_workload_is_named() {
    check(
        "
        cq team-a gpu/a100=10
        wl tiny q=team-a gpu=1 t=1
        wl small q=team-a gpu=3 t=2
        wl large q=team-a gpu=6 t=3
        cycle 3
        wl waits q=team-a gpu=3 t=4
        cycle
        advise waits
        evict large
        advise waits
        ",
        &expect![[r#"
            1  reserve tiny team-a gpu=a100:1
            2  reserve small team-a gpu=a100:3
            3  reserve large team-a gpu=a100:6
            4  inadmissible-class waits team-a NoCandidates
            !  Admissible with +3 gpu in flavor a100; or when small ends. Missing: flavor a100: 3 of 3 gpu (used by team-a 10).
            !  Admissible with +3 gpu in flavor a100; or when large ends. Missing: flavor a100: 3 of 3 gpu (used by team-a 10).
        "#]],
    );
}

#[test]
fn a_workload_of_another_namespace_is_not_named() {
    check(
        "
        namespace lab
        cohort all
        cq team-a cohort=all gpu/a100=4
        cq team-b cohort=all gpu/a100=4
        wl secret q=team-b ns=lab gpu=8 t=1
        cycle
        wl waits q=team-a gpu=4 t=2
        cycle
        advise waits
        ",
        &expect![[r#"
            1  reserve secret team-b gpu=a100:8 (borrows, height 1)
            2  inadmissible-class waits team-a NoCandidates
            !  Admissible with +4 gpu in flavor a100; or when a Workload of another ClusterQueue ends. Missing: flavor a100: 4 of 4 gpu (used by others in the cohort 8).
        "#]],
    );
}

#[test]
fn a_workload_of_another_namespace_in_the_own_queue_is_not_named() {
    check(
        "
        namespace lab
        cq team-a gpu/a100=4
        wl secret q=team-a ns=lab gpu=4 t=1
        cycle
        wl waits q=team-a gpu=4 t=2
        cycle
        advise waits
        ",
        &expect![[r#"
            1  reserve secret team-a gpu=a100:4
            2  inadmissible-class waits team-a NoCandidates
            !  Admissible with +4 gpu in flavor a100; or when a Workload of another namespace in ClusterQueue team-a ends. Missing: flavor a100: 4 of 4 gpu (used by team-a 4).
        "#]],
    );
}

#[test]
fn beyond_the_maximum_less_quota_suffices_if_the_rest_is_preempted() {
    check(
        "
        cq team-a gpu/a100=8 within=lower
        wl low q=team-a gpu=8 t=1
        cycle
        wl large q=team-a gpu=12 prio=5 t=2
        wl weak q=team-a gpu=12 t=3
        cycle 2
        advise large
        advise weak
        ",
        &expect![[r#"
            1  reserve low team-a gpu=a100:8
            2  inadmissible-class large team-a ExceedsMaxQuota
            3  inadmissible-class weak team-a ExceedsMaxQuota
            !  Admissible with +4 gpu in flavor a100, by preemption. Missing: flavor a100: 4 of 12 gpu (at most 8 available).
            !  Admissible with +12 gpu in flavor a100. Missing: flavor a100: 4 of 12 gpu (at most 8 available).
        "#]],
    );
}

#[test]
fn every_flavor_of_which_more_suffices_is_named() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a cpu/x=8000 gpu/x=4 + memory/m=1
        cq team-b gpu/spot=9 gpu/a100=4 gpu/h100=8
        wl two q=team-a cpu=9000 gpu=6 memory=3 t=1
        wl runs q=team-b gpu=7 t=1
        cycle
        wl one q=team-b gpu=6 t=2
        cycle
        advise two
        advise one
        ",
        &expect![[r#"
            1  inadmissible-class two team-a ExceedsMaxQuota
            1  reserve runs team-b gpu=h100:7
            2  inadmissible-class one team-b NoCandidates
            !  Admissible with +2 gpu in flavor x and +1 cpu in flavor x and +2 memory in flavor m. Missing: flavor x: 2 of 6 gpu (at most 4 available), 1 of 9 cpu (at most 8 available); flavor m: 2 of 3 memory (at most 1 available).
            !  Admissible with +2 gpu in flavor a100; or with +5 gpu in flavor h100; or when runs ends. Missing: flavor spot: its taint spot=yes:NoSchedule is not tolerated; flavor a100: 2 of 6 gpu (at most 4 available); flavor h100: 5 of 6 gpu (used by team-b 7).
        "#]],
    );
}

#[test]
fn pod_sets_are_summed() {
    check(
        "
        cq team-a gpu/a100=4
        wl one q=team-a gpu=3 t=1 + name=workers pods=2 gpu=1 + name=more gpu=2
        cycle
        advise one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            !  Admissible with +3 gpu in flavor a100. Missing: pod set workers, flavor a100: 1 of 5 gpu (at most 4 available); pod set more, flavor a100: 1 of 5 gpu (at most 4 available).
        "#]],
    );
}

#[test]
fn flavors_of_a_group_with_a_fitting_one_are_not_missing() {
    check(
        "
        cq team-a cpu/x=1000 cpu/y=2000 + gpu/a100=4
        wl one q=team-a cpu=2000 gpu=5 t=1
        cycle
        advise one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            !  Admissible with +1 gpu in flavor a100. Missing: flavor a100: 1 of 5 gpu (at most 4 available).
        "#]],
    );
}

#[test]
fn no_quota_is_advised_where_another_reason_remains() {
    check(
        "
        flavor spot taint=spot:yes
        flavor cold label=zone:c
        check nodes
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        cq tainted gpu/spot=9 gpu/cold=9
        cq uncovered gpu/a100=1
        cq stops gpu/a100=1 stopped
        cq gone gpu/a100=1 check=nodes
        cq racked gpu/tas=9
        cq lab gpu/a100=1 select=team:a
        wl on-taint q=tainted on=zone:a gpu=10 t=1
        wl no-memory q=uncovered gpu=2 memory=1 t=1
        wl stopped q=stops gpu=2 t=1
        wl stranger q=lab gpu=2 t=1
        wl placed q=racked gpu=3 t=1
        wl sent-back q=gone gpu=2 t=1 check=nodes:retry
        cycle
        wl unplaced q=racked gpu=3 t=2
        wl too-large q=racked gpu=5 t=3
        cycle 3
        advise on-taint
        advise no-memory
        advise stopped
        advise stranger
        advise unplaced
        advise too-large
        advise placed
        advise sent-back
        delete check nodes
        advise sent-back
        ",
        &expect![[r#"
            1  reserve placed racked gpu=tas:3 at r1/h1:1
            1  inadmissible-class on-taint tainted NoMatchingFlavor
            1  inadmissible-class no-memory uncovered NoMatchingFlavor
            1  inadmissible sent-back gone FailedCheck
            1  inadmissible stranger lab NamespaceMismatch
            2  inadmissible-class unplaced racked NoCandidates
            3  inadmissible-class too-large racked TopologyPlacementFailed
            !  Missing: flavor spot: its taint spot=yes:NoSchedule is not tolerated; flavor cold: node selector or affinity exclude it.
            !  Missing: memory is not covered by any resource group of the queue; flavor a100: 1 of 2 gpu (at most 1 available).
            !  stopped is pending: stops is inactive, it is stopped
            !  the namespace of stranger does not match the namespaceSelector of lab
            !  Admissible when placed ends. Missing: flavor tas: 1 pod requested, anywhere; fitting now: none, 3 gpu requested, 1 free, 2 missing.
            !  Missing: flavor tas: 1 pod requested, anywhere; fitting when empty: none, 5 gpu requested, 4 in total, 1 missing.
            !  nothing to explain
            !  sent-back failed admission check nodes
            !  sent-back is pending: gone is inactive, check nodes is missing or not active
        "#]],
    );
}

#[test]
fn a_workload_that_lacks_nothing_is_behind_others_or_about_to_be_admitted() {
    check(
        "
        cq team-a gpu/a100=8 within=lower strict
        wl low q=team-a gpu=8 t=1
        cycle
        wl high q=team-a gpu=8 prio=5 t=2
        cycle
        wl next q=team-a gpu=4 prio=4 t=3
        advise high
        advise next
        ",
        &expect![[r#"
            1  reserve low team-a gpu=a100:8
            2  preempt for high team-a: low InClusterQueue
            !  nothing to explain
            !  next is behind 1 in the pending queue of team-a
        "#]],
    );
}

#[test]
fn a_closed_preemption_gate_leaves_quota_and_ends() {
    check(
        "
        settings orchestrated-preemption
        cq team-a gpu/a100=8 within=lower
        wl low q=team-a gpu=8 t=1
        cycle
        wl gated q=team-a gpu=8 prio=5 t=2 gated
        cycle
        advise gated
        ",
        &expect![[r#"
            1  reserve low team-a gpu=a100:8
            2  inadmissible gated team-a PreemptionGated
            !  Admissible with +8 gpu in flavor a100; or when low ends. Its preemption gates are closed. Missing: flavor a100: 8 of 8 gpu (used by team-a 8).
        "#]],
    );
}

#[test]
fn what_other_cluster_queues_use_is_summed_without_their_names() {
    check(
        "
        cohort all
        cq a cohort=all gpu/a100=4 within=lower reclaim=lower
        cq b cohort=all gpu/a100=4
        cq c cohort=all gpu/a100=4
        cq d cohort=all gpu/a100=4
        cq e cohort=all gpu/a100=1
        wl b1 q=b gpu=4 prio=9 t=1
        wl c1 q=c gpu=4 prio=9 t=2
        wl d1 q=d gpu=4 prio=9 t=3
        wl e1 q=e gpu=4 prio=9 t=4
        cycle 2
        wl waits q=a gpu=4 prio=1 t=5
        cycle
        advise waits
        ",
        &expect![[r#"
            1  reserve b1 b gpu=a100:4
            1  reserve c1 c gpu=a100:4
            1  reserve d1 d gpu=a100:4
            1  reserve e1 e gpu=a100:4 (borrows, height 1)
            3  inadmissible-class waits a NoCandidates
            !  Admissible with +3 gpu in flavor a100; or with priority ≥ 10, by preemption; or when b1 ends. Missing: flavor a100: 3 of 4 gpu (used by others in the cohort 16).
        "#]],
    );
}
