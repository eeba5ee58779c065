//! Whether the object of an Event is still there.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Client,
    core::{DynamicObject, GroupVersionKind},
    discovery,
};

/// Whether the object that a reference names exists, with its uid. One that may not be read counts as present.
pub async fn is_present(client: &Client, namespace: &str, object: &ObjectReference) -> bool {
    match uid(client, namespace, object).await {
        Ok(uid) => uid.is_some() && uid == object.uid,
        Err(kube::Error::Api(status)) => status.code == 403,
        Err(_) => false,
    }
}

async fn uid(
    client: &Client,
    namespace: &str,
    object: &ObjectReference,
) -> Result<Option<String>, kube::Error> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let api_version = text(&object.api_version);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupVersionKind::gvk(group, version, &text(&object.kind));
    let (resource, _) = discovery::pinned_kind(client, &kind).await?;
    let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let job = jobs.get_metadata_opt(&text(&object.name)).await?;
    Ok(job.and_then(|job| job.metadata.uid))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A server with Jobs that answers a read of one with this status and uid.
    fn server(code: u16, uid: &'static str) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_read = request.uri().path().contains("/namespaces/");
            let jobs = json!({ "name": "jobs", "singularName": "job", "namespaced": true,
                "kind": "Job", "verbs": ["get"] });
            let (code, answer) = match is_read {
                true if code != 200 => {
                    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure",
                        "code": code, "reason": "", "message": "" });
                    (code, status)
                }
                true => {
                    let job = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                        "metadata": { "name": "train", "uid": uid } });
                    (200, job)
                }
                false => {
                    let list = json!({ "apiVersion": "v1", "kind": "APIResourceList",
                        "groupVersion": "batch/v1", "resources": [jobs] });
                    (200, list)
                }
            };
            let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
            *response.status_mut() = code.try_into().expect("a status code");
            async { Ok::<_, Infallible>(response) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_job_is_present_with_its_uid_or_if_it_may_not_be_read() {
        let job = ObjectReference {
            api_version: Some("batch/v1".to_owned()),
            kind: Some("Job".to_owned()),
            name: Some("train".to_owned()),
            uid: Some("1".to_owned()),
            ..ObjectReference::default()
        };
        for (code, uid, expected) in
            [(200, "1", true), (200, "2", false), (404, "", false), (403, "", true)]
        {
            let client = server(code, uid);
            assert_eq!(is_present(&client, "ns", &job).await, expected, "{code} {uid}");
        }
    }
}
