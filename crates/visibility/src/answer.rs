//! The response to an authorized request.

use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::{
    api::{PendingWorkload, PendingWorkloadsSummary, VisibilityVersion},
    discovery,
    media_type::DocumentForm,
    open_api,
    page::PendingPage,
    pending_workloads::{QueueReference, UnknownQueue},
    route::{VisibilityRoute, is_probe},
    status,
};

/// A request, as far as the response depends on it.
#[derive(Debug, Clone, Copy)]
pub struct VisibilityRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path.
    pub path: &'a str,
    /// The query, without its question mark.
    pub query: &'a str,
    /// The header `Accept`.
    pub accept: Option<&'a str>,
    /// The header `If-None-Match`.
    pub if_none_match: Option<&'a str>,
    /// The version of the program that answers.
    pub program_version: &'a str,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibilityAnswer {
    /// The status.
    pub status: StatusCode,
    /// The header `Content-Type`.
    pub content_type: String,
    /// The header `ETag`, of documents that clients keep.
    pub etag: Option<String>,
    /// The header `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFailure {
    /// The queue does not exist.
    UnknownQueue,
    /// Not everything was listed yet.
    NotReady,
}

impl From<UnknownQueue> for PageFailure {
    fn from(UnknownQueue: UnknownQueue) -> Self {
        Self::UnknownQueue
    }
}

impl VisibilityAnswer {
    /// A JSON document.
    pub fn json(document: &impl Serialize) -> Self {
        match serde_json::to_vec(document) {
            Ok(body) => Self {
                status: StatusCode::OK,
                content_type: DocumentForm::Plain.content_type(),
                etag: None,
                retry_after: None,
                body,
            },
            Err(error) => status::internal_error(&error.to_string()),
        }
    }

    fn text(body: &str) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: "text/plain; charset=utf-8".to_owned(),
            etag: None,
            retry_after: None,
            body: body.as_bytes().to_vec(),
        }
    }

    /// A document that a client may keep: without its body if the client has it.
    fn kept(self, if_none_match: Option<&str>) -> Self {
        let etag = format!("\"{}\"", open_api::hash(&self.body));
        let known = if_none_match.is_some_and(|tags| tags.split(',').any(|one| one.trim() == etag));
        let etag = Some(etag);
        if known {
            Self { status: StatusCode::NOT_MODIFIED, etag, body: Vec::new(), ..self }
        } else {
            Self { etag, ..self }
        }
    }
}

/// Answers a request. `page` reads pending Workloads.
pub fn answer(
    request: &VisibilityRequest<'_>,
    page: impl FnOnce(&QueueReference<'_>, PendingPage) -> Result<Vec<PendingWorkload>, PageFailure>,
) -> VisibilityAnswer {
    if is_probe(request.path) {
        return probe(request.method);
    }
    let Some(route) = VisibilityRoute::of(request.path) else {
        return status::unknown_path();
    };
    if request.method != Method::GET {
        return status::wrong_method();
    }
    let is_discovery = route == VisibilityRoute::Groups;
    let Some(form) = DocumentForm::accepted(request.accept, is_discovery) else {
        return status::not_acceptable();
    };
    let program = request.program_version;
    let keep = |document| VisibilityAnswer::json(&document).kept(request.if_none_match);
    match route {
        VisibilityRoute::ProgramVersion => VisibilityAnswer::json(&json!({"gitVersion": program})),
        VisibilityRoute::Groups => match form {
            DocumentForm::Plain => VisibilityAnswer::json(&discovery::groups()),
            DocumentForm::Discovery(version) => VisibilityAnswer {
                content_type: form.content_type(),
                ..keep(discovery::aggregated(version))
            },
        },
        VisibilityRoute::Group => VisibilityAnswer::json(&discovery::group()),
        VisibilityRoute::Resources(version) => {
            VisibilityAnswer::json(&discovery::resources(version))
        }
        VisibilityRoute::SluiceGroup => VisibilityAnswer::json(&discovery::sluice_group()),
        VisibilityRoute::SluiceResources => VisibilityAnswer::json(&discovery::sluice_resources()),
        VisibilityRoute::OpenApiV2 => keep(open_api::v2(program)),
        VisibilityRoute::OpenApiV3 => keep(open_api::v3_index(program)),
        VisibilityRoute::OpenApiV3Of(version) => keep(open_api::v3(version, program)),
        VisibilityRoute::Pending(version, queue) => {
            pending(version, &queue, request.query, |wanted| page(&queue, wanted))
        }
    }
}

fn probe(method: &Method) -> VisibilityAnswer {
    if method == Method::GET { VisibilityAnswer::text("ok") } else { status::wrong_method() }
}

fn pending(
    version: VisibilityVersion,
    queue: &QueueReference<'_>,
    query: &str,
    page: impl FnOnce(PendingPage) -> Result<Vec<PendingWorkload>, PageFailure>,
) -> VisibilityAnswer {
    let wanted = match PendingPage::of_query(query) {
        Ok(wanted) => wanted,
        Err(error) => return status::bad_request(&error.to_string()),
    };
    match page(wanted) {
        Ok(items) => VisibilityAnswer::json(&PendingWorkloadsSummary::new(version, items)),
        Err(PageFailure::UnknownQueue) => status::unknown_queue(queue),
        Err(PageFailure::NotReady) => status::not_ready(),
    }
}

#[cfg(test)]
mod tests;
