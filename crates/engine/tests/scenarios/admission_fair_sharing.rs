//! Admission fair sharing: within a queue, LocalQueues that used less come first.

use expect_test::expect;

use super::check::check;

#[test]
fn the_local_queue_with_less_usage_comes_first() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        lq two cq=team-a
        consumed one gpu=5
        consumed two gpu=4
        wl old q=one gpu=1 t=1 prio=9
        wl new q=two gpu=1 t=2
        show team-a
        cycle 2
        ",
        &expect![[r#"
            -  team-a uses nothing, pending new old
            1  reserve new team-a gpu=h100:1
            2  reserve old team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn without_the_mode_usage_does_not_matter() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5
        cq team-a gpu/h100=9
        lq one cq=team-a
        lq two cq=team-a
        consumed one gpu=5
        wl old q=one gpu=1 t=1
        wl new q=two gpu=1 t=2
        cycle 2
        cq team-a usage-based gpu/h100=9
        wl old-2 q=one gpu=1 t=1
        wl new-2 q=two gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:1
            2  reserve new team-a gpu=h100:1
            3  reserve new-2 team-a gpu=h100:1
            4  reserve old-2 team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_weight_divides_and_a_resource_weight_multiplies() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5 gpu=3 cpu=0.5
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a weight=2
        lq two cq=team-a
        lq none cq=team-a weight=0
        consumed one gpu=4 cpu=8
        consumed two gpu=2 cpu=5
        usage one two none
        wl first q=none gpu=1 t=1
        wl second q=two gpu=1 t=2
        wl third q=one gpu=1 t=3
        show team-a
        ",
        &expect![[r#"
            -  one consumed gpu=4 cpu=8, share 8000
            -  two consumed gpu=2 cpu=5, share 8500
            -  none consumed, share 9223372036854775807
            -  team-a uses nothing, pending third second first
            1  reserve third team-a gpu=h100:1
            2  reserve second team-a gpu=h100:1
            3  reserve first team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_reservation_counts_before_the_next_sample() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        lq two cq=team-a
        wl one-1 q=one gpu=2 t=1
        wl one-2 q=one gpu=2 t=2
        wl two-1 q=two gpu=1 t=3
        wl two-2 q=two gpu=1 t=4
        cycle
        usage one two
        cycle 3
        usage one two
        ",
        &expect![[r#"
            1  reserve one-1 team-a gpu=h100:2
            -  one consumed, share 1000
            -  two consumed, share 0
            2  reserve two-1 team-a gpu=h100:1
            3  reserve two-2 team-a gpu=h100:1
            4  reserve one-2 team-a gpu=h100:2
            -  one consumed, share 2000
            -  two consumed, share 1000
        "#]],
    );
}

#[test]
fn a_penalty_is_consumed_with_the_admission_and_dropped_with_the_quota() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        wl stays q=one gpu=4 t=1
        wl fails q=one gpu=2 t=2
        cycle 2
        usage one
        admitted stays
        usage one
        withdraw fails
        usage one
        admitted stays
        usage one
        ",
        &expect![[r#"
            1  reserve stays team-a gpu=h100:4
            2  reserve fails team-a gpu=h100:2
            -  one consumed, share 3000
            -  one consumed gpu=2, share 3000
            -  one consumed gpu=2, share 2000
            -  one consumed gpu=2, share 2000
        "#]],
    );
}

#[test]
fn a_penalty_outlives_a_change_of_its_reservation() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        wl shrinks q=one gpu=2 pods=2 t=1
        cycle
        reclaim shrinks 1
        usage one
        admitted shrinks
        usage one
        ",
        &expect![[r#"
            1  reserve shrinks team-a gpu=h100:4
            -  one consumed, share 2000
            -  one consumed gpu=2, share 2000
        "#]],
    );
}

/// A Workload is charged once per LocalQueue, however often it is evicted and admitted again.
#[test]
fn a_workload_that_returns_is_not_charged_again() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        lq two cq=team-a
        wl returns q=one gpu=4 t=1
        cycle
        admitted returns
        evict returns
        release returns t=2
        cycle
        admitted returns
        usage one
        evict returns
        release returns t=3
        wl returns q=two gpu=4 t=3
        cycle
        admitted returns
        usage one two
        evict returns
        release returns t=4
        wl returns q=one gpu=4 t=4
        cycle
        admitted returns
        usage one two
        ",
        &expect![[r#"
            1  reserve returns team-a gpu=h100:4
            2  reserve returns team-a gpu=h100:4
            -  one consumed gpu=2, share 2000
            3  reserve returns team-a gpu=h100:4
            -  one consumed gpu=2, share 2000
            -  two consumed gpu=2, share 2000
            4  reserve returns team-a gpu=h100:4
            -  one consumed gpu=4, share 4000
            -  two consumed gpu=2, share 2000
        "#]],
    );
}

#[test]
fn another_object_and_another_local_queue_of_the_name_are_charged() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        wl again q=one gpu=4 t=1
        cycle
        admitted again
        evict again
        release again t=2
        wl again q=one gpu=4 t=2 uid=other
        cycle
        admitted again
        usage one
        delete lq one
        lq one cq=team-a
        evict again
        release again t=3
        cycle
        admitted again
        usage one
        ",
        &expect![[r#"
            1  reserve again team-a gpu=h100:4
            2  reserve again team-a gpu=h100:4
            -  one consumed gpu=4, share 4000
            3  reserve again team-a gpu=h100:4
            -  one consumed gpu=2, share 2000
        "#]],
    );
}

#[test]
fn past_usage_decays_and_present_usage_is_added() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5
        cq team-a usage-based gpu/h100=1000
        lq one cq=team-a
        lq two cq=team-a
        sample
        consumed one gpu=800
        wl runs q=two gpu=800 t=1
        cycle
        admitted runs
        wait 4
        sample
        usage one two
        wait 6
        sample
        usage one two
        wait 10
        sample
        usage one two
        finish runs
        wait 10
        sample
        usage one two
        ",
        &expect![[r#"
            1  reserve runs team-a gpu=h100:800
            -  one consumed gpu=800, share 800000
            -  two consumed gpu=234, share 234314
            -  one consumed gpu=399, share 399999
            -  two consumed gpu=517, share 517157
            -  one consumed gpu=199, share 199999
            -  two consumed gpu=658, share 658578
            -  one consumed gpu=99, share 99999
            -  two consumed gpu=329, share 329289
        "#]],
    );
}

#[test]
fn a_local_queue_begins_with_what_it_uses() {
    check(
        "
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        lq two cq=team-a
        wl runs q=one gpu=4 t=1
        cycle
        admission-fair-sharing half-life=10 interval=5
        sample
        usage one two
        wl old q=one gpu=1 t=2
        wl new q=two gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve runs team-a gpu=h100:4
            -  one consumed gpu=4, share 4000
            -  two consumed, share 0
            2  reserve new team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn quota_reserved_for_checks_is_not_consumed() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5
        check one
        cq team-a usage-based gpu/h100=1000 check=one
        lq one cq=team-a
        sample
        wl waits q=one gpu=800 t=1
        cycle
        wait 10
        sample
        usage one
        wl waits q=one gpu=800 t=1 check=one:ready
        admitted waits
        wait 10
        sample
        usage one
        ",
        &expect![[r#"
            1  reserve waits team-a gpu=h100:800, needs one
            -  one consumed, share 234314
            -  one consumed gpu=517, share 517157
        "#]],
    );
}

#[test]
fn usage_precedes_a_preempting_head() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5
        cq team-a usage-based within=lower gpu/h100=2
        lq one cq=team-a
        lq two cq=team-a
        wl victim q=two gpu=2 t=1
        cycle
        wl sticky q=one gpu=2 prio=5 t=2
        cycle
        wl less q=two gpu=1 t=3
        consumed one gpu=9
        show team-a
        cycle
        ",
        &expect![[r#"
            1  reserve victim team-a gpu=h100:2
            2  preempt for sticky team-a: victim InClusterQueue
            -  team-a uses gpu/h100=2, reserving victim, pending less sticky
            3  inadmissible-class less team-a NoCandidates
        "#]],
    );
}

/// Kueue#14231: the head is newer than the victim, and a Workload of its equivalence class is older.
#[test]
fn an_older_workload_of_a_refused_class_is_evaluated() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5
        cq team-a usage-based within=newer gpu/h100=1
        lq low cq=team-a
        lq high cq=team-a
        wl victim q=low gpu=1 t=2
        cycle
        consumed high gpu=9
        wl older q=high gpu=1 t=1
        wl newer-1 q=low gpu=1 t=3
        wl newer-2 q=low gpu=1 t=4
        wl newer-3 q=low gpu=1 t=5
        cycle 2
        show team-a
        ",
        &expect![[r#"
            1  reserve victim team-a gpu=h100:1
            2  inadmissible-class newer-1 team-a NoCandidates
            3  preempt for older team-a: victim InClusterQueue
            -  team-a uses gpu/h100=1, reserving victim, pending older, inadmissible newer-1 newer-2 newer-3
        "#]],
    );
}

#[test]
fn the_local_queue_with_more_usage_is_preempted_first() {
    check(
        "
        admission-fair-sharing half-life=10 interval=5
        cq team-a usage-based within=lower gpu/h100=2
        lq one cq=team-a
        lq two cq=team-a
        wl old q=one gpu=1 t=1
        wl new q=two gpu=1 t=2
        cycle 2
        consumed one gpu=9
        wl urgent q=two gpu=1 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:1
            2  reserve new team-a gpu=h100:1
            3  preempt for urgent team-a: old InClusterQueue
        "#]],
    );
}

#[test]
fn without_a_half_life_past_usage_is_dropped() {
    check(
        "
        admission-fair-sharing interval=5
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        lq two cq=team-a
        consumed one gpu=5
        wl old q=one gpu=1 t=1
        wl new q=two gpu=1 t=2
        wait 5
        sample
        cycle 2
        usage one two
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:1
            2  reserve new team-a gpu=h100:1
            -  one consumed, share 0
            -  two consumed, share 0
        "#]],
    );
}

#[test]
fn a_workload_that_returns_with_more_pods_is_charged_again() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        wl grows q=one gpu=2 t=1
        cycle
        admitted grows
        evict grows
        release grows t=2
        wl grows q=one gpu=2 pods=4 t=2
        cycle
        admitted grows
        usage one
        evict grows
        release grows t=3
        wl grows q=one gpu=2 pods=3 t=3
        cycle
        admitted grows
        usage one
        ",
        &expect![[r#"
            1  reserve grows team-a gpu=h100:2
            2  reserve grows team-a gpu=h100:8
            -  one consumed gpu=5, share 5000
            3  reserve grows team-a gpu=h100:6
            -  one consumed gpu=5, share 5000
        "#]],
    );
}

/// It was admitted with one pod of four before.
#[test]
fn a_partial_admission_settles_no_more_than_it_got() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=2
        lq one cq=team-a
        wl gang q=one gpu=2 pods=4 min=1 t=1
        cycle
        admitted gang
        evict gang
        release gang t=2
        cq team-a usage-based gpu/h100=9
        cycle
        admitted gang
        usage one
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=h100:2
            2  reserve gang team-a gpu=h100:8
            -  one consumed gpu=5, share 5000
        "#]],
    );
}

#[test]
fn a_workload_that_was_deactivated_is_charged_again() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        wl first q=one gpu=2 t=1
        wl second q=one gpu=2 t=2
        cycle 2
        admitted first
        admitted second
        evict first
        release first t=3 hold=out
        wl first q=one gpu=2 t=3
        evict second
        release second t=4
        wl second q=one gpu=2 t=4 hold=out
        wl second q=one gpu=2 t=4
        cycle 2
        admitted first
        admitted second
        usage one
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:2
            2  reserve second team-a gpu=h100:2
            3  reserve first team-a gpu=h100:2
            4  reserve second team-a gpu=h100:2
            -  one consumed gpu=4, share 4000
        "#]],
    );
}

/// It takes over the reservation of the first one, which is charged once.
#[test]
fn another_object_with_a_reservation_is_charged_once() {
    check(
        "
        admission-fair-sharing half-life=10 interval=10
        cq team-a usage-based gpu/h100=9
        lq one cq=team-a
        wl again q=one gpu=4 t=1
        cycle
        wl again q=one gpu=4 t=1 uid=other
        admitted again
        evict again
        release again t=2
        wl again q=one gpu=4 t=2 uid=other
        cycle
        admitted again
        usage one
        ",
        &expect![[r#"
            1  reserve again team-a gpu=h100:4
            2  reserve again team-a gpu=h100:4
            -  one consumed gpu=2, share 2000
        "#]],
    );
}
