//! Objects as JSON. A few fields of each are read, and types would be compiled for all of them.

use http::Request;
use kube::Client;
use serde_json::Value;

/// The answer to a GET of this path; `None` for 404, also because the kind is not served.
///
/// # Errors
/// If the API server is not reached, or answers otherwise.
pub async fn get(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    find(client, request).await
}

/// The answer to a GET; `None` for 404.
///
/// # Errors
/// If the API server is not reached, or answers otherwise.
pub async fn find(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<Option<Value>, kube::Error> {
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// The objects of a list.
#[must_use]
pub fn items(list: Option<Value>) -> Vec<Value> {
    match list.map(|mut list| list["items"].take()) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
