//! Kinds with pods that are one group with one Workload: StatefulSet (docs/reference/kueue.md §5.3, §7.8).
//!
//! The object makes the Workload ([`crate::replicas`]) and puts its pods into the group. The Workload has a fixed number of pods,
//! so that a queued object is scaled to zero and from there.

use crds::{
    names::{
        annotations::{
            POD_GROUP_FAST_ADMISSION, POD_GROUP_POD_INDEX_LABEL, POD_GROUP_SERVING,
            POD_SUSPENDING_PARENT,
        },
        labels::PRIORITY_CLASS,
    },
    validation::{Errors, FieldError, immutable},
};
use serde_json::Value;

use super::{
    declared_pod_set::{DeclaredPodSet, IndexLabels, decode_template},
    fields::{GroupedPods, MarkedPods},
    marked_pods::is_marked,
};
use crate::{
    GenericJob, JobGates, Kind, Pod, dispatch::set_copies, generic_job::SetSize,
    pods::template_shape, pointer::Pointer, replicas::membership::Membership,
};

/// Role of all pods, and name of their pod set.
const MAIN: &str = "main";

/// What a group has of its object.
pub(super) struct GroupOwner<'a> {
    /// The name of the group, and of its Workload.
    pub(super) workload: &'a dyn Fn() -> String,
    pub(super) queue_name: &'a str,
    pub(super) priority_class: Option<&'a str>,
}

fn grouped(kind: &Kind) -> Option<(&MarkedPods, &GroupedPods)> {
    let pods = kind.pods()?;
    Some((pods, pods.group.as_ref()?))
}

/// The size of the group.
pub(super) fn size(kind: &Kind, object: &Value) -> Option<SetSize> {
    let (_, group) = grouped(kind)?;
    Some(SetSize::Group { pods: number(&group.replicas, object).unwrap_or(1) })
}

/// The pod set of the group.
///
/// # Errors
/// If the pod template does not decode.
pub(super) fn pod_set(kind: &Kind, object: &Value) -> Result<Option<DeclaredPodSet>, String> {
    let Some((pods, group)) = grouped(kind) else {
        return Ok(None);
    };
    let replicas = number(&group.replicas, object).unwrap_or(1);
    Ok(Some(DeclaredPodSet {
        name: MAIN.to_owned(),
        at: pods.template.clone(),
        path: pods.template.field_path(),
        template: decode_template(pods.template_of(object), &pods.template)?,
        base: None,
        replicas: i32::try_from(replicas).unwrap_or(i32::MAX),
        pods_per_replica: 1,
        written: None,
        called: None,
        n_groups: None,
        index_labels: IndexLabels { pod: Some(group.index.clone()), replica: None },
    }))
}

/// Gates the pods of the template.
pub(super) fn hold_pods(kind: &Kind, object: &mut Value) {
    let Some((pods, _)) = grouped(kind) else {
        return;
    };
    if let Some(mut template) = pods.template.get(object).cloned() {
        set_copies::hold_pods(&mut template);
        pods.template.set(object, template);
    }
}

/// A pod as a member of the group; `None` if it is that already, or the object does not hold it.
pub(super) fn as_member(
    kind: &Kind,
    object: &Value,
    owner: &GroupOwner<'_>,
    pod: &Pod,
    gates: JobGates,
) -> Option<Pod> {
    let SetSize::Group { pods: total @ 1.. } = size(kind, object)? else {
        return None;
    };
    let held = pod.annotation(POD_SUSPENDING_PARENT) == Some(kind.framework());
    if !held || pod.is_deleting() || pod.is_terminated() {
        return None;
    }
    let (_, group) = grouped(kind)?;
    let membership = Membership {
        workload: (owner.workload)(),
        total: i64::from(total),
        role: MAIN,
        queue_name: owner.queue_name,
    };
    let mut member = membership.of(pod, gates);
    let own = [
        (POD_GROUP_FAST_ADMISSION, "true"),
        (POD_GROUP_SERVING, "true"),
        (POD_GROUP_POD_INDEX_LABEL, &group.index),
    ];
    let annotations = member.metadata.annotations.get_or_insert_default();
    annotations.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
    // A member keeps the class that the object had when the pod joined.
    if pod.group(gates).name.is_empty()
        && let Some(class) = owner.priority_class
    {
        let labels = member.metadata.labels.get_or_insert_default();
        labels.insert(PRIORITY_CLASS.to_owned(), class.to_owned());
    }
    (member != *pod).then_some(member)
}

/// Errors about a change of what the Workload was made from.
pub(super) fn check_change(kind: &Kind, new: &Value, old: &Value) -> Errors {
    let Some((pods, group)) = grouped(kind) else {
        return Errors::new();
    };
    // Without the mark its pods are in no group: it is not managed, or its owner, which sizes it, is.
    if !is_marked(kind, pods, old) {
        return Errors::new();
    }
    let mut errors: Errors = check_replicas(group, new, old).into_iter().collect();
    let [now, before] = [new, old].map(|one| {
        let template = decode_template(pods.template_of(one), &pods.template);
        template.unwrap_or_default().spec.unwrap_or_default()
    });
    let at = format!("{}.spec", pods.template.field_path());
    errors.extend(template_shape::changes(&at, &now, &before));
    errors
}

