//! Requests to the manager's API, by its API server.

use std::fmt::Write;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::{Client, client::Body, core::Status};
use runtime::{error_chain, transport::StreamedAnswer};

use super::{
    LogsFailure,
    choice::{ChosenLog, LogOptions, PodsOfWorkload},
};
use crate::requests::RequestFailure;

/// The longest refusal that is read.
const LONGEST: usize = 64 << 10;

/// Why a log was not read to its end.
pub(super) enum LogFailure {
    Refused(RequestFailure),
    CutOff(String),
}

impl LogFailure {
    /// The failure, about a pod of a cluster.
    pub(super) fn of(self, pod: &str, cluster: &str) -> LogsFailure {
        match self {
            Self::Refused(failure) => LogsFailure::Request(failure),
            Self::CutOff(cause) => {
                let (pod, cluster) = (pod.to_owned(), cluster.to_owned());
                LogsFailure::CutOff { pod, cluster, cause }
            }
        }
    }
}

/// The path of a Workload in the API.
pub(super) fn path(namespace: &str, workload: &str) -> String {
    format!("/apis/visibility.sluice.dev/v1alpha1/namespaces/{namespace}/workloads/{workload}")
}

/// Path and query of a log.
pub(super) fn target(path: &str, log: &ChosenLog, options: &LogOptions) -> String {
    let mut target = format!("{path}/log?pod={}", log.pod);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // Names and numbers need no escapes.
            let _ = write!(target, "&{name}={value}");
        }
    };
    let flag = |is_set: bool| is_set.then(|| "true".to_owned());
    add("container", log.container.clone());
    add("follow", flag(options.follow));
    add("previous", flag(options.previous));
    add("timestamps", flag(options.timestamps));
    add("tailLines", options.tail.map(|count| count.to_string()));
    add("sinceSeconds", options.since_seconds.map(|count| count.to_string()));
    target
}

/// The pods of a Workload.
pub(super) async fn pods(client: &Client, path: &str) -> Result<PodsOfWorkload, LogsFailure> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let failed = RequestFailure::of("list", format!("pods of Workload {name}"));
    let request = Request::get(format!("{path}/pods")).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError);
    let read = match request {
        Ok(request) => client.request(request).await,
        Err(error) => Err(error),
    };
    match read {
        // The server answers about its own Workloads with their names.
        Err(kube::Error::Api(status)) if status.code == 404 && is_unknown_path(&status) => {
            Err(LogsFailure::NotServed)
        }
        read => Ok(read.map_err(failed)?),
    }
}

/// Whether the API server does not know the group.
fn is_unknown_path(status: &Status) -> bool {
    let texts = ["could not find the requested resource", "page not found"];
    texts.iter().any(|text| status.message.contains(text))
}

/// Reads a log. `take` gets its bytes as they arrive.
pub(super) async fn log(
    client: &Client,
    target: &str,
    mut take: impl FnMut(&[u8]),
) -> Result<(), LogFailure> {
    let failed =
        |error: kube::Error| LogFailure::Refused(RequestFailure::of("read", "the log")(error));
    // A log that grows has no end, and that of a container that writes nothing does not begin.
    let request = Request::get(target).extension(StreamedAnswer).body(Body::empty());
    let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
    let (parts, mut body) = client.send(request).await.map_err(failed)?.into_parts();
    if parts.status != StatusCode::OK {
        return Err(failed(kube::Error::Api(Box::new(refusal(parts.status, body).await))));
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| LogFailure::CutOff(error_chain::describe(&error)))?;
        if let Some(data) = frame.data_ref() {
            take(data);
        }
    }
    Ok(())
}

/// The `Status` of a refusal.
async fn refusal(code: StatusCode, body: Body) -> Status {
    let body = Limited::new(body, LONGEST).collect().await;
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        let message = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned();
        Status::failure(&message, code.canonical_reason().unwrap_or_default())
            .with_code(code.as_u16())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wishes_are_parameters() {
        let pod =
            serde_json::from_str(r#"{"items": [{"name": "a", "containers": [{"name": "m"}]}]}"#);
        let pods: PodsOfWorkload = pod.expect("a list");
        let options = LogOptions { follow: true, tail: Some(5), ..LogOptions::default() };
        let (logs, _) = super::super::chosen("w", &pods, &options).expect("logs");
        let path = path("ml", "w");
        assert_eq!(
            target(&path, &logs[0], &options),
            format!("{path}/log?pod=a&container=m&follow=true&tailLines=5")
        );
        let options = LogOptions {
            previous: true,
            timestamps: true,
            since_seconds: Some(60),
            ..LogOptions::default()
        };
        assert!(
            target(&path, &logs[0], &options)
                .ends_with("container=m&previous=true&timestamps=true&sinceSeconds=60")
        );
    }
}
