//! Topology slices, and slice layers within them.

use expect_test::expect;

use super::check::check;

#[test]
fn the_last_slice_may_be_smaller() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=2
        node h3 rack=r3 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 slice=rack:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:2,r2/h2:2,r3/h3:1
        "#]],
    );
}

#[test]
fn a_smaller_last_slice_needs_capacity_for_a_whole_one() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=2
        node h3 rack=r3 gpu=1
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 slice=rack:2 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 3 slice(s)
        "#]],
    );
}

#[test]
fn inner_slices_stay_whole_too() {
    check(
        "
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=3
        node h2 hall=a rack=r2 gpu=3
        node h3 hall=b rack=r3 gpu=3
        node h4 hall=b rack=r4 gpu=1
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 slice=hall:4 slice=rack:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at a/r1/h1:2,a/r2/h2:2
        "#]],
    );
}

#[test]
fn three_layers_divide_one_another() {
    check(
        "
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=3
        node h2 hall=a rack=r1 gpu=3
        node h3 hall=a rack=r2 gpu=2
        node h4 hall=a rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 slice=hall:8 slice=rack:4 slice=node:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8 at a/r1/h1:2,a/r1/h2:2,a/r2/h3:2,a/r2/h4:2
        "#]],
    );
}

#[test]
fn a_slice_layer_must_be_below_the_one_before() {
    check(
        "
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=8
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 slice=rack:8 slice=hall:4 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: additional slice layer topology hall must be at a lower level than rack
        "#]],
    );
}

#[test]
fn a_layer_must_divide_the_one_before() {
    check(
        "
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=8
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 slice=hall:8 slice=rack:3 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: additional slice layer size 3 must evenly divide parent layer size 8
        "#]],
    );
}

#[test]
fn the_message_counts_the_slices_of_every_layer() {
    check(
        "
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=3
        node h2 hall=a rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 slice=hall:4 slice=rack:2 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "halls" doesn't allow to fit; 1/2 slice(s) fit on level hall; 2/4 slice(s) fit on level rack
        "#]],
    );
}

#[test]
fn slices_without_a_size_are_not_placed() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 slice=rack:0 t=1
        messages
        cycle
        explain one
        wl one q=team-a pods=1 gpu=1 slice=rack:0 group=g name=leader + pods=2 gpu=1 slice=rack:2 group=g t=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: slice topology requested, but slice size not provided
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but its topology cannot satisfy the request: slice topology requested, but slice size not provided
            2  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn slices_without_a_size_are_not_delayed() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        check nodes topology=after-checks
        cq team-a gpu/tas=9 check=nodes
        wl one q=team-a pods=2 gpu=1 slice=rack:0 t=1
        messages
        cycle
        explain one
        wl one q=team-a pods=1 gpu=1 slice=rack:0 group=g name=leader + pods=2 gpu=1 slice=rack:2 group=g t=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: slice topology requested, but slice size not provided
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, its topology is assigned when its admission checks are ready
            ?  slice topology requested, but slice size not provided
            2  reserve one team-a gpu=tas:1 + gpu=tas:2, needs nodes
        "#]],
    );
}
