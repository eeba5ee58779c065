//! Variants of one Workload, each for another flavor (concurrent admission).

use expect_test::expect;

use super::check::check;

#[test]
fn a_variant_gets_only_the_flavors_that_it_is_allowed() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=4 gpu/t4=4
        wl one q=team-a gpu=2 t=1 family=f allowed=a100
        cycle
        messages
        wl large q=team-a gpu=5 t=2 family=g allowed=a100
        cycle
        explain large
        ",
        &expect![[r#"
            1  reserve one team-a gpu=a100:2
            2  inadmissible-class large team-a ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for gpu in flavor a100, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4), skipping flavor h100 due to WorkloadAllowedResourceFlavorAnnotation annotation, skipping flavor t4 due to WorkloadAllowedResourceFlavorAnnotation annotation
            ?  large is inadmissible in team-a
            ?  flavor h100: it is not an allowed flavor
            ?  flavor a100: 5 gpu requested, at most 4 available, 1 missing
            ?    would help: a quota larger by 1 gpu
            ?  flavor t4: it is not an allowed flavor
        "#]],
    );
}

#[test]
fn without_the_gate_all_flavors_are_allowed() {
    check(
        "
        cq team-a gpu/h100=4 gpu/a100=4
        wl one q=team-a gpu=2 t=1 family=f allowed=a100
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_variant_without_an_allowed_flavor_has_no_matching_flavor() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4
        messages
        wl one q=team-a gpu=2 t=1 allowed=a100
        wl other q=team-a gpu=2 t=2 allowed=
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: skipping flavor h100 due to WorkloadAllowedResourceFlavorAnnotation annotation
            2  inadmissible-class other team-a NoMatchingFlavor: couldn't assign flavors to pod set main: skipping flavor h100 due to WorkloadAllowedResourceFlavorAnnotation annotation
        "#]],
    );
}

#[test]
fn variants_of_different_flavors_are_different_classes() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=1 gpu/a100=4
        wl best q=team-a gpu=2 t=1 family=f allowed=h100
        wl good q=team-a gpu=2 t=2 family=f allowed=a100
        wl same q=team-a gpu=2 t=3 family=g allowed=h100
        cycle 2
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class best team-a ExceedsMaxQuota
            2  reserve good team-a gpu=a100:2
            -  team-a uses gpu/a100=2, reserving good, inadmissible best same
        "#]],
    );
}

#[test]
fn a_variant_with_a_better_variant_admitted_is_inadmissible() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=4
        wl best q=team-a gpu=2 t=1 family=f allowed=h100
        cycle
        messages
        wl good q=team-a gpu=2 t=2 family=f allowed=a100
        cycle
        explain good
        ",
        &expect![[r#"
            1  reserve best team-a gpu=h100:2
            2  requeue good team-a BetterVariantAdmitted: A more favorable variant is already admitted
            ?  good is first in the pending queue of team-a
            ?  its variant best is admitted with a better flavor
            ?  flavor h100: it is not an allowed flavor
            ?  flavor a100: enough quota is free
        "#]],
    );
}

#[test]
fn a_better_variant_with_pending_checks_is_not_admitted() {
    check(
        "
        settings concurrent-admission
        check slow
        cq team-a gpu/h100=4 gpu/a100=4 check=slow:h100
        wl best q=team-a gpu=2 t=1 family=f allowed=h100
        cycle
        wl good q=team-a gpu=2 t=2 family=f allowed=a100
        cycle
        ",
        &expect![[r#"
            1  reserve best team-a gpu=h100:2, needs slow
            2  reserve good team-a gpu=a100:2
        "#]],
    );
}

#[test]
fn a_variant_in_another_queue_or_group_is_ignored() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=4
        cq team-b gpu/h100=4 gpu/a100=4
        wl best q=team-a gpu=2 t=1 family=f allowed=h100
        cycle
        wl stranger q=team-a gpu=2 t=2 family=g allowed=a100
        wl elsewhere q=team-b gpu=2 t=2 family=f allowed=a100
        cycle
        ",
        &expect![[r#"
            1  reserve best team-a gpu=h100:2
            2  reserve stranger team-a gpu=a100:2
            2  reserve elsewhere team-b gpu=a100:2
        "#]],
    );
}

#[test]
fn a_better_variant_that_fits_migrates_from_the_worse_one() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=4
        wl busy q=team-a gpu=4 t=1
        cycle
        wl best q=team-a gpu=2 t=2 family=f allowed=h100
        wl good q=team-a gpu=2 t=3 family=f allowed=a100
        cycle 2
        finish busy
        messages
        cycle
        show team-a
        cycle
        release good hold=out
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve busy team-a gpu=h100:4
            2  inadmissible-class best team-a NoCandidates
            3  reserve good team-a gpu=a100:2
            4  migrate to best team-a: good: . Pending the migration of 1 workload(s)
            -  team-a uses gpu/a100=2, reserving good, pending best
            5  migrate to best team-a: good: . Pending the migration of 1 workload(s)
            6  reserve best team-a gpu=h100:2
            -  team-a uses gpu/h100=2, reserving best
        "#]],
    );
}

