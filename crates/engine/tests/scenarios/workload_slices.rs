//! Workload slices of elastic jobs: a Workload replaces an older slice of the same job while that one runs.

use expect_test::expect;

use super::check::check;

#[test]
fn only_the_request_beyond_the_replaced_slice_needs_free_quota() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        show team-a
        finish old
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve new team-a gpu=h100:5
            -  team-a uses gpu/h100=5, reserving new old
            -  team-a uses gpu/h100=5, reserving new
        "#]],
    );
}

#[test]
fn the_missing_amount_excludes_the_replaced_slice() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        wl other q=team-a gpu=1 t=2
        cycle 2
        messages
        wl new q=team-a pods=5 gpu=1 t=3 replaces=old
        cycle
        explain new
        finish other
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve other team-a gpu=h100:1
            3  inadmissible new team-a NoCandidates: couldn't assign flavors to pod set main: insufficient unused quota for gpu in flavor h100, 1 more needed
            ?  new is inadmissible in team-a
            ?  flavor h100: 2 gpu requested, 1 free, 1 missing
            ?    used by: team-a 4
            ?    would help: 1 gpu released
            4  reserve new team-a gpu=h100:5
        "#]],
    );
}

#[test]
fn without_an_admitted_old_slice_the_whole_request_needs_quota() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=gone
        cycle
        finish old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible new team-a NoCandidates
            3  reserve new team-a gpu=h100:5
        "#]],
    );
}

#[test]
fn without_the_gate_no_slice_is_replaced() {
    check(
        "
        settings no-slices
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible-class new team-a NoCandidates
        "#]],
    );
}

#[test]
fn an_old_slice_in_another_queue_is_not_replaced() {
    check(
        "
        cq team-a gpu/h100=3
        cq team-b gpu/h100=4
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-b pods=5 gpu=1 t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible new team-b ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn an_old_slice_of_another_namespace_is_not_replaced() {
    check(
        "
        namespace lab
        cq team-a gpu/h100=5
        wl old q=team-a ns=lab pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible new team-a NoCandidates
        "#]],
    );
}

#[test]
fn the_flavor_of_the_old_slice_is_kept_although_an_earlier_one_is_free() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a gpu/spot=9 gpu/h100=4
        wl old q=team-a pods=2 gpu=1 t=1
        cycle
        messages
        wl new q=team-a pods=4 gpu=1 t=2 replaces=old tolerate=spot:yes
        cycle
        wl newer q=team-a pods=5 gpu=1 t=3 replaces=new tolerate=spot:yes
        cycle
        explain newer
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:2
            2  reserve new team-a gpu=h100:4: main: spot(NoFit;could not assign spot flavor since the original workload is assigned: h100)
            3  inadmissible newer team-a NoCandidates: couldn't assign flavors to pod set main: could not assign spot flavor since the original workload is assigned: h100, insufficient unused quota for gpu in flavor h100, 1 more needed
            ?  newer is inadmissible in team-a
            ?  flavor spot: the replaced slice uses h100
            ?  flavor h100: 1 gpu requested, 0 free, 1 missing
            ?    used by: team-a 4
            ?    would help: 1 gpu released
        "#]],
    );
}

#[test]
fn a_failed_write_restores_the_old_slice() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        show team-a
        withdraw new
        show team-a
        cycle
        finish old
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve new team-a gpu=h100:5
            -  team-a uses gpu/h100=5, reserving new old
            -  team-a uses gpu/h100=3, reserving old, pending new
            3  reserve new team-a gpu=h100:5
            -  team-a uses gpu/h100=5, reserving new
        "#]],
    );
}

#[test]
fn the_remaining_slice_is_charged_in_any_order_of_release() {
    check(
        "
        cq team-a gpu/h100=9
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        evict new
        release new t=3 hold=out
        show team-a
        finish new
        show team-a
        finish old
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve new team-a gpu=h100:5
            -  team-a uses gpu/h100=3, reserving old
            -  team-a uses gpu/h100=3, reserving old
            -  team-a uses nothing
        "#]],
    );
}

#[test]
fn an_old_slice_that_is_evicted_meanwhile_still_counts_until_its_pods_are_gone() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        evict old
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        release old hold=out
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible new team-a NoCandidates
            -  team-a uses nothing, inadmissible new
        "#]],
    );
}

