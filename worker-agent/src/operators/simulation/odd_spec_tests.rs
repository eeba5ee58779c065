//! Specs and statuses of any shape: no pass panics, and writes come to an end.

use std::{cell::Cell, panic, sync::Once};

use appwrapper::{settings::WrapperSettings, webhook::WrapperRequester};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::{faults::Disturbance, run::SimulatedRun, scenario::OperatedObject};

/// The most writes beside pods in a minute and a half, with a suspension, a return and a deletion.
const MOST_WRITES: usize = 100;

thread_local! {
    static N_PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Counts panics of this thread, on which all tasks of a run are. The loop survives a pass that panics.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let former = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            N_PANICS.set(N_PANICS.get() + 1);
            former(info);
        }));
    });
    N_PANICS.set(0);
}

/// Every place of a value, as JSON pointers.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            places(value, &format!("{path}/{}", name.replace('/', "~1")), found);
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, item)| places(item, &format!("{path}/{index}"), found)),
        _ => {}
    }
}

/// A value that no field expects.
fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(-1), Just(0), Just(i64::from(i32::MAX)), Just(i64::MAX), Just(i64::MIN)]
            .prop_map(Value::from),
        Just(json!(1.5e300)),
        "[a-zä/=: ]{0,4}".prop_map(Value::from),
        Just(json!("9e99")),
        Just(json!("x".repeat(70))),
        Just(json!([])),
        Just(json!([null, {}, 3, []])),
        Just(json!({})),
        Just(json!({"name": 3, "spec": [], "metadata": "m"})),
    ]
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

/// Puts values into a part of an object. A place that is gone with an earlier change is passed over.
fn spoil(object: &mut Value, part: &str, changes: &[(prop::sample::Index, Value)]) {
    for (index, value) in changes {
        let mut found = Vec::new();
        places(&object[part], &format!("/{part}"), &mut found);
        if let Some(place) = object.pointer_mut(index.get(&found).as_str()) {
            *place = value.clone();
        }
    }
}

/// A change of an object.
type Spoils<'a> = &'a dyn Fn(&mut Value);

/// Makes an object with a spec that is spoiled at once or while it runs, suspends it, lets it return and deletes it.
async fn live(
    object: OperatedObject,
    spoil_spec: Spoils<'_>,
    spoil_status: Spoils<'_>,
    late: bool,
) {
    let world = object.world(None);
    if !late {
        let mut world = world.lock();
        let id = world.parent.clone();
        world.api.change(&id, spoil_spec);
    }
    let mut run = SimulatedRun::start(world);
    run.run_for(15).await;
    {
        let mut world = run.world.lock();
        let id = world.parent.clone();
        world.api.change(&id, |parent| {
            spoil_status(parent);
            if late {
                spoil_spec(parent);
            }
        });
    }
    run.run_for(15).await;
    run.suspend_any(true);
    run.run_for(15).await;
    run.suspend_any(false);
    run.run_for(15).await;
    run.world.lock().disturb(Disturbance::Delete);
    run.run_for(30).await;
    let world = run.world.lock();
    assert_eq!(N_PANICS.get(), 0, "a pass panicked");
    assert!(world.api.violations.is_empty(), "{:?}", world.api.violations);
    let of_pods = |line: &&String| line.contains(" Pod ");
    let writes: Vec<&String> = world.lines.iter().filter(|line| !of_pods(line)).collect();
    assert!(writes.len() <= MOST_WRITES, "{} writes: {writes:#?}", writes.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn odd_objects_end_no_pass_and_no_loop(
        object in prop::sample::select(OperatedObject::ALL.to_vec()),
        of_spec in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 0..4),
        of_status in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 0..3),
        late in any::<bool>(),
    ) {
        count_panics();
        let spoil_spec = |parent: &mut Value| spoil(parent, "spec", &of_spec);
        let spoil_status = |parent: &mut Value| spoil(parent, "status", &of_status);
        runtime().block_on(live(object, &spoil_spec, &spoil_status, late));
    }

    /// Webhooks see objects before the API server has checked their types.
    #[test]
    fn odd_objects_end_no_webhook(
        object in prop::sample::select(OperatedObject::ALL.to_vec()),
        of_spec in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 0..4),
        of_metadata in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 0..3),
        odd in odd_value(),
    ) {
        let old = object.object();
        let mut new = old.clone();
        spoil(&mut new, "spec", &of_spec);
        spoil(&mut new, "metadata", &of_metadata);
        for one in [&new, &odd] {
            for other in [&old, &new, &odd] {
                review(one, other);
            }
        }
    }
}

/// A count may be as large as its type.
#[test]
fn counts_of_any_size_end_no_pass() {
    count_panics();
    for object in OperatedObject::ALL {
        let whole = object.object();
        let mut found = Vec::new();
        places(&whole["spec"], "/spec", &mut found);
        for place in found.iter().filter(|it| whole.pointer(it).is_some_and(Value::is_number)) {
            for most in [json!(i32::MAX), json!(i64::MAX)] {
                let set = |parent: &mut Value| {
                    if let Some(count) = parent.pointer_mut(place) {
                        *count = most.clone();
                    }
                };
                runtime().block_on(live(object, &set, &|_| {}, false));
            }
        }
    }
}

/// Asks all webhooks that change no pods of RayClusters.
fn review(new: &Value, old: &Value) {
    let (requester, settings) = (WrapperRequester::default(), WrapperSettings::default());
    let _ = ray::webhook::validate(new);
    let _ = appwrapper::webhook::validate_create(new, &requester, &settings);
    let _ = appwrapper::webhook::validate_update(new, old);
    // The API server refuses what is no object before any webhook.
    if new.is_object() {
        appwrapper::webhook::default(&mut new.clone(), &requester, &settings);
    }
}
