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
fn try_next_flavor_finds_nominal_quota() {
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
fn try_next_flavor_borrows_if_no_flavor_has_nominal_quota() {
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
fn a_lower_borrowing_height_is_better() {
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
fn a_flavor_without_preemption_targets_does_not_end_the_scan() {
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
fn reclaiming_is_better_than_preempting_within_the_queue() {
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
fn preempting_may_be_preferred_over_borrowing() {
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
fn a_skipped_head_continues_with_the_next_flavor() {
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
            2  requeue guest team-a Skipped
            3  reserve guest team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn without_kept_progress_released_quota_restarts_the_scan() {
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
            2  requeue guest team-a Skipped
            3  reserve guest team-a gpu=spot:1
        "#]],
    );
}

#[test]
fn without_kept_progress_a_skipped_head_restarts_the_scan() {
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
            1  requeue guest team-a Skipped
            2  reserve guest team-a gpu=spot:1 (borrows, height 1)
        "#]],
    );
}

/// The first pod set fits in spot, where its scan stops; the second never fits.
#[test]
fn another_equivalence_class_restarts_the_scan() {
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
            1  requeue one team-a ExceedsMaxQuota
            2  requeue one team-a ExceedsMaxQuota
            3  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
    check(
        &format!("settings no-scheduling-hashes{world}"),
        &expect![[r#"
            1  requeue one team-a ExceedsMaxQuota
            2  inadmissible one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn another_timestamp_alone_continues_the_scan() {
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
            1  requeue one team-a ExceedsMaxQuota
            2  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
    check(
        &format!("settings no-scan-progress{world}"),
        &expect![[r#"
            1  requeue one team-a ExceedsMaxQuota
            2  requeue one team-a ExceedsMaxQuota
            3  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

/// `one` is skipped, so its scan progress is older than the last cycle when it is nominated again.
#[test]
fn scan_progress_is_valid_until_a_quota_changes() {
    let world = "
        cq team-a gpu/spot=4 gpu/h100=4 + cpu/plain=1
        wl one q=team-a t=1 gpu=1 + cpu=2
        cycle
        wl urgent q=team-a t=2 prio=9 cpu=9
        cycle
    ";
    check(
        &format!("{world} cq team-a within=lower gpu/spot=4 gpu/h100=4 + cpu/plain=1 \n cycle 2"),
        &expect![[r#"
            1  requeue one team-a ExceedsMaxQuota
            2  inadmissible-class urgent team-a ExceedsMaxQuota
            3  inadmissible-class urgent team-a ExceedsMaxQuota
            4  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
    check(
        &format!("{world} cq team-a gpu/spot=5 gpu/h100=4 + cpu/plain=1 \n cycle 2"),
        &expect![[r#"
            1  requeue one team-a ExceedsMaxQuota
            2  inadmissible-class urgent team-a ExceedsMaxQuota
            3  inadmissible-class urgent team-a ExceedsMaxQuota
            4  requeue one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn another_queue_restarts_the_scan() {
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
            1  requeue one team-a ExceedsMaxQuota
            2  requeue one team-b ExceedsMaxQuota
            3  inadmissible-class one team-b ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_scan_of_all_flavors_restarts() {
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
            2  requeue guest team-a Skipped
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

/// Three needs h100, where it has nominal quota, or spot, where it would borrow; meanwhile it reserves spot against
/// four.
#[test]
fn without_fungibility_the_borrowing_height_is_ignored() {
    let world = "
        cq team-a cohort=ml borrow-within-cohort gpu/spot=1 gpu/h100=2
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
            3  inadmissible-class three team-a NoCandidates
            3  reserve four team-b gpu=spot:1 (borrows, height 1)
        "#]],
    );
    check(
        &format!("settings no-fungibility{world}"),
        &expect![[r#"
            1  reserve one team-b gpu=spot:4
            2  reserve two team-b gpu=h100:2 (borrows, height 1)
            3  requeue three team-a NoCandidates
            3  requeue four team-b Skipped
        "#]],
    );
}

#[test]
fn a_pod_set_without_the_first_resource_restarts_its_scan() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 cpu=9
        cq team-a cpu/tas=9 gpu/tas=9 cpu/plain=9 gpu/plain=9
        wl one q=team-a cpu=1 required=rack group=g t=1 + pods=3 cpu=1 gpu=1 required=rack group=g
        cycle 3
        ",
        &expect![[r#"
            1  requeue one team-a TopologyPlacementFailed
            2  requeue one team-a TopologyPlacementFailed
            3  requeue one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn a_pod_set_with_the_first_resource_continues_its_scan() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 cpu=9
        cq team-a cpu/tas=9 gpu/tas=9 cpu/plain=9 gpu/plain=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=3 cpu=1 gpu=1 required=rack group=g
        cycle 3
        ",
        &expect![[r#"
            1  requeue one team-a TopologyPlacementFailed
            2  inadmissible-class one team-a NoMatchingFlavor
        "#]],
    );
}

/// The queue is stopped and resumed unchanged: flavors tried before are not tried again.
#[test]
fn scan_progress_survives_a_change_without_quotas() {
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
            2  requeue main team-a NoCandidates
            3  inadmissible-class other team-b ExceedsMaxQuota
            4  reserve main team-a cpu=x:4 gpu=a100:1
            4  inadmissible-class other team-b ExceedsMaxQuota
        "#]],
    );
}

/// A quota change, even in another queue of the cohort tree, ends the progress, except in the cycle directly after
/// it.
#[test]
fn scan_progress_ends_with_a_quota_change_in_the_cohort_tree() {
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
            2  requeue main team-a NoCandidates
            3  inadmissible-class other team-b ExceedsMaxQuota
            4  reserve main team-a cpu=x:4 gpu=h100:1
            4  inadmissible-class other team-b ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn scan_progress_beyond_the_remaining_flavors_is_dropped() {
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
            2  requeue main team-a NoCandidates
            3  requeue main team-a NoCandidates
            4  reserve main team-a cpu=x:4 gpu=h100:1
        "#]],
    );
}

#[test]
fn scan_progress_survives_a_cohort_that_is_observed_again() {
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
            cohort all
            wl other q=team-b cpu=9 t=3
            cycle
            finish guest
            cq team-a {quotas}
            cycle
            "
        ),
        &expect![[r#"
            1  reserve guest team-b cpu=x:4 (borrows, height 1)
            2  requeue main team-a NoCandidates
            3  inadmissible-class other team-b ExceedsMaxQuota
            4  reserve main team-a cpu=x:4 gpu=a100:1
            4  inadmissible-class other team-b ExceedsMaxQuota
        "#]],
    );
}
