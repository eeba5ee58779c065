//! When the scan of flavors stops, and which flavor wins.

use expect_test::expect;

use super::check::check;

#[test]
fn by_default_borrowing_in_the_first_flavor_ends_the_scan() {
    check(
        "
        cq team-a cohort=ml gpu/spot=1 gpu/h100=4
        cq team-b cohort=ml gpu/spot=4
        wl one q=team-a gpu=2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn who_looks_on_finds_quota_of_its_own() {
    check(
        "
        cq team-a cohort=ml borrow-next gpu/spot=1 gpu/h100=4
        cq team-b cohort=ml gpu/spot=4
        wl one q=team-a gpu=2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn who_looks_on_in_vain_borrows_after_all() {
    check(
        "
        cq team-a cohort=ml borrow-next gpu/spot=1 gpu/h100=1
        cq team-b cohort=ml gpu/spot=4
        wl one q=team-a gpu=2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn the_nearer_loan_is_better() {
    check(
        "
        cohort low parent=high gpu/h100=4
        cq team-a cohort=low borrow-next gpu/spot=0 gpu/h100=0
        cq team-b cohort=high gpu/spot=4
        wl one q=team-a gpu=2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_scan_may_stop_at_preemption() {
    check(
        "
        cq team-a within=lower preempt-stops gpu/spot=2 gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=spot:2
            2  preempt for high team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn a_scan_that_goes_on_finds_a_free_flavor() {
    check(
        "
        cq team-a within=lower gpu/spot=2 gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=spot:2
            2  reserve high team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn nobody_to_preempt_never_ends_a_scan() {
    check(
        "
        cq team-a within=lower preempt-stops gpu/spot=2 gpu/h100=2
        wl holder q=team-a gpu=2 prio=9 t=1
        cycle
        wl one q=team-a gpu=2 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=spot:2
            2  reserve one team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn taking_back_is_better_than_preempting_at_home() {
    check(
        "
        cq team-a cohort=ml within=lower reclaim=any gpu/spot=2 gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        wl borrower q=team-b gpu=2 t=2
        cycle
        wl high q=team-a gpu=2 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=spot:2
            1  reserve borrower team-b gpu=h100:2 (borrows, height 1)
            2  preempt for high team-a: borrower InCohortReclamation
        "#]],
    );
}

#[test]
fn borrowing_is_better_than_preempting() {
    check(
        "
        cq team-a cohort=ml within=lower borrow-next gpu/spot=2 gpu/h100=0
        cq team-b cohort=ml gpu/h100=4
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=spot:2
            2  reserve high team-a gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn unless_preempting_is_preferred() {
    check(
        "
        cq team-a cohort=ml within=lower borrow-next prefer-preempting gpu/spot=2 gpu/h100=0
        cq team-b cohort=ml gpu/h100=4
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=spot:2
            2  preempt for high team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn a_flavor_is_as_good_as_its_worst_resource() {
    check(
        "
        cq team-a cpu/spot=2 gpu/spot=2 cpu/h100=9 gpu/h100=9
        wl one q=team-a cpu=2 t=1
        cycle
        wl two q=team-a cpu=1 gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a cpu=spot:2
            2  reserve two team-a cpu=h100:1 gpu=h100:1
        "#]],
    );
}

#[test]
fn a_head_that_was_overtaken_goes_on_with_the_next_flavor() {
    check(
        "
        cq team-a cohort=ml gpu/spot=1 gpu/h100=2
        cq team-b cohort=ml gpu/spot=2
        wl first q=team-a gpu=1 t=1
        cycle
        wl owner q=team-b gpu=2 t=2
        wl guest q=team-a gpu=1 t=3
        cycle
        finish first
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=spot:1
            2  reserve owner team-b gpu=spot:2
            2  retry guest team-a Skipped
            3  reserve guest team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn freed_quota_starts_the_scan_anew_when_progress_is_not_kept() {
    check(
        "
        settings no-scan-progress
        cq team-a cohort=ml gpu/spot=1 gpu/h100=2
        cq team-b cohort=ml gpu/spot=2
        wl first q=team-a gpu=1 t=1
        cycle
        wl owner q=team-b gpu=2 t=2
        wl guest q=team-a gpu=1 t=3
        cycle
        finish first
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=spot:1
            2  reserve owner team-b gpu=spot:2
            2  retry guest team-a Skipped
            3  reserve guest team-a gpu=spot:1
        "#]],
    );
}

#[test]
fn a_head_that_was_overtaken_begins_anew_when_progress_is_not_kept() {
    check(
        "
        settings no-scan-progress
        cq team-a cohort=ml gpu/spot=0 gpu/h100=2
        cq team-b cohort=ml gpu/spot=2
        wl owner q=team-b gpu=2 t=2
        wl guest q=team-a gpu=1 t=3
        cycle
        finish owner
        cycle
        ",
        &expect![[r#"
            1  reserve owner team-b gpu=spot:2
            1  retry guest team-a Skipped
            2  reserve guest team-a gpu=spot:1 (borrows, height 1)
        "#]],
    );
}

/// The first pod set fits in spot, where its scan stops; the second never fits.
#[test]
fn another_shape_starts_the_scan_anew() {
    let world = "
        cq team-a gpu/spot=4 gpu/h100=4 + cpu/plain=1
        wl one q=team-a t=1 gpu=1 + cpu=2
        cycle
        wl one q=team-a t=1 gpu=1 prio=1 + cpu=2
        cycle 3
    ";
    check(
        world,
        &expect![[r#"
            1  retry one team-a ExceedsMaxQuota
            2  retry one team-a ExceedsMaxQuota
            3  park one team-a ExceedsMaxQuota
        "#]],
    );
    check(
        &format!("settings no-shapes{world}"),
        &expect![[r#"
            1  retry one team-a ExceedsMaxQuota
            2  aside one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn the_scan_goes_on_if_only_the_age_is_another() {
    let world = "
        cq team-a gpu/spot=4 gpu/h100=4 + cpu/plain=1
        wl one q=team-a t=1 gpu=1 + cpu=2
        cycle
        wl one q=team-a t=2 gpu=1 + cpu=2
        cycle 3
    ";
    check(
        world,
        &expect![[r#"
            1  retry one team-a ExceedsMaxQuota
            2  park one team-a ExceedsMaxQuota
        "#]],
    );
    check(
        &format!("settings no-scan-progress{world}"),
        &expect![[r#"
            1  retry one team-a ExceedsMaxQuota
            2  retry one team-a ExceedsMaxQuota
            3  park one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn in_another_queue_the_scan_starts_anew() {
    check(
        "
        cq team-a gpu/spot=4 gpu/h100=4 + cpu/plain=1
        cq team-b gpu/spot=4 gpu/h100=4 + cpu/plain=1
        wl one q=team-a t=1 gpu=1 + cpu=2
        cycle
        wl one q=team-b t=1 gpu=1 + cpu=2
        cycle 3
        ",
        &expect![[r#"
            1  retry one team-a ExceedsMaxQuota
            2  retry one team-b ExceedsMaxQuota
            3  park one team-b ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_scan_that_saw_all_flavors_starts_anew() {
    check(
        "
        cq team-a cohort=ml gpu/spot=1
        cq team-b cohort=ml gpu/spot=2
        wl first q=team-a gpu=1 t=1
        cycle
        wl owner q=team-b gpu=2 t=2
        wl guest q=team-a gpu=1 t=3
        cycle
        finish first
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=spot:1
            2  reserve owner team-b gpu=spot:2
            2  retry guest team-a Skipped
            3  reserve guest team-a gpu=spot:1
        "#]],
    );
}

#[test]
fn without_fungibility_the_first_flavor_that_fits_is_taken() {
    check(
        "
        settings no-fungibility
        cq team-a cohort=ml borrow-next gpu/spot=1 gpu/h100=4
        cq team-b cohort=ml gpu/spot=4
        wl one q=team-a gpu=2 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:2 (borrows, height 1)
        "#]],
    );
}

/// Three waits for h100, which it owns, or for spot, which it would have to borrow; and keeps it from four meanwhile.
#[test]
fn without_fungibility_it_does_not_matter_how_far_a_flavor_reaches() {
    let world = "
        cq team-a cohort=ml poach gpu/spot=1 gpu/h100=2
        cq team-b cohort=ml gpu/spot=4 gpu/h100=0
        wl one q=team-b gpu=4 t=1
        wl two q=team-b gpu=2 t=2
        cycle 2
        wl three q=team-a gpu=2 prio=1 t=3
        wl four q=team-b gpu=1 t=4
        cycle
    ";
    check(
        world,
        &expect![[r#"
            1  reserve one team-b gpu=spot:4
            2  reserve two team-b gpu=h100:2 (borrows, height 1)
            3  park three team-a NoCandidates
            3  reserve four team-b gpu=spot:1 (borrows, height 1)
        "#]],
    );
    check(
        &format!("settings no-fungibility{world}"),
        &expect![[r#"
            1  reserve one team-b gpu=spot:4
            2  reserve two team-b gpu=h100:2 (borrows, height 1)
            3  retry three team-a NoCandidates
            3  retry four team-b Skipped
        "#]],
    );
}

#[test]
fn a_leader_without_the_first_resource_of_the_walk_starts_its_scan_anew() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2 cpu=9
        cq team-a cpu/tas=9 gpu/tas=9 cpu/plain=9 gpu/plain=9
        wl one q=team-a cpu=1 required=rack group=g t=1 + pods=3 cpu=1 gpu=1 required=rack group=g
        cycle 3
        ",
        &expect![[r#"
            1  retry one team-a TopologyPlacementFailed
            2  retry one team-a TopologyPlacementFailed
            3  retry one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn a_leader_with_the_first_resource_of_the_walk_goes_on() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2 cpu=9
        cq team-a cpu/tas=9 gpu/tas=9 cpu/plain=9 gpu/plain=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=3 cpu=1 gpu=1 required=rack group=g
        cycle 3
        ",
        &expect![[r#"
            1  retry one team-a TopologyPlacementFailed
            2  park one team-a NoMatchingFlavor
        "#]],
    );
}

/// The queue is held and comes back as it was: what was tried before is not tried again.
#[test]
fn progress_outlives_a_change_that_leaves_the_quotas() {
    let quotas = "cohort=all preempt-stops gpu/h100=2 gpu/a100=2 + cpu/x=4";
    check(
        &format!(
            "
            cohort all
            cq team-a {quotas}
            cq team-b cohort=all cpu/x=0
            wl guest q=team-b cpu=4 t=1
            cycle
            wl main q=team-a gpu=1 cpu=4 t=2
            cycle
            cq team-a {quotas} stopped
            wl other q=team-b cpu=9 t=3
            cycle
            finish guest
            cq team-a {quotas}
            cycle
            "
        ),
        &expect![[r#"
            1  reserve guest team-b cpu=x:4 (borrows, height 1)
            2  retry main team-a NoCandidates
            3  park other team-b ExceedsMaxQuota
            4  reserve main team-a cpu=x:4 gpu=a100:1
            4  park other team-b ExceedsMaxQuota
        "#]],
    );
}

/// A change of quotas ends it, be it in another queue of the tree, but for the cycle that follows directly.
#[test]
fn progress_ends_with_a_change_of_quotas_in_the_tree() {
    let quotas = "cohort=all preempt-stops gpu/h100=2 gpu/a100=2 + cpu/x=4";
    check(
        &format!(
            "
            cohort all
            cq team-a {quotas}
            cq team-b cohort=all cpu/x=0
            wl guest q=team-b cpu=4 t=1
            cycle
            wl main q=team-a gpu=1 cpu=4 t=2
            cycle
            cq team-a {quotas} stopped
            wl other q=team-b cpu=9 t=3
            cycle
            finish guest
            cq team-b cohort=all cpu/x=1
            cq team-a {quotas}
            cycle
            "
        ),
        &expect![[r#"
            1  reserve guest team-b cpu=x:4 (borrows, height 1)
            2  retry main team-a NoCandidates
            3  park other team-b ExceedsMaxQuota
            4  reserve main team-a cpu=x:4 gpu=h100:1
            4  park other team-b ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn progress_beyond_the_flavors_that_are_left_is_none() {
    check(
        "
        cohort all
        cq team-a cohort=all gpu/h100=2 gpu/a100=2 gpu/t4=2 + cpu/x=4
        cq team-b cohort=all cpu/x=0
        wl guest q=team-b cpu=4 t=1
        cycle
        wl main q=team-a gpu=1 cpu=4 t=2
        cycle 2
        finish guest
        cq team-a cohort=all gpu/h100=2 + cpu/x=4
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b cpu=x:4 (borrows, height 1)
            2  retry main team-a NoCandidates
            3  retry main team-a NoCandidates
            4  reserve main team-a cpu=x:4 gpu=h100:1
        "#]],
    );
}
