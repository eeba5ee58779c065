//! Which access of the caller is reviewed, on the manager cluster.
//!
//! Requests for objects and events are reviewed as the API server would: the proxy asks with the rights of its own account. A request
//! to a Service needs the right on `services/proxy` of that name, with the verb that Kubernetes has for its method, and the right to
//! get the Ray object that the Service belongs to. Rights are those on the manager cluster, also if a worker runs the cluster.

use access::{ReviewedRequest, ReviewedResource, ReviewedTarget};
use http::Method;

use crate::{request::ServiceCall, service_owner::ServiceOwner};

impl ServiceCall<'_> {
    /// The right to send a request of this method to the Service.
    #[must_use]
    pub fn review(&self, method: &Method) -> ReviewedRequest {
        let verb = match method.as_str() {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            // As upstream: other methods read, and those that no Service knows are refused by it.
            _ => "get",
        };
        let resource = ReviewedResource {
            version: "v1".to_owned(),
            namespace: self.namespace.to_owned(),
            resource: "services".to_owned(),
            subresource: "proxy".to_owned(),
            name: self.service.name.to_owned(),
            ..ReviewedResource::default()
        };
        reviewed(verb, resource)
    }
}

impl ServiceOwner {
    /// The right to get the object.
    #[must_use]
    pub fn review(&self, namespace: &str) -> ReviewedRequest {
        let (group, version) = self.kind.group_version();
        get(group, version, namespace, (self.kind.plural(), &self.name))
    }
}

/// The right to get the ConfigMap of a compute template: its values come into the object.
#[must_use]
pub fn template_review(namespace: &str, name: &str) -> ReviewedRequest {
    get("", "v1", namespace, ("configmaps", name))
}

fn get(
    group: &str,
    version: &str,
    namespace: &str,
    (resource, name): (&str, &str),
) -> ReviewedRequest {
    let resource = ReviewedResource {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..ReviewedResource::default()
    };
    reviewed("get", resource)
}

fn reviewed(verb: &str, resource: ReviewedResource) -> ReviewedRequest {
    ReviewedRequest { verb: verb.to_owned(), target: ReviewedTarget::Resource(resource) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{service_owner::RayOwnerKind, service_reference::ServiceReference};

    /// One line: verb, group, namespace, resource and name.
    fn line(request: &ReviewedRequest) -> String {
        let ReviewedTarget::Resource(one) = &request.target else {
            return "a path".to_owned();
        };
        let (verb, resource) = (&request.verb, one.full_resource());
        format!("{verb} {}/{} {} {resource} {}", one.group, one.version, one.namespace, one.name)
    }

    #[test]
    fn a_service_is_reviewed_by_its_name_and_the_verb_of_the_method() {
        let service = ServiceReference::read("http:c-head-svc:8265").expect("a service");
        let call = ServiceCall { namespace: "ml", service };
        for (method, verb) in [
            (Method::GET, "get"),
            (Method::HEAD, "get"),
            (Method::OPTIONS, "get"),
            (Method::POST, "create"),
            (Method::PUT, "update"),
            (Method::PATCH, "patch"),
            (Method::DELETE, "delete"),
        ] {
            let expected = format!("{verb} /v1 ml services/proxy c-head-svc");
            assert_eq!(line(&call.review(&method)), expected);
        }
    }

    #[test]
    fn its_owner_has_to_be_readable() {
        for (kind, expected) in [
            (RayOwnerKind::Cluster, "get ray.io/v1 ml rayclusters c"),
            (RayOwnerKind::Job, "get ray.io/v1 ml rayjobs c"),
            (RayOwnerKind::Service, "get ray.io/v1 ml rayservices c"),
            (RayOwnerKind::AppWrapper, "get workload.codeflare.dev/v1beta2 ml appwrappers c"),
        ] {
            let owner = ServiceOwner { kind, name: "c".to_owned() };
            assert_eq!(line(&owner.review("ml")), expected);
        }
        assert_eq!(line(&template_review("ml", "big")), "get /v1 ml configmaps big");
    }
}
