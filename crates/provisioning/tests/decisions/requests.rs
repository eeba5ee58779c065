//! Requests and templates: what is created, replaced and deleted.

use expect_test::expect;

use crate::fixture::check;

#[test]
fn templates_come_before_their_request() {
    check(
        "set main=3 gate=g used=old zone=a\nconfig",
        expect![[
            r#"create ppt-w-prov-1-main {"metadata":{},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}],"nodeSelector":{"pool":"spot","zone":"a"},"tolerations":[{"key":"spot"}]}}"#
        ]],
    );
    check(
        "set main=3\nconfig class=queued param=a:b\nnote priority=high\ntemplate 1 main of=workload",
        expect![[
            r#"create w-prov-1 {"parameters":{"a":"b","priority":"high"},"podSets":[{"count":3,"podTemplateRef":{"name":"ppt-w-prov-1-main"}}],"provisioningClassName":"queued"}"#
        ]],
    );
}

#[test]
fn a_request_takes_its_templates_over() {
    let fixture = "set main=3\nconfig\nrequest 1";
    check(
        &format!("{fixture}\ntemplate 1 main of=workload"),
        expect!["hand over ppt-w-prov-1-main to r1"],
    );
    check(&format!("{fixture}\ntemplate 1 main of=request"), expect!["nothing"]);
}

#[test]
fn a_template_of_a_former_request_is_replaced_and_a_foreign_one_reported() {
    check(
        "set main=3\nconfig\ntemplate 1 main of=former",
        expect!["delete template ppt-w-prov-1-main"],
    );
    check(
        "set main=3\nconfig\ntemplate 1 main of=user",
        expect![[
            r#"Pending "PodTemplate \"ppt-w-prov-1-main\" exists, and Workload \"w\" does not control it""#
        ]],
    );
}

#[test]
fn a_foreign_request_of_the_name_is_reported_and_left_alone() {
    check(
        "set main=3\nconfig\nrequest 1 foreign Provisioned",
        expect![[
            r#"Pending "ProvisioningRequest \"w-prov-1\" exists, and Workload \"w\" does not control it""#
        ]],
    );
}

#[test]
fn the_attempt_after_retries_has_the_next_number() {
    check(
        "set main=3\nconfig\ncheck Pending retries=2\ntemplate 3 main of=workload",
        expect![[
            r#"create w-prov-3 {"podSets":[{"count":3,"podTemplateRef":{"name":"ppt-w-prov-3-main"}}],"provisioningClassName":"queued"}"#
        ]],
    );
    check("set main=3\nconfig\ncheck Retry retries=2", expect!["nothing"]);
    check("set main=3\nconfig\ncheck Rejected", expect!["nothing"]);
    check("set main=3\nconfig\ncheck Ready", expect!["nothing"]);
}

#[test]
fn earlier_attempts_are_deleted() {
    check("set main=3\nconfig\nrequest 1 Failed\nrequest 2", expect!["delete w-prov-1"]);
    check("set main=3\nconfig\nrequest 9 Failed\nrequest 10", expect!["delete w-prov-9"]);
}

#[test]
fn a_request_that_does_not_match_the_config_is_replaced() {
    check("set main=3\nconfig class=other\nrequest 1", expect!["delete w-prov-1"]);
    check("set main=3\nconfig class=other\nrequest 1 deleting", expect!["nothing"]);
    check("set main=3\nconfig param=a:b\nrequest 1", expect!["delete w-prov-1"]);
    check("set main=3\nconfig param=a:b\nnote a=c\nrequest 1 param=a:c", expect!["nothing"]);
    check("set main=3\nconfig class=other\ncheck Ready\nrequest 1 Provisioned", expect!["nothing"]);
}

#[test]
fn only_pod_sets_with_a_managed_resource_and_pods_are_requested() {
    check(
        "
        set main=3
        set trainer=2 gpu admitted=1
        set idle=4 gpu admitted=0
        config managed=gpu
        template 1 trainer of=workload
        ",
        expect![[
            r#"create w-prov-1 {"podSets":[{"count":1,"podTemplateRef":{"name":"ppt-w-prov-1-trainer"}}],"provisioningClassName":"queued"}"#
        ]],
    );
}

#[test]
fn without_a_merge_policy_every_pod_set_has_an_entry() {
    check(
        "set main=3\nset b=2\nconfig\ntemplate 1 main of=workload\ntemplate 1 b of=workload",
        expect![[
            r#"create w-prov-1 {"podSets":[{"count":3,"podTemplateRef":{"name":"ppt-w-prov-1-main"}},{"count":2,"podTemplateRef":{"name":"ppt-w-prov-1-b"}}],"provisioningClassName":"queued"}"#
        ]],
    );
}

#[test]
fn identical_templates_share_an_entry() {
    check(
        "
        set main=3
        set same=2
        set labelled=1 label=x
        config merge=IdenticalPodTemplates
        template 1 main of=workload
        template 1 labelled of=workload
        ",
        expect![[
            r#"create w-prov-1 {"podSets":[{"count":5,"podTemplateRef":{"name":"ppt-w-prov-1-main"}},{"count":1,"podTemplateRef":{"name":"ppt-w-prov-1-labelled"}}],"provisioningClassName":"queued"}"#
        ]],
    );
}

#[test]
fn pods_with_the_same_requirements_share_an_entry() {
    check(
        "
        set main=3
        set labelled=2 label=x
        set elsewhere=1 zone=b
        config merge=IdenticalWorkloadSchedulingRequirements
        template 1 main of=workload
        template 1 elsewhere of=workload
        ",
        expect![[
            r#"create w-prov-1 {"podSets":[{"count":5,"podTemplateRef":{"name":"ppt-w-prov-1-main"}},{"count":1,"podTemplateRef":{"name":"ppt-w-prov-1-elsewhere"}}],"provisioningClassName":"queued"}"#
        ]],
    );
}

#[test]
fn pods_of_a_merged_entry_all_use_the_room() {
    check(
        "set main=3\nset same=2\nconfig merge=IdenticalPodTemplates\nrequest 1 Provisioned=done",
        expect![[r#"
            Ready "done"
              main: {"autoscaling.x-k8s.io/consume-provisioning-request":"w-prov-1","autoscaling.x-k8s.io/provisioning-class-name":"queued"} {}
              same: {"autoscaling.x-k8s.io/consume-provisioning-request":"w-prov-1","autoscaling.x-k8s.io/provisioning-class-name":"queued"} {}"#]],
    );
}

#[test]
fn what_keeps_a_template_from_being_made_is_reported() {
    check(
        "set main=3 flavor=gone\nconfig",
        expect![[r#"Pending "start Workload w: flavor gone is not there""#]],
    );
    check(
        "set main=3 pool=other\nconfig",
        expect![[
            r#"Pending "invalid admission check PodSetUpdate: conflict for nodeSelector: conflict for key=pool, value1=other, value2=spot""#
        ]],
    );
}