#[test]
fn after_the_old_slice_is_released_the_whole_request_needs_quota() {
    check(
        "
        cq team-a gpu/h100=6
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        evict old
        release old hold=out
        wl greedy q=team-a gpu=3 t=2
        cycle
        wl new q=team-a pods=5 gpu=1 t=3 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve greedy team-a gpu=h100:3
            3  inadmissible new team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_smaller_slice_releases_the_difference() {
    check(
        "
        cq team-a gpu/h100=5 + cpu/x86=4
        wl old q=team-a pods=2 gpu=1 + pods=4 cpu=1 t=1
        cycle
        wl new q=team-a pods=4 gpu=1 + pods=1 cpu=1 t=2 replaces=old
        wl other q=team-a cpu=3 t=3
        cycle 2
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:2 + cpu=x86:4
            2  reserve new team-a gpu=h100:4 + cpu=x86:1
            3  reserve other team-a cpu=x86:3
            -  team-a uses cpu/x86=4 gpu/h100=4, reserving new old other
        "#]],
    );
}

#[test]
fn pod_sets_are_compared_by_name() {
    check(
        "
        cq team-a gpu/h100=9
        wl old q=team-a name=head gpu=1 + name=workers pods=3 gpu=2 t=1
        cycle
        wl new q=team-a name=head gpu=1 + name=workers pods=4 gpu=2 t=2 replaces=old
        cycle
        finish old
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:1 + gpu=h100:6
            2  reserve new team-a gpu=h100:1 + gpu=h100:8
            -  team-a uses gpu/h100=9, reserving new
        "#]],
    );
}

#[test]
fn the_old_slice_is_never_a_target_of_its_replacement() {
    check(
        "
        cq team-a within=lower gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        wl other q=team-a gpu=2 t=2
        cycle 2
        wl new q=team-a pods=5 gpu=1 prio=1 t=3 replaces=old
        cycle
        release other hold=out
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve other team-a gpu=h100:2
            3  preempt for new team-a: other InClusterQueue
            4  reserve new team-a gpu=h100:5
            -  team-a uses gpu/h100=5, reserving new old
        "#]],
    );
}

#[test]
fn with_only_the_old_slice_to_preempt_a_replacement_waits() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 prio=1 t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible new team-a NoCandidates
        "#]],
    );
}

#[test]
fn quota_taken_over_by_a_slice_is_no_preemption_gain() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml reclaim=any borrow-within-cohort gpu/h100=4
        wl old q=team-a pods=4 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 prio=9 replaces=old
        wl owner q=team-b gpu=5 t=3 prio=1
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4 (borrows, height 1)
            2  reserve new team-a gpu=h100:5 (borrows, height 1)
            2  requeue owner team-b Skipped
        "#]],
    );
}

#[test]
fn a_replacement_of_a_target_waits_until_it_is_released() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml reclaim=any gpu/h100=4
        wl old q=team-a pods=4 gpu=1 t=1
        cycle
        wl owner q=team-b gpu=4 t=2
        wl new q=team-a pods=5 gpu=1 t=3 replaces=old
        cycle
        release old hold=out
        cycle 2
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4 (borrows, height 1)
            2  preempt for owner team-b: old InCohortReclamation
            2  inadmissible new team-a WaitingForQuota
            3  reserve owner team-b gpu=h100:4
            3  requeue new team-a Skipped
            4  inadmissible new team-a WaitingForQuota
        "#]],
    );
}

#[test]
fn preempting_a_slice_frees_the_quota_of_both_slices() {
    check(
        "
        cq team-a within=lower gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        wl urgent q=team-a gpu=5 prio=1 t=3
        cycle
        finish old
        release new hold=out
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve new team-a gpu=h100:5
            3  preempt for urgent team-a: new InClusterQueue
            4  reserve urgent team-a gpu=h100:5
        "#]],
    );
}

#[test]
fn a_sequence_of_slices_is_charged_for_the_last() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a pods=2 gpu=1 t=1
        cycle
        wl two q=team-a pods=4 gpu=1 t=2 replaces=one
        cycle
        wl three q=team-a pods=9 gpu=1 t=3 replaces=two
        cycle
        show team-a
        finish one
        finish two
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            2  reserve two team-a gpu=h100:4
            3  reserve three team-a gpu=h100:9
            -  team-a uses gpu/h100=9, reserving one three two
            -  team-a uses gpu/h100=9, reserving three
        "#]],
    );
}