#[test]
fn a_migrating_variant_stays_first() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=4
        wl good q=team-a gpu=2 t=1 family=f allowed=a100
        cycle
        wl best q=team-a gpu=4 t=2 family=f allowed=h100
        cycle
        wl urgent q=team-a gpu=4 prio=9 t=3
        cycle
        release good hold=out
        cycle
        ",
        &expect![[r#"
            1  reserve good team-a gpu=a100:2
            2  migrate to best team-a: good
            3  migrate to best team-a: good
            4  reserve best team-a gpu=h100:4
        "#]],
    );
}

#[test]
fn a_variant_that_must_preempt_does_not_migrate() {
    check(
        "
        settings concurrent-admission
        cq team-a within=lower gpu/h100=4 gpu/a100=4
        wl busy q=team-a gpu=4 t=1
        wl good q=team-a gpu=2 prio=1 t=2 family=f allowed=a100
        cycle 2
        wl best q=team-a gpu=2 prio=1 t=3 family=f allowed=h100 gated
        cycle
        wl best q=team-a gpu=2 prio=1 t=3 family=f allowed=h100
        cycle
        release busy hold=out
        cycle
        ",
        &expect![[r#"
            1  reserve good team-a gpu=a100:2
            2  reserve busy team-a gpu=h100:4
            3  inadmissible best team-a PreemptionGated
            4  preempt for best team-a: busy InClusterQueue
            5  migrate to best team-a: good
        "#]],
    );
}

#[test]
fn variants_do_not_move_to_a_flavor_behind_the_last_acceptable() {
    check(
        "
        settings concurrent-admission
        cq team-a last=h100 gpu/h100=4 gpu/a100=4 gpu/t4=4
        wl fair q=team-a gpu=2 t=1 family=f allowed=t4
        cycle
        messages
        wl good q=team-a gpu=2 t=2 family=f allowed=a100
        cycle
        wl best q=team-a gpu=2 t=0 family=f allowed=h100
        cycle
        ",
        &expect![[r#"
            1  reserve fair team-a gpu=t4:2
            2  requeue good team-a MigrationRefused: Target flavor is below LastAcceptableFlavorName
            3  migrate to best team-a: fair: . Pending the migration of 1 workload(s)
        "#]],
    );
}

#[test]
fn a_variant_that_must_not_migrate_is_inadmissible() {
    check(
        "
        settings concurrent-admission
        cq team-a last=h100 gpu/h100=4 gpu/t4=4 gpu/a100=4
        wl fair q=team-a gpu=2 t=1 family=f allowed=a100
        cycle
        wl good q=team-a gpu=2 t=2 family=f allowed=t4,a100
        cq team-a last=h100 gpu/h100=4 gpu/t4=1 gpu/a100=4
        cycle
        ",
        &expect![[r#"
            1  reserve fair team-a gpu=a100:2
            2  inadmissible good team-a MigrationRefused
        "#]],
    );
}

#[test]
fn migration_evicts_the_worst_variant_first() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=4 gpu/t4=4
        wl fair q=team-a gpu=2 t=1 family=f allowed=t4
        wl good q=team-a gpu=2 t=2 allowed=a100
        cycle 2
        wl good q=team-a gpu=2 t=2 family=f allowed=a100
        wl best q=team-a gpu=2 t=3 family=f allowed=h100
        cycle
        release fair hold=out
        cycle
        release good hold=out
        cycle
        ",
        &expect![[r#"
            1  reserve fair team-a gpu=t4:2
            2  reserve good team-a gpu=a100:2
            3  migrate to best team-a: fair
            4  migrate to best team-a: good
            5  reserve best team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_deleted_variant_is_forgotten() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=4
        wl best q=team-a gpu=2 t=1 family=f allowed=h100
        cycle
        finish best
        wl good q=team-a gpu=2 t=2 family=f allowed=a100
        wl best q=team-a gpu=4 t=3
        cycle 2
        ",
        &expect![[r#"
            1  reserve best team-a gpu=h100:2
            2  reserve good team-a gpu=a100:2
            3  reserve best team-a gpu=h100:4
        "#]],
    );
}

#[test]
fn a_migrating_variant_reserves_its_quota_for_the_cycle() {
    check(
        "
        settings concurrent-admission
        cohort ml gpu/h100=1
        cq team-a cohort=ml gpu/h100=0 gpu/a100=2
        cq team-b cohort=ml gpu/h100=3
        wl good q=team-a gpu=2 t=1 family=f allowed=a100
        cycle
        wl best q=team-a gpu=2 prio=1 t=2 family=f allowed=h100
        wl rival q=team-b gpu=4 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve good team-a gpu=a100:2
            2  migrate to best team-a: good
            2  requeue rival team-b Skipped
        "#]],
    );
}

#[test]
fn a_what_if_of_a_migration_leaves_no_trace() {
    let mut player = crate::play::Player::new();
    for line in [
        "settings concurrent-admission",
        "cq team-a gpu/h100=4 gpu/a100=4",
        "wl good q=team-a gpu=2 t=1 family=f allowed=a100",
        "cycle",
        "wl best q=team-a gpu=2 t=2 family=f allowed=h100",
    ] {
        player.line(line);
    }
    let good = player.engine.names().workloads.get("good").expect("known");
    let mut what_if = player.engine.what_if();
    let outcome = what_if.cycle(engine::Time(9), &mut engine::AcceptAll)[0].outcome;
    assert_eq!(outcome, engine::CycleOutcome::Migrating { from: good });
    what_if.apply(engine::Event::WorkloadGone(good));
    let outcome = what_if.cycle(engine::Time(9), &mut engine::AcceptAll)[0].outcome;
    assert_eq!(outcome, engine::CycleOutcome::Reserved { cluster: None });
    drop(what_if);
    assert!(!player.engine.is_evicted(good));
    player.line("cycle");
    expect![[r#"
        1  reserve good team-a gpu=a100:2
        2  migrate to best team-a: good
    "#]]
    .assert_eq(&player.trace);
}

/// It ends as soon as the reservation of the slice is written, and an eviction would charge it again.
#[test]
fn a_variant_that_a_slice_took_over_from_counts_as_ended() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=4 gpu/a100=2
        wl good q=team-a gpu=2 t=1 family=f allowed=a100
        cycle
        wl grown q=team-a pods=2 gpu=1 t=2 replaces=good
        cycle
        wl best q=team-a gpu=2 t=3 family=f allowed=h100
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve good team-a gpu=a100:2
            2  reserve grown team-a gpu=a100:2
            3  reserve best team-a gpu=h100:2
            -  team-a uses gpu/a100=2 gpu/h100=2, reserving best good grown
        "#]],
    );
}

#[test]
fn a_better_variant_that_a_slice_took_over_from_holds_back_no_other() {
    check(
        "
        settings concurrent-admission
        cq team-a gpu/h100=2 gpu/a100=2
        wl best q=team-a gpu=2 t=1 family=f allowed=h100
        cycle
        wl grown q=team-a pods=2 gpu=1 t=2 replaces=best
        cycle
        wl good q=team-a gpu=2 t=3 family=f allowed=a100
        cycle
        ",
        &expect![[r#"
            1  reserve best team-a gpu=h100:2
            2  reserve grown team-a gpu=h100:2
            3  reserve good team-a gpu=a100:2
        "#]],
    );
}
