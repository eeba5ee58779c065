//! What the conditions of a request mean for its check.

use expect_test::expect;

use crate::fixture::check;

#[test]
fn without_a_config_the_check_waits_and_its_requests_are_deleted() {
    check(
        "set main=3\nrequest 1 Failed=x\nrequest 2\nrequest 3 deleting\nrequest 4 foreign",
        expect![[r#"
            Pending "the check is not active"
            delete w-prov-1
            delete w-prov-2"#]],
    );
    check("set main=3\ncheck Ready\nrequest 1 Provisioned", expect!["nothing"]);
}

#[test]
fn a_workload_that_uses_no_managed_resource_is_ready() {
    let fixture = "set main=3\nconfig managed=gpu";
    check(fixture, expect![[r#"Ready "the provisioning request is not needed""#]]);
    check(&format!("{fixture}\ncheck Ready"), expect!["nothing"]);
    check(
        "set main=3 admitted=0\nconfig",
        expect![[r#"Ready "the provisioning request is not needed""#]],
    );
    check("set main=0\nconfig", expect![[r#"Ready "the provisioning request is not needed""#]]);
}

#[test]
fn a_request_that_is_not_needed_any_more_is_deleted() {
    check(
        "set main=3\nconfig managed=gpu\nrequest 1",
        expect![[r#"
            Ready "the provisioning request is not needed"
            delete w-prov-1"#]],
    );
}

#[test]
fn a_request_without_an_answer_leaves_the_check_pending() {
    let fixture = "set main=3\nconfig\nrequest 1";
    check(fixture, expect!["nothing"]);
    check(
        &format!("{fixture}\ncheck Pending retries=1 message=earlier"),
        expect![[r#"Pending """#]],
    );
}

#[test]
fn an_accepted_request_says_when_room_is_expected() {
    check("set main=3\nconfig\nrequest 1 Accepted", expect!["nothing"]);
    check(
        "set main=3\nconfig\nrequest 1 Accepted !Provisioned=in_ten_minutes",
        expect![[r#"Pending "in ten minutes""#]],
    );
}

#[test]
fn a_provisioned_request_is_ready_and_its_pods_use_the_room() {
    check(
        "
        set main=3
        config class=queued select=zone:Zone
        request 1 Accepted Provisioned=done detail=Zone:a
        ",
        expect![[r#"
            Ready "done"
              main: {"autoscaling.x-k8s.io/consume-provisioning-request":"w-prov-1","autoscaling.x-k8s.io/provisioning-class-name":"queued"} {"zone":"a"}"#]],
    );
}

#[test]
fn details_that_are_missing_or_no_label_value_are_reported() {
    check(
        "
        set main=1
        config select=zone:Zone select=rack:Rack
        request 1 Provisioned=done detail=Zone:not/a/label/value
        ",
        expect![[r#"
            Ready "done; detail \"Zone\" of the class is no label value; the class has no detail \"Rack\""
              main: {"autoscaling.x-k8s.io/consume-provisioning-request":"w-prov-1","autoscaling.x-k8s.io/provisioning-class-name":"queued"} {}"#]],
    );
}

#[test]
fn updates_of_a_ready_check_do_not_change() {
    check(
        "set main=3\nconfig select=zone:Zone\ncheck Ready\nrequest 1 Provisioned detail=Zone:b",
        expect!["nothing"],
    );
}

#[test]
fn a_failed_request_is_retried_after_a_backoff() {
    check(
        "set main=3\nconfig base=10 max=15\nrequest 1 Accepted Failed=no_room",
        expect![[r#"Retry "Retrying after failure: no room" again in 10 s"#]],
    );
    check(
        "set main=3\nconfig base=10 max=15\ncheck Pending retries=1\nrequest 2 Failed=no_room",
        expect![[r#"Retry "Retrying after failure: no room" again in 15 s"#]],
    );
}

#[test]
fn the_last_attempt_rejects_the_workload() {
    check(
        "set main=3\nconfig limit=1\ncheck Pending retries=1\nrequest 2 Failed=no_room",
        expect![[r#"Rejected "no room""#]],
    );
    check(
        "set main=3\nconfig limit=0\nrequest 1 BookingExpired=late",
        expect![[r#"Rejected "late""#]],
    );
    check(
        "set main=3\nconfig limit=0\ncheck Rejected message=late\nrequest 1 BookingExpired=late",
        expect!["nothing"],
    );
}

#[test]
fn a_booking_expires_before_the_admission_only() {
    let fixture = "set main=3\nconfig\ncheck Ready\nrequest 1 Provisioned BookingExpired=late";
    check(fixture, expect![[r#"Retry "Retrying after booking expired: late" again in 60 s"#]]);
    check(&format!("{fixture}\nis Admitted"), expect!["nothing"]);
}

#[test]
fn revoked_capacity_rejects_an_active_workload_even_after_its_admission() {
    let fixture = "set main=3\nconfig\ncheck Ready\nis Admitted\nrequest 1 Provisioned CapacityRevoked=gone BookingExpired=late";
    check(fixture, expect![[r#"Rejected "gone""#]]);
    check(&format!("{fixture}\nis inactive"), expect!["nothing"]);
    check(
        "set main=3\nconfig\nrequest 1 CapacityRevoked=gone Failed=no_room",
        expect![[r#"Retry "Retrying after failure: no room" again in 60 s"#]],
    );
}

#[test]
fn a_failed_request_that_outlived_its_eviction_counts_once() {
    check(
        "set main=1\nconfig\ncheck Pending retries=1\nrequest 1 Failed=no_room\ntemplate 2 main of=workload",
        expect![[r#"
            Pending "Retrying after failure: no room"
            create w-prov-2 {"podSets":[{"count":1,"podTemplateRef":{"name":"ppt-w-prov-2-main"}}],"provisioningClassName":"queued"}"#]],
    );
}
