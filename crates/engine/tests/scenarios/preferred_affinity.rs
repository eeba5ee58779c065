//! Preferred node affinity: nodes with a higher score are used first. Gate TASRespectNodeAffinityPreferred.

use expect_test::expect;

use super::check::check;

#[test]
fn a_preferred_node_precedes_a_better_fit() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 unconstrained prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn without_the_gate_preferences_do_not_count() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 unconstrained prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn weights_of_all_terms_that_match_add_up() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 disk=ssd
        node h2 rack=r1 gpu=4 zone=a net=fast
        node h3 rack=r1 gpu=4 zone=b
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 unconstrained prefers=5:disk:ssd prefers=3:zone:a|b prefers=3:net:fast t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h2:1
        "#]],
    );
}

#[test]
fn a_preferred_term_matches_only_as_a_whole() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4 disk=ssd
        node h3 rack=r1 gpu=4 disk=ssd zone=a
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 unconstrained prefers=5:disk:ssd,zone:a t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h3:1
        "#]],
    );
}

#[test]
fn a_node_can_be_preferred_by_name() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 disk=ssd
        node h2 rack=r1 gpu=4
        node h3 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 unconstrained prefers=1:metadata.name:h2 t=1
        wl two q=team-a gpu=1 unconstrained prefers=1:metadata.name:h3,disk:ssd t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h2:1
            2  reserve two team-a gpu=tas:1 at r1/h3:1
        "#]],
    );
}

#[test]
fn an_empty_preferred_term_matches_nothing() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack prefers=9: t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r2/h3:1
        "#]],
    );
}

#[test]
fn a_rack_is_preferred_by_the_sum_of_its_nodes() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 disk=ssd
        node h2 rack=r2 gpu=4 net=fast
        node h3 rack=r2 gpu=4 net=fast
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack prefers=5:disk:ssd prefers=3:net:fast t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r2/h2:1
        "#]],
    );
}

#[test]
fn full_nodes_count_for_the_score_of_their_rack() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=3
        node h3 rack=r2 gpu=1 used/gpu=1 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r2/h2:2
        "#]],
    );
}

#[test]
fn excluded_nodes_have_no_score() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 arch=arm
        node h2 rack=r2 gpu=3 arch=arm
        node h3 rack=r2 gpu=3 arch=arm disk=ssd taint=spot:yes
        node h4 rack=r2 gpu=3 arch=x86 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack on=arch:arm prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn only_nodes_have_scores() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1:2
        "#]],
    );
}

#[test]
fn pods_beyond_the_preferred_node_go_to_another() {
    check(
        "
        settings preferred-affinity no-mixed-profile
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=2 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 unconstrained prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1/h1:1,r1/h2:2
        "#]],
    );
}

#[test]
fn a_preferred_level_is_left_if_the_preferred_domain_is_too_small() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 disk=ssd
        node h2 rack=r2 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 preferred=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1/h1:2,r2/h2:1
        "#]],
    );
}

#[test]
fn a_required_level_uses_the_next_domain_that_fits_all_pods() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 disk=ssd
        node h2 rack=r2 gpu=5
        node h3 rack=r3 gpu=5 disk=hdd
        node h4 rack=r4 gpu=4 disk=hdd
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 required=rack prefers=5:disk:ssd prefers=2:disk:hdd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r4/h4:3
        "#]],
    );
}

#[test]
fn a_required_level_that_does_not_fit_reports_the_preferred_domain() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 disk=ssd
        node h2 rack=r2 gpu=4
        cq team-a gpu/tas=9
        messages
        wl one q=team-a pods=5 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 5 pod(s)
        "#]],
    );
}

#[test]
fn of_equal_scores_the_smallest_domain_that_fits_is_used() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=1
        node h2 rack=r2 gpu=4 disk=ssd
        node h3 rack=r3 gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r3/h3:1
        "#]],
    );
}

#[test]
fn of_equal_scores_the_mixed_profile_uses_the_fullest_node() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=1
        node h2 rack=r2 gpu=4 disk=ssd
        node h3 rack=r3 gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 unconstrained prefers=5:disk:ssd t=1
        wl two q=team-a pods=6 gpu=1 unconstrained prefers=5:disk:ssd t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r3/h3:1
            2  reserve two team-a gpu=tas:6 at r2/h2:4,r3/h3:2
        "#]],
    );
}

#[test]
fn within_a_rack_preferred_nodes_come_first() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=1 disk=ssd
        node h3 rack=r1 gpu=2 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:1,r1/h2:1,r1/h3:2
        "#]],
    );
}

#[test]
fn slices_go_to_preferred_racks_first() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=5
        node h2 rack=r2 gpu=3 disk=ssd
        node h3 rack=r3 gpu=4
        cq team-a gpu/tas=12
        wl one q=team-a pods=6 gpu=1 slice=rack:2 prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r2/h2:2,r3/h3:4
        "#]],
    );
}

#[test]
fn leader_capacity_precedes_the_score() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 disk=ssd
        node h2 rack=r2 gpu=4 cpu=1
        cq team-a gpu/tas=9 cpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack group=g prefers=5:disk:ssd + cpu=1 required=rack group=g t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r2/h2:4 + cpu=tas:1 at r2/h2:1
        "#]],
    );
}

#[test]
fn the_score_comes_from_the_workers() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=5
        node h2 rack=r2 gpu=6 disk=ssd
        node h3 rack=r3 gpu=6 disk=hdd
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack group=g prefers=5:disk:ssd + gpu=1 required=rack group=g prefers=9:disk:hdd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r2/h2:4 + gpu=tas:1 at r2/h2:1
        "#]],
    );
}

#[test]
fn preferred_nodes_are_balanced_with_others() {
    check(
        "
        settings preferred-affinity balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=6
        node h2 rack=r1 gpu=2 disk=ssd
        node h3 rack=r1 gpu=2 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=node prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r1/h3:2
        "#]],
    );
}

#[test]
fn the_remainder_goes_to_the_preferred_node() {
    check(
        "
        settings preferred-affinity balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r1 gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=node prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:2,r1/h2:3
        "#]],
    );
}

#[test]
fn a_full_preferred_node_ends_balanced_placement() {
    check(
        "
        settings preferred-affinity balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        node h3 rack=r1 gpu=1 used/gpu=1 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=node prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:4,r1/h2:2
        "#]],
    );
}

#[test]
fn pods_of_a_failed_node_move_to_a_preferred_one() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 disk=ssd
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        cycle
        node h1 rack=r1 gpu=2 disk=ssd down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  replace-node one team-a gpu=tas:2 at r1/h3:2
        "#]],
    );
}

#[test]
fn pods_of_a_failed_node_stay_in_their_required_rack() {
    check(
        "
        settings preferred-affinity
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=3
        node h3 rack=r2 gpu=4 used/gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  replace-node one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}
