//! Explanations of pending Workloads: quota.

use expect_test::expect;

use super::check::check;

#[test]
fn a_shortage_lists_the_users_of_the_quota() {
    check(
        "
        cohort ml
        cq team-a cohort=ml gpu/h100=4
        cq team-b cohort=ml gpu/h100=4
        wl one q=team-b gpu=6 t=1
        cycle
        wl waits q=team-a gpu=4 t=2
        cycle
        explain waits
        ",
        &expect![[r#"
            1  reserve one team-b gpu=h100:6 (borrows, height 1)
            2  inadmissible-class waits team-a NoCandidates
            ?  waits is inadmissible in team-a
            ?  flavor h100: 4 gpu requested, 2 free, 2 missing
            ?    used by: team-b 6 (2 borrowed)
            ?    would help: 2 gpu released; or reclaimWithinCohort, since 2 gpu of its own quota is lent
        "#]],
    );
}

#[test]
fn an_exceeded_maximum_names_the_limit() {
    check(
        "
        cohort ml
        cohort lent gpu/h100=1
        cq own gpu/h100=4
        cq bound cohort=ml gpu/h100=2,borrow:1
        cq rich cohort=ml gpu/h100=9
        cq poor cohort=lent gpu/h100=2
        cq keeps cohort=lent gpu/h100=9,lend:0
        wl too-large q=own gpu=6 t=1
        wl too-bound q=bound gpu=6 t=1
        wl not-lent q=poor gpu=6 t=1
        wl nowhere q=poor gpu=99 t=2
        cycle 2
        explain too-large
        explain too-bound
        explain not-lent
        explain nowhere
        ",
        &expect![[r#"
            1  inadmissible-class too-bound bound ExceedsMaxQuota
            1  inadmissible-class too-large own ExceedsMaxQuota
            1  inadmissible-class not-lent poor ExceedsMaxQuota
            2  inadmissible-class nowhere poor ExceedsMaxQuota
            ?  too-large is inadmissible in own
            ?  flavor h100: 6 gpu requested, at most 4 available, 2 missing
            ?    would help: a quota larger by 2 gpu
            ?  too-bound is inadmissible in bound
            ?  flavor h100: 6 gpu requested, at most 3 available, 3 missing
            ?    would help: a borrowingLimit higher by 3 gpu
            ?  not-lent is inadmissible in poor
            ?  flavor h100: 6 gpu requested, at most 3 available, 3 missing
            ?    would help: other queues lending 3 gpu more
            ?  nowhere is inadmissible in poor
            ?  flavor h100: 99 gpu requested, at most 3 available, 96 missing
            ?    would help: a quota larger by 96 gpu
        "#]],
    );
}

#[test]
fn the_explanation_counts_possible_targets() {
    check(
        "
        cq team-a gpu/h100=4
        wl low-1 q=team-a gpu=2 t=1
        wl low-2 q=team-a gpu=2 t=2
        cycle 2
        wl high q=team-a gpu=3 prio=5 t=3
        cycle
        explain high
        ",
        &expect![[r#"
            1  reserve low-1 team-a gpu=h100:2
            2  reserve low-2 team-a gpu=h100:2
            3  inadmissible-class high team-a NoCandidates
            ?  high is inadmissible in team-a
            ?  flavor h100: 3 gpu requested, 0 free, 3 missing
            ?    used by: team-a 4
            ?    would help: 3 gpu released; or withinClusterQueue, since 2 Workloads have lower priority
        "#]],
    );
}

#[test]
fn every_flavor_is_explained() {
    check(
        "
        flavor spot taint=spot:yes
        flavor cold label=zone:c
        cq team-a gpu/spot=9 gpu/cold=9 gpu/gone=9 gpu/h100=2 + cpu/x86=4000
        wl one q=team-a on=zone:a gpu=3 cpu=5500 memory=4096 t=1
        cycle
        explain one
        delete flavor gone
        cycle
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor
            ?  one is inadmissible in team-a
            ?  memory: not covered by any resource group of the queue
            ?  flavor spot: its taint spot=yes:NoSchedule is not tolerated
            ?  flavor cold: node selector or affinity exclude it
            ?  flavor gone: enough quota is free
            ?  flavor h100: 3 gpu requested, at most 2 available, 1 missing
            ?    would help: a quota larger by 1 gpu
            ?  flavor x86: 5500m cpu requested, at most 4 available, 1500m missing
            ?    would help: a quota larger by 1500m cpu
            ?  one is pending: team-a is inactive, flavor gone or its topology is missing
        "#]],
    );
}

#[test]
fn earlier_pod_sets_count_in_their_flavors() {
    check(
        "
        cq team-a gpu/spot=1 gpu/h100=4
        wl one q=team-a gpu=3 t=1 + name=workers pods=2 gpu=1
        cycle
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            ?  one is inadmissible in team-a
            ?  pod set main, 1 pod
            ?    flavor spot: 3 gpu requested, at most 1 available, 2 missing
            ?      would help: a quota larger by 2 gpu
            ?    flavor h100: enough quota is free
            ?  pod set workers, 2 pods
            ?    flavor spot: 2 gpu requested, at most 1 available, 1 missing
            ?      would help: a quota larger by 1 gpu
            ?    flavor h100: 2 gpu requested in addition to 3 for other pod sets, at most 4 available, 1 missing
            ?      would help: a quota larger by 1 gpu
        "#]],
    );
}

#[test]
fn a_status_before_capacity_is_explained_alone() {
    check(
        "
        check nodes
        cq team-a gpu/h100=4 check=nodes
        cq stops gpu/h100=4 stopped
        cq lab gpu/h100=4 select=team:a
        lq late cq=nowhere
        wl holds q=team-a gpu=1 t=1
        wl sent-back q=team-a gpu=1 t=2 check=nodes:retry
        wl wrong q=team-a gpu=1 t=3 invalid
        wl restarts q=team-a gpu=1 t=4 hold=requeue
        wl out q=team-a gpu=1 t=4 hold=out
        wl stopped q=stops gpu=1 t=1
        wl stranger q=lab gpu=1 t=1
        wl lost q=nobody gpu=1 t=1
        wl early q=late gpu=1 t=1
        cycle
        delete check nodes
        wl next q=team-a gpu=1 t=5
        explain holds
        explain next
        check nodes
        cycle
        explain sent-back
        explain wrong
        explain restarts
        explain out
        explain stopped
        explain stranger
        explain lost
        explain early
        explain next
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=h100:1, needs nodes
            1  inadmissible stranger lab NamespaceMismatch
            ?  holds holds quota in team-a
            ?  next is pending: team-a is inactive, check nodes is missing or not active
            2  inadmissible sent-back team-a FailedCheck
            ?  sent-back failed admission check nodes
            ?  wrong is invalid: resources validation failed: limits are below requests
            ?  restarts is pending until its queue is resumed
            ?  out is not eligible for queueing
            ?  stopped is pending: stops is inactive, it is stopped
            ?  the namespace of stranger does not match the namespaceSelector of lab
            ?  lost is in no ClusterQueue: its LocalQueue is missing or stopped
            ?  early is pending: nowhere is inactive, it does not exist
            ?  next is behind 1 in the pending queue of team-a
            ?  flavor h100: enough quota is free
        "#]],
    );
}

#[test]
fn a_workload_without_cluster_capacity_has_quota() {
    check(
        "
        capacity h100=1
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1
        cycle
        explain one
        ",
        &expect![[r#"
            1  no capacity for one team-a in h100
            ?  one fits the quota of team-a, but no cluster has capacity
            ?  flavor h100: enough quota is free
        "#]],
    );
}

#[test]
fn quota_may_be_free_without_topology_capacity() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        cq team-a gpu/tas=9
        node h1 rack=r1 gpu=2
        wl one q=team-a gpu=4 t=1
        cycle
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, anywhere; fitting when empty: none
            ?    4 gpu requested, 2 in total, 2 missing
            ?    would help: nodes with capacity for 1 more pod
        "#]],
    );
}

#[test]
fn a_cohort_cycle_is_explained_at_once() {
    check(
        "
        cohort one parent=two
        cq team-a cohort=one gpu/h100=1
        wl waits q=team-a gpu=2 t=1
        cycle
        cohort two parent=one
        explain waits
        ",
        &expect![[r#"
            1  inadmissible-class waits team-a ExceedsMaxQuota
            ?  waits is pending: team-a is inactive, its cohorts form a cycle
        "#]],
    );
}