#[test]
fn of_slices_that_name_each_other_the_later_one_replaces() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a pods=2 gpu=1 t=1 replaces=two
        wl two q=team-a pods=4 gpu=1 t=2 replaces=one
        wl self q=team-a pods=3 gpu=1 t=3 replaces=self
        cycle 3
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            2  reserve two team-a gpu=h100:4
            3  reserve self team-a gpu=h100:3
            -  team-a uses gpu/h100=7, reserving one self two
        "#]],
    );
}

#[test]
fn reclaimable_pods_are_not_part_of_the_old_slice() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        reclaim old 1
        wl other q=team-a gpu=2 t=2
        cycle
        wl new q=team-a pods=4 gpu=1 t=3 replaces=old
        cycle
        finish other
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve other team-a gpu=h100:2
            3  inadmissible new team-a NoCandidates
            4  reserve new team-a gpu=h100:4
        "#]],
    );
}

#[test]
fn a_slice_is_not_inadmissible_with_its_class() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        wl equal q=team-a pods=5 gpu=1 t=2
        cycle 2
        wl new q=team-a pods=5 gpu=1 t=3 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible-class equal team-a NoCandidates
            3  reserve new team-a gpu=h100:5
        "#]],
    );
}

#[test]
fn a_slice_is_requeued_when_the_old_slice_gets_quota() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1 hold=out
        wl other q=team-a gpu=2 t=2
        cycle
        wl new q=team-a pods=3 gpu=1 min=1 t=3 replaces=old hold=out
        wl new q=team-a pods=5 gpu=1 t=3 replaces=old
        cycle
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        show team-a
        finish other
        cycle
        ",
        &expect![[r#"
            1  reserve other team-a gpu=h100:2
            2  inadmissible new team-a NoCandidates
            3  reserve old team-a gpu=h100:3
            -  team-a uses gpu/h100=5, reserving old other, pending new
            4  reserve new team-a gpu=h100:5
        "#]],
    );
}

#[test]
fn a_what_if_of_a_slice_leaves_no_trace() {
    let mut player = crate::play::Player::new();
    for line in ["cq team-a gpu/h100=5", "wl old q=team-a pods=3 gpu=1 t=1", "cycle"] {
        player.line(line);
    }
    player.line("wl new q=team-a pods=5 gpu=1 t=2 replaces=old");
    let before = player.engine.debug_dump();
    let mut what_if = player.engine.what_if();
    let reserved = what_if.cycle(engine::Time(9), &mut engine::AcceptAll).len();
    let old = what_if.names().workloads.get("old").expect("known");
    what_if.apply(engine::Event::WorkloadGone(old));
    assert!(what_if.debug_dump().contains("5 of 5"), "{}", what_if.debug_dump());
    drop(what_if);
    assert_eq!((reserved, player.engine.debug_dump()), (1, before));
    player.line("cycle");
    player.line("show team-a");
    expect![[r#"
        1  reserve old team-a gpu=h100:3
        2  reserve new team-a gpu=h100:5
        -  team-a uses gpu/h100=5, reserving new old
    "#]]
    .assert_eq(&player.trace);
}

#[test]
fn a_job_without_pods_gets_a_flavor_that_can_hold_one_and_keeps_it() {
    check(
        "
        cq team-a cpu/plain=9 gpu/plain=0 cpu/fast=9 gpu/fast=4
        wl old q=team-a pods=0 cpu=1 gpu=1 t=1
        cycle
        wl new q=team-a pods=2 cpu=1 gpu=1 t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a cpu=fast:0 gpu=fast:0
            2  reserve new team-a cpu=fast:2 gpu=fast:2
        "#]],
    );
}

#[test]
fn a_job_without_pods_is_admitted_though_no_flavor_can_hold_one() {
    check(
        "
        cq team-a gpu/plain=0 gpu/fast=1
        wl none q=team-a pods=0 gpu=2 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve none team-a gpu=plain:0
        "#]],
    );
}

#[test]
fn pod_sets_without_pods_are_counted_on_top_of_those_with_pods() {
    check(
        "
        messages
        cq team-a gpu/plain=2 gpu/fast=4
        wl head q=team-a gpu=2 + pods=0 gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve head team-a gpu=plain:2 + gpu=fast:0: more-1: plain(NoFit;insufficient quota for gpu in flavor plain, previously considered podsets requests (2) + current podset request (1) > maximum capacity (2))
        "#]],
    );
}

#[test]
fn a_pod_set_without_pods_keeps_no_blocked_workload_active() {
    check(
        "
        messages
        cq team-a within=lower cpu/x=2 + gpu/a=9 gpu/b=9
        wl first q=team-a prio=1 cpu=2 t=1
        cycle
        wl head q=team-a prio=1 cpu=2 + pods=0 gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve first team-a cpu=x:2
            2  inadmissible-class head team-a NoCandidates: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor x, 2m more needed
        "#]],
    );
}

/// Its last attempt was one with pods, and stopped at the first flavor.
#[test]
fn a_pod_set_without_pods_gets_the_first_flavor_again() {
    check(
        "
        settings no-scheduling-hashes
        cq team-a cpu/x=2 + gpu/a=2 gpu/b=2
        wl first q=team-a cpu=2 t=1
        cycle
        wl head q=team-a gpu=1 + cpu=2 t=2
        cycle
        reclaim head 1
        finish first
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a cpu=x:2
            2  requeue head team-a NoCandidates
            3  reserve head team-a gpu=a:0 + cpu=x:2
        "#]],
    );
}

/// An eviction would have no effect if the replacement took over the quota: the replacement would pay the difference alone, and end
/// the old slice.
#[test]
fn the_quota_of_an_evicted_slice_is_not_taken_over() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        evict old
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        show team-a
        finish old
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  inadmissible new team-a NoCandidates
            -  team-a uses gpu/h100=3, reserving old, inadmissible new
            3  reserve new team-a gpu=h100:5
            -  team-a uses gpu/h100=5, reserving new
        "#]],
    );
}

