//! Specs of any shape.

use appwrapper::settings::WrapperSettings;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::WrapperWorld;
use crate::odd_values::{odd_value, places};

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
