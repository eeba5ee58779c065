//! Workloads of RayJobs of a version in which the container of the head that submits a RayJob had the image of the head.

use super::*;

fn ray_job(suspend: bool) -> JobObject {
    let kind = Kinds::built_in();
    let kind = kind.of_framework("ray.io/rayjob").expect("a built-in kind");
    let labels = json!({ "kueue.x-k8s.io/queue-name": "lq" });
    let template = json!({ "spec": { "containers": [{ "name": "ray", "image": "i" }] } });
    let cluster = json!({ "headGroupSpec": { "template": template } });
    let object = json!({
        "metadata": { "name": "j", "namespace": "ns", "uid": "u-1", "labels": labels },
        "spec": { "suspend": suspend, "submissionMode": "SidecarMode", "rayClusterSpec": cluster },
    });
    kind.decode(object).expect("a job decodes")
}

/// The Workload of a RayJob with this image of the submitter, and these conditions set to true.
fn with_image(job: &JobObject, image: Option<&str>, conditions: &[&str]) -> Workload {
    let (priority, keys) = (WorkloadPriority::default(), KeysToCopy::default());
    let mut former = json!(construct_workload(job, priority, &keys, GATES()));
    let submitter = "/spec/podSets/0/template/spec/containers/1";
    let submitter = former.pointer_mut(submitter).expect("a container");
    assert_eq!(
        (&submitter["name"], &submitter["image"]),
        (&json!("ray-job-submitter"), &json!(null))
    );
    if let Some(image) = image {
        submitter["image"] = json!(image);
    }
    former["status"] = json!(workload(conditions).status);
    if let Some(assignment) = former.pointer_mut("/status/admission/podSetAssignments/0") {
        (assignment["name"], assignment["count"]) = (json!("head"), json!(1));
    }
    serde_json::from_value(former).expect("a Workload decodes")
}

#[test]
fn a_workload_with_quota_keeps_the_image_of_the_submitter() {
    let steps = |suspend: bool, image: Option<&str>, conditions: &[&str]| {
        let job = ray_job(suspend);
        let workload = with_image(&job, image, conditions);
        reconcile(&job, context(&[&workload], &flavors()))
    };
    for image in [None, Some("i")] {
        assert_eq!(steps(false, image, &["QuotaReserved", "Admitted"]), [], "{image:?}");
        assert_eq!(steps(true, image, &["QuotaReserved"]), [], "{image:?}");
    }
    let other = steps(false, Some("other"), &["QuotaReserved", "Admitted"]);
    assert!(!other.is_empty(), "another image");
    let waits = steps(true, Some("i"), &[]);
    assert!(matches!(waits[..], [ReconcileStep::UpdateWorkload(_)]), "{waits:?}");
    assert_eq!(steps(true, None, &[]), []);
}

#[test]
fn a_clone_may_have_an_image_of_the_submitter_or_none() {
    let job = ray_job(true);
    let flavors = flavors();
    let steps = |image: Option<&str>| {
        let clone = with_image(&job, image, &[]);
        reconcile(&job, ReconcileContext { prebuilt: true, ..context(&[&clone], &flavors) })
    };
    assert_eq!((steps(None), steps(Some("i"))), (vec![], vec![]));
    assert!(!steps(Some("other")).is_empty(), "another image");
}
