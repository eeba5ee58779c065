//! The rights on the manager cluster that a request needs, beside those on the resource of this API: the manager reads with the rights of
//! its own account, on whichever cluster runs the Workload.

use access::{ReviewedRequest, ReviewedResource, ReviewedTarget};

use super::{LogQuery, WorkloadCall, WorkloadPart};

impl WorkloadCall<'_> {
    /// `list pods` for the list, `get pods/log` for a log; of the pod by its name if the query has one.
    #[must_use]
    pub fn review(&self, query: &LogQuery) -> ReviewedRequest {
        let resource = ReviewedResource {
            version: "v1".to_owned(),
            namespace: self.namespace.to_owned(),
            resource: "pods".to_owned(),
            ..ReviewedResource::default()
        };
        let (verb, resource) = match self.part {
            WorkloadPart::Pods => ("list", resource),
            WorkloadPart::Log => {
                let name = query.pod.clone().unwrap_or_default();
                ("get", ReviewedResource { subresource: "log".to_owned(), name, ..resource })
            }
        };
        ReviewedRequest { verb: verb.to_owned(), target: ReviewedTarget::Resource(resource) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_are_those_on_pods_of_the_namespace() {
        let call = |part| WorkloadCall { namespace: "ml", workload: "w", part };
        let line = |part, query: &str| {
            let query = LogQuery::of(query).expect(query);
            let ReviewedRequest { verb, target } = call(part).review(&query);
            let ReviewedTarget::Resource(one) = target else { return "a path".to_owned() };
            format!("{verb} {}/{} {} {}", one.group, one.namespace, one.full_resource(), one.name)
        };
        assert_eq!(line(WorkloadPart::Pods, "pod=a"), "list /ml pods ");
        assert_eq!(line(WorkloadPart::Log, "pod=a"), "get /ml pods/log a");
        assert_eq!(line(WorkloadPart::Log, ""), "get /ml pods/log ");
    }
}
