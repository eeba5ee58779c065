//! The mutation of any object.

use proptest::{prelude::*, test_runner::Config};
use ray::security::{mutate, validate};
use serde_json::{Value, json};

use crate::fixture::{config, ray_cluster};

/// JSON of any shape, with names that the mutation meets.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("name"),
        Just("env"),
        Just("volumes"),
        Just("containers"),
        Just("initContainers"),
        Just("volumeMounts"),
        Just("serviceAccountName"),
        Just("x"),
    ];
    let text = prop_oneof![
        Just("create-cert"),
        Just("ca-vol"),
        Just("oauth-proxy"),
        Just("RAY_USE_TLS"),
        Just(""),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let fields = prop::collection::vec((key.clone(), inner.clone()), 0..4);
        let object = fields.prop_map(|fields| {
            fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()
        });
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::from), object]
    })
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_second_mutation_changes_nothing(
        head in any_json(),
        groups in any_json(),
        metadata in any_json(),
        (oauth, mtls) in any::<(bool, bool)>(),
    ) {
        let (config, mut cluster) = (config(oauth, mtls), ray_cluster());
        cluster["spec"]["headGroupSpec"]["template"]["spec"] = head;
        cluster["spec"]["workerGroupSpecs"] = match groups {
            Value::Array(all) => {
                all.into_iter().map(|spec| json!({"template": {"spec": spec}})).collect()
            }
            other => other,
        };
        cluster["metadata"]["annotations"] = metadata;
        mutate(&mut cluster, None, &config);
        let once = cluster.clone();
        mutate(&mut cluster, None, &config);
        prop_assert_eq!(&cluster, &once);
        mutate(&mut cluster, Some(&once), &config);
        prop_assert_eq!(&cluster, &once);
        let errors = validate(&once, Some(&once), &config);
        let unmade = |error: &&crds::validation::FieldError| !error.to_string().contains("RAY_TLS");
        // A pod without containers has no variables; the operator refuses it.
        prop_assert_eq!(errors.iter().filter(unmade).count(), 0);
    }

    #[test]
    fn no_object_makes_the_mutation_panic(mut object in any_json(), (oauth, mtls) in any::<(bool, bool)>()) {
        let config = config(oauth, mtls);
        mutate(&mut object, None, &config);
        let old = object.clone();
        mutate(&mut object, Some(&old), &config);
        let _ = validate(&object, None, &config);
        let _ = validate(&object, Some(&Value::Null), &config);
    }
}
