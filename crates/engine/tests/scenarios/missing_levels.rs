//! A topology that was made again without a level that admitted Workloads request. Heads do not get its flavor; here are the
//! searches of Workloads that have it already.

use expect_test::expect;

use super::check::check;

#[test]
fn no_pod_moves_across_racks_once_racks_are_no_level() {
    let racks = "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 zone=z rack=r1 gpu=2
        node h2 zone=z rack=r1 gpu=2
        node h3 zone=z rack=r2 gpu=2
        cq team-a gpu/tas=9
    ";
    let fails = "
        cycle
        topology racks levels=zone,node
        node h1 zone=z rack=r1 gpu=2 down
        unhealthy one h1
        messages
        cycle
    ";
    let evicted = expect![[r#"
        1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
        2  evict one team-a NodesFailed: Workload was evicted as there was no replacement for unhealthy node(s): h1
    "#]];
    let one = "wl one q=team-a pods=4 gpu=1 required=rack t=1";
    check(&format!("{racks}{one}{fails}"), &evicted);
    check(
        &format!("settings no-fail-fast\n{racks}{one}{fails}"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  keep one team-a NodeNotReplaced: couldn't assign flavors to pod set main: no requested topology level: rack
        "#]],
    );
    let one = "wl one q=team-a pods=4 gpu=1 slice=rack:4 t=1";
    check(&format!("{racks}{one}{fails}"), &evicted);
    check(
        &format!("settings no-fail-fast\n{racks}{one}{fails}"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  keep one team-a NodeNotReplaced: couldn't assign flavors to pod set main: no requested topology level for slices: rack
        "#]],
    );
}

#[test]
fn a_second_pass_finds_no_domain_at_a_level_that_is_gone() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        check nodes topology=after-checks
        cq team-a gpu/tas=99 check=nodes
        wl one q=team-a pods=2 gpu=4 required=rack t=1
        wl two q=team-a pods=2 gpu=4 preferred=rack t=2
        cycle 2
        node h1 zone=z rack=r1 gpu=4
        node h2 zone=z rack=r2 gpu=4
        topology racks levels=zone,node
        wl one q=team-a pods=2 gpu=4 required=rack t=1 check=nodes:ready
        wl two q=team-a pods=2 gpu=4 preferred=rack t=2 check=nodes:ready
        second-pass
        wait 1
        second-pass
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8, needs nodes
            2  reserve two team-a gpu=tas:8, needs nodes
            =  no topology for one: no requested topology level: rack
            =  no topology for two: no requested topology level: rack
        "#]],
    );
}