/// The preemptor waits for all of it.
#[test]
fn a_target_is_charged_beside_its_replacement() {
    check(
        "
        cq team-a cohort=ml gpu/h100=1
        cq team-b cohort=ml reclaim=any gpu/h100=2
        wl old q=team-a pods=2 gpu=1 t=1
        cycle
        wl owner q=team-b pods=2 gpu=1 t=2
        cycle
        wl new q=team-a pods=1 gpu=1 t=3 replaces=old
        cycle
        show team-a
        cycle
        release old hold=out
        show team-a
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:2 (borrows, height 1)
            2  preempt for owner team-b: old InCohortReclamation
            3  preempt for owner team-b: old InCohortReclamation
            3  reserve new team-a gpu=h100:1 (borrows, height 1)
            -  team-a uses gpu/h100=3, reserving new old
            4  preempt for owner team-b: old InCohortReclamation
            -  team-a uses gpu/h100=1, reserving new
            5  reserve owner team-b gpu=h100:2
        "#]],
    );
}

/// Its pods run until it releases its quota.
#[test]
fn a_slice_that_is_evicted_after_its_replacement_is_charged_again() {
    check(
        "
        cq team-a gpu/h100=5
        wl old q=team-a pods=3 gpu=1 t=1
        cycle
        wl new q=team-a pods=5 gpu=1 t=2 replaces=old
        cycle
        show team-a
        evict old
        show team-a
        finish old
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  reserve new team-a gpu=h100:5
            -  team-a uses gpu/h100=5, reserving new old
            -  team-a uses gpu/h100=8, reserving new old
            -  team-a uses gpu/h100=5, reserving new
        "#]],
    );
}

/// Its last attempt stopped at that flavor.
#[test]
fn a_pod_set_that_lost_its_pods_stays_in_the_flavor_of_the_replaced_slice() {
    check(
        "
        settings no-scheduling-hashes
        cq team-a gpu/a=0 gpu/b=4 gpu/c=4 + cpu/x=4
        wl first q=team-a cpu=2 t=1
        wl old q=team-a gpu=1 + cpu=1 t=2
        cycle 2
        wl new q=team-a gpu=1 + pods=3 cpu=1 t=3 replaces=old
        cycle
        reclaim new 1
        finish first
        cq team-a gpu/a=0 gpu/b=0 gpu/c=4 + cpu/x=4
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a cpu=x:2
            2  reserve old team-a gpu=b:1 + cpu=x:1
            3  requeue new team-a NoCandidates
            4  reserve new team-a gpu=b:0 + cpu=x:3
        "#]],
    );
}