fn check_replicas(group: &GroupedPods, new: &Value, old: &Value) -> Option<FieldError> {
    let at = group.replicas.field_path();
    let [now, before] = [new, old].map(|one| number(&group.replicas, one).unwrap_or(1));
    // Zero is allowed from every size: the Workload goes on hold.
    if now == before || now == 0 {
        return None;
    }
    if before > 0 {
        return Some(immutable(at, now));
    }
    // The pods of the former size are members of the group.
    let remain = number(&group.present, old).unwrap_or(0) > 0;
    remain.then(|| FieldError::forbidden(at, "scaling down is still in progress"))
}

fn number(at: &Pointer, object: &Value) -> Option<u32> {
    let number = at.number(object)?;
    Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{JobObject, Kind, kind::KindError, validate};

    const CELL: &str = "
framework: example.com/cell
group: example.com
version: v1
kind: Cell
plural: cells
pods:
  template: /spec/pod
  ready: /status/ready
  group: { replicas: /spec/size, present: /status/size, label: example.com/cell, index: example.com/index }
";

    fn cell(queue: &str, size: Option<u32>, remaining: u32, pod: &Value) -> JobObject {
        let labels = if queue.is_empty() {
            json!({})
        } else {
            json!({ "kueue.x-k8s.io/queue-name": queue })
        };
        let mut object = json!({
            "metadata": { "name": "c", "labels": labels },
            "spec": { "pod": { "spec": pod } }, "status": { "size": remaining },
        });
        if !queue.is_empty() {
            let parent = json!({ POD_SUSPENDING_PARENT: "example.com/cell" });
            object["spec"]["pod"]["metadata"] = json!({ "annotations": parent });
        }
        if let Some(size) = size {
            object["spec"]["size"] = json!(size);
        }
        Kind::parse(CELL).expect("a kind").decode(object).expect("it decodes")
    }

    fn errors(new: &JobObject, old: &JobObject) -> Vec<String> {
        let errors = validate::update(new, old, false, JobGates::default());
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_number_of_pods_changes_to_zero_and_from_there() {
        let pod = json!({});
        let sizes = |queue: &str, before: Option<u32>, now: Option<u32>, remaining: u32| {
            errors(&cell(queue, now, 0, &pod), &cell(queue, before, remaining, &pod))
        };
        let immutable = ["spec.size: Invalid value: 3: field is immutable"];
        assert_eq!(sizes("q", Some(2), Some(3), 2), immutable);
        assert_eq!(sizes("q", None, Some(3), 1), immutable);
        assert_eq!(sizes("q", Some(2), Some(0), 2), [""; 0]);
        assert_eq!(sizes("q", Some(1), None, 1), [""; 0]);
        assert_eq!(sizes("q", Some(0), Some(3), 0), [""; 0]);
        let down = ["spec.size: Forbidden: scaling down is still in progress"];
        assert_eq!(sizes("q", Some(0), Some(3), 1), down);
        assert_eq!(sizes("", Some(2), Some(3), 2), [""; 0], "it is not queued");
    }

    #[test]
    fn an_object_that_is_not_marked_changes_freely() {
        let queued = |size: u32| {
            let mut object = cell("", Some(size), size, &json!({})).to_create();
            object["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "q" });
            let kind = Kind::parse(CELL).expect("a kind");
            kind.decode(object).expect("it decodes")
        };
        assert_eq!(errors(&queued(3), &queued(2)), [""; 0], "a managed owner scales it");
    }

    #[test]
    fn a_changed_container_is_named_alone() {
        let pod = |cpus: &[&str]| {
            let container =
                |cpu| json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } });
            json!({ "containers": cpus.iter().map(container).collect::<Vec<_>>() })
        };
        let update = |cpus: &[&str], image: &str| {
            let mut new = pod(cpus);
            new["containers"][0]["image"] = json!(image);
            errors(&cell("q", None, 1, &new), &cell("q", None, 1, &pod(&["1", "1"])))
        };
        assert_eq!(update(&["1", "1"], "a"), [""; 0]);
        let changed = "spec.pod.spec.containers[1].resources.requests: Invalid value: {\"cpu\":\"2\"}: field is immutable";
        assert_eq!(update(&["1", "2"], "a"), [changed]);
        let [number] = &update(&["1"], "a")[..] else { panic!("one error") };
        assert!(number.starts_with("spec.pod.spec.containers: Invalid value: [{"), "{number}");
    }

    #[test]
    fn pods_stand_for_one_pod_set() {
        let pod = json!({ "containers": [{ "name": "c" }] });
        let cell = cell("q", Some(5), 0, &pod);
        assert_eq!(cell.set_size(), Some(SetSize::Group { pods: 5 }));
        let [set] = &cell.pod_sets(JobGates::default())[..] else { panic!("one pod set") };
        assert_eq!((set.name.as_str(), set.count), ("main", Some(5)));
        let request = set.topology_request.as_ref().expect("ranks");
        assert_eq!(request.pod_index_label.as_deref(), Some("example.com/index"));
        assert!(cell.templates().is_empty(), "the webhook of pods checks their annotations");
        assert!(Kind::parse(CELL).expect("a kind").has_workloads());
        let several = CELL.replace("/spec/size", "/spec/*/size");
        assert!(matches!(Kind::parse(&several), Err(KindError::Pods(_))));
    }
}
