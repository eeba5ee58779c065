//! Requests to a Ray head, and what its answers mean.
//!
//! A head runs code of users: its answers are untrusted. The caller bounds time and size of an answer; here it is decoded without any
//! assumption about its content, and texts are cut before they reach a status.
//!
//! Source: docs/reference/ray.md §8 "Dashboard HTTP used".

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// The most characters of a text of a head that are written to a status.
const LONGEST_TEXT: usize = 1024;

/// What stays as it is in a part of a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The path of a job. Its id is the user's, so it is encoded: it must not lead to another path.
pub(crate) fn job_path(id: &str) -> String {
    format!("/api/jobs/{}", utf8_percent_encode(id, PLAIN))
}

/// A request to a Ray head. It is an order: its answer belongs to the next call of the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadRequest {
    /// The method.
    pub method: HeadMethod,
    /// The address, `http://host:port/path`.
    pub url: String,
    /// The body, as JSON.
    pub body: Option<Value>,
    /// The Secret with the token to send, in its key `auth_token`.
    pub token_secret: Option<String>,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadMethod {
    /// GET
    Get,
    /// POST
    Post,
    /// PUT
    Put,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadAnswer {
    /// The head answered.
    Response {
        /// The HTTP code.
        code: u16,
        /// The body, cut by the caller if it is too long.
        body: String,
    },
    /// No answer within the deadline, or no connection.
    Unreachable(String),
}

/// What a head says of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadJobInfo {
    /// The state; empty if the head names none.
    pub(crate) status: String,
    pub(crate) message: String,
    /// Milliseconds since 1970; 0 if the job did not begin.
    pub(crate) start_time: i64,
    /// Milliseconds since 1970; 0 if the job did not end.
    pub(crate) end_time: i64,
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadJob {
    Known(HeadJobInfo),
    /// The head does not have a job of this id.
    NotFound,
    /// The head did not answer, or not with what is expected.
    Failed,
}

/// The state of a job from the answer of a head.
pub(crate) fn job_of(answer: &HeadAnswer) -> HeadJob {
    match answer {
        HeadAnswer::Response { code: 404, .. } => HeadJob::NotFound,
        HeadAnswer::Response { body, .. } => match serde_json::from_str::<Map<String, Value>>(body)
        {
            Ok(info) => HeadJob::Known(info_of(&info)),
            Err(_) => HeadJob::Failed,
        },
        HeadAnswer::Unreachable(_) => HeadJob::Failed,
    }
}

/// Whether a head did what it was asked for.
pub(crate) fn is_success(answer: &HeadAnswer) -> bool {
    matches!(answer, HeadAnswer::Response { code: 200..=299, .. })
}

fn info_of(info: &Map<String, Value>) -> HeadJobInfo {
    let text = |name: &str| cut(info.get(name).and_then(Value::as_str).unwrap_or_default());
    let time = |name: &str| info.get(name).and_then(Value::as_i64).unwrap_or_default();
    HeadJobInfo {
        status: text("status"),
        message: text("message"),
        start_time: time("start_time"),
        end_time: time("end_time"),
    }
}

/// A text of a head, without control characters and not longer than a status bears.
pub(crate) fn cut(text: &str) -> String {
    let is_plain = |character: &char| !character.is_control() || matches!(character, '\n' | '\t');
    text.chars().filter(is_plain).take(LONGEST_TEXT).collect()
}
