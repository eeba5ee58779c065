//! Updates of objects that are being deleted, mostly of their finalizers by the garbage collector.

use super::*;

/// A Deployment of a managed owner that is gone, in the queue `near`, with these finalizers.
fn orphan(finalizers: &[&str], deleted: bool) -> Value {
    let mut deployment = owned("near", "batch/v1", "Job");
    deployment["spec"] = json!({"template": {"spec": {"containers": [{"name": "c"}]}}});
    deployment["metadata"]["finalizers"] = json!(finalizers);
    if deleted {
        deployment["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    deployment
}

/// The garbage collector takes its finalizer off children of owners that are gone already.
#[tokio::test]
async fn an_object_that_is_being_deleted_gets_no_defaults_and_loses_its_finalizers() {
    let fixture = Fixture::new("integrations: {frameworks: [pod, deployment, batch/job]}");
    let update = async |deleted| {
        let [old, new] = [&["foregroundDeletion"][..], &[]].map(|all| orphan(all, deleted));
        let path = "/mutate-apps-v1-deployment";
        let answer = fixture.call(path, review("team", &new, &old)).await;
        assert!(answer.get("patch").is_none(), "{answer}");
        answer["allowed"] == true
    };
    assert!(!update(false).await, "the owner decides whether the pods are held");
    let n_reads = fixture.server.requests().len();
    assert!(update(true).await);
    assert_eq!(fixture.server.requests().len(), n_reads, "nothing is read");
}

#[tokio::test]
async fn an_object_that_is_being_deleted_is_refused_only_for_what_changes() {
    let fixture = Fixture::new("");
    let job = |finalizers: &[&str], seconds: &str, deleted: bool| {
        let mut job = suspended("near", &json!({}));
        job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!(seconds);
        job["metadata"]["finalizers"] = json!(finalizers);
        if deleted {
            job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        job
    };
    let held: &[&str] = &["foregroundDeletion"];
    for (deleted, seconds, refused) in
        [(false, "soon", true), (true, "soon", false), (true, "later", true)]
    {
        let (new, old) = (job(&[], seconds, deleted), job(held, "soon", deleted));
        let refusal = fixture.refusal(&new, &old).await;
        assert_eq!(refusal.is_some(), refused, "{deleted} {seconds}: {refusal:?}");
    }
}
