//! Specs of any shape, and a recorded case in another way.

use appwrapper::settings::WrapperSettings;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::WrapperWorld;
use crate::{
    OperatorOutcome,
    odd_values::{odd_value, places},
    replay,
    tests::cases,
};

/// The official controller deletes components by kind and name.
#[test]
fn components_without_their_owner_are_deleted_as_recorded() {
    let mut cases = cases("appwrapper", "appwrapper").into_iter();
    let mut case = cases.find(|case| case["name"] == "appwrapper/job").expect("the case");
    let steps = case["steps"].as_array_mut().into_iter().flatten();
    for operation in steps.flat_map(|step| step["do"].as_array_mut().into_iter().flatten()) {
        if operation["op"] == "delete" {
            operation["propagation"] = json!("Orphan");
        }
    }
    assert_eq!(replay(&case).outcome, OperatorOutcome::Alike);
}

#[test]
fn a_component_without_a_name_fails_its_app_wrapper() {
    let mut wrapper = sample();
    wrapper["spec"]["components"][0]["template"]["metadata"] = json!({});
    let mut world = WrapperWorld::new(WrapperSettings::default(), 0);
    let _ = world.create(wrapper);
    world.begin();
    world.settle();
    assert_eq!(world.objects["AppWrapper/aw1"]["status"]["phase"], "Failed");
}

fn sample() -> Value {
    let pod = json!({
        "restartPolicy": "Never",
        "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    });
    json!({
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {
            "name": "aw1",
            "annotations": {"workload.codeflare.dev.appwrapper/retryPausePeriodDuration": "1s"},
        },
        "spec": {"components": [
            {
                "template": {
                    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j1"},
                    "spec": {"parallelism": 2, "template": {"spec": pod}},
                },
                "podSetInfos": [{
                    "labels": {"a": "b"}, "nodeSelector": {"c": "d"},
                    "tolerations": [{"key": "e"}], "schedulingGates": [{"name": "f"}],
                }],
            },
            {
                "template": {
                    "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                    "metadata": {"name": "s1"},
                    "spec": {"replicatedJobs": [
                        {"replicas": 2, "template": {"spec": {"template": {"spec": pod}}}},
                    ]},
                },
                "podSets": [
                    {"path": "template.spec.replicatedJobs[0].template.spec.template", "replicas": 2},
                ],
            },
        ]},
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_spec_makes_the_operator_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 0..4),
        suspend in any::<bool>(),
    ) {
        let mut wrapper = sample();
        for (index, value) in changes {
            let mut found = Vec::new();
            places(&wrapper["spec"], "/spec", &mut found);
            let place = wrapper.pointer_mut(index.get(&found[..]).as_str()).expect("a place");
            *place = value;
        }
        let mut world = WrapperWorld::new(WrapperSettings::default(), 0);
        let _ = world.create(wrapper);
        world.trigger();
        world.second();
        let spec = world.objects.get_mut("AppWrapper/aw1").map(|wrapper| &mut wrapper["spec"]);
        if let Some(Value::Object(spec)) = spec {
            spec.insert("suspend".to_owned(), suspend.into());
        }
        world.trigger();
        world.second();
        world.delete("AppWrapper/aw1", false);
        world.trigger();
        world.second();
    }
}
