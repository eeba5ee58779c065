//! The flavors that a reservation names beside the assigned ones.

use expect_test::expect;

use super::check::check;

#[test]
fn flavors_without_quota_and_those_that_do_not_suit_the_pods_are_named() {
    check(
        "
        messages
        flavor plain label=zone:a
        flavor tainted label=zone:b
        cq one gpu/plain=0 gpu/tainted=9
        wl small q=one gpu=2 t=1
        wl picky q=one gpu=2 on=zone:b t=2
        ",
        &expect![[r#"
            1  reserve small one gpu=tainted:2: main: plain(NoFit;insufficient quota for gpu in flavor plain, previously considered podsets requests (0) + current podset request (2) > maximum capacity (0))
            2  reserve picky one gpu=tainted:2: main: plain(NoFit;flavor plain doesn't match node affinity)
        "#]],
    );
}

#[test]
fn borrowing_is_named_and_a_flavor_that_simply_fits_is_not() {
    check(
        "
        messages
        cohort root
        cohort team parent=root cpu/plain=5
        cq a cohort=team within=lower reclaim=any cpu/plain=10 cpu/tainted=10
        cq b cohort=team cpu/plain=4
        wl first q=a cpu=9 t=1
        cycle
        wl borrows q=b cpu=6 t=2
        cycle
        wl more q=a cpu=4 + cpu=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve first a cpu=plain:9
            2  reserve borrows b cpu=plain:6 (borrows, height 1): main: plain(Fit;borrow=1)
            3  reserve more a cpu=plain:4 + cpu=tainted:5 (borrows, height 1): main: plain(Fit;borrow=1) | more-1: plain(preemptionMode=NoCandidates;borrow=2;insufficient unused quota for cpu in flavor plain, 5m more needed)
        "#]],
    );
}

#[test]
fn a_flavor_that_needs_preemption_is_named_with_its_mode() {
    check(
        "
        messages
        cq a within=lower cpu/plain=10 cpu/other=10
        wl low q=a prio=-1 cpu=9 t=1
        cycle
        wl high q=a prio=1 cpu=9 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low a cpu=plain:9
            2  reserve high a cpu=other:9: main: plain(preemptionMode=Preempt;insufficient unused quota for cpu in flavor plain, 8m more needed)
        "#]],
    );
}

#[test]
fn flavors_are_named_in_order_with_all_their_reasons() {
    check(
        "
        messages
        flavor zeta label=zone:b
        flavor alpha label=zone:b
        cq one cpu/zeta=0 cpu/alpha=0 cpu/wide=9 gpu/zeta=0 gpu/alpha=0 gpu/wide=9
        wl both q=one cpu=1 gpu=2 t=1
        ",
        &expect![[r#"
            1  reserve both one cpu=wide:1 gpu=wide:2: main: alpha(NoFit;insufficient quota for cpu in flavor alpha, previously considered podsets requests (0) + current podset request (1m) > maximum capacity (0);insufficient quota for gpu in flavor alpha, previously considered podsets requests (0) + current podset request (2) > maximum capacity (0)), zeta(NoFit;insufficient quota for cpu in flavor zeta, previously considered podsets requests (0) + current podset request (1m) > maximum capacity (0);insufficient quota for gpu in flavor zeta, previously considered podsets requests (0) + current podset request (2) > maximum capacity (0))
        "#]],
    );
}
