//! Upgrades of connections: which are passed on, and when an open one ends.
//!
//! A caller follows the log of a Ray job through a WebSocket, and Serve may speak one as well. Bytes after the handshake are not read here.

use http::{
    HeaderMap, Method, StatusCode, Version,
    header::{CONNECTION, UPGRADE},
};

use crate::{headers::listed, refusal::RayApiRefusal, request::RayApiRequest};

/// The protocol that is passed on.
pub(crate) const WEBSOCKET: &str = "websocket";

/// Whether a request asks for an upgrade that is passed on.
///
/// # Errors
/// If it asks for one that is not.
pub fn asks_for_upgrade(
    request: &RayApiRequest<'_>,
    method: &Method,
    version: Version,
    headers: &HeaderMap,
) -> Result<bool, RayApiRefusal> {
    // HTTP/2 has no such headers, and one without the other means nothing.
    if version > Version::HTTP_11 || !names_upgrade(headers) {
        return Ok(false);
    }
    let Some(protocol) = protocol(headers) else { return Ok(false) };
    match request {
        // What a probe asks for besides has no effect.
        RayApiRequest::Health => Ok(false),
        RayApiRequest::Service(_) if !protocol.eq_ignore_ascii_case(WEBSOCKET) => {
            Err(RayApiRefusal::UnknownUpgrade(protocol))
        }
        RayApiRequest::Service(_) if method != Method::GET => Err(RayApiRefusal::WrongMethod),
        RayApiRequest::Service(_) => Ok(true),
        RayApiRequest::Objects { .. } | RayApiRequest::Events => Err(RayApiRefusal::NoUpgrade),
    }
}

/// Whether an answer changes the connection to the protocol that was asked for.
///
/// # Errors
/// If it changes the connection to another protocol, or was not asked to change it.
pub fn is_upgraded(
    asked: bool,
    code: StatusCode,
    headers: &HeaderMap,
) -> Result<bool, RayApiRefusal> {
    if code != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(false);
    }
    let protocol = protocol(headers).filter(|_| asked).unwrap_or_default();
    if protocol.eq_ignore_ascii_case(WEBSOCKET) {
        Ok(true)
    } else {
        Err(RayApiRefusal::WrongUpgrade)
    }
}

impl RayApiRefusal {
    /// Whether an open upgrade ends when its request would now be refused so. A cluster that does not answer for a while decides nothing.
    #[must_use]
    pub fn ends_upgrade(&self) -> bool {
        !matches!(self, Self::LookupFailed | Self::NotReviewed)
    }
}

fn names_upgrade(headers: &HeaderMap) -> bool {
    listed(headers, &CONNECTION).any(|name| name.eq_ignore_ascii_case("upgrade"))
}

/// The protocols of the header, as one text; `None` without any.
fn protocol(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(UPGRADE).into_iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    Some(values.join(",").trim().to_owned()).filter(|protocol| !protocol.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(connection: &'static str, upgrade: &'static str) -> HeaderMap {
        let pairs = [(CONNECTION, connection), (UPGRADE, upgrade)];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_websocket_to_a_service_is_passed_on() {
        use RayApiRefusal::{NoUpgrade, UnknownUpgrade, WrongMethod};
        let head = "/api/v1/namespaces/ml/services/c-head-svc/proxy/x";
        let jobs = "/apis/ray.io/v1/rayjobs";
        let events = "/apis/events.k8s.io/v1/namespaces/ml/events";
        let unknown = |protocol: &str| Err(UnknownUpgrade(protocol.to_owned()));
        for (path, method, connection, protocol, expected) in [
            (head, "GET", "Upgrade", "websocket", Ok(true)),
            (head, "GET", "keep-alive, upgrade", "WebSocket", Ok(true)),
            (head, "GET", "", "", Ok(false)),
            (head, "GET", "", "websocket", Ok(false)),
            (head, "GET", "Upgrade", "", Ok(false)),
            (head, "GET", "Upgrade", "SPDY/3.1", unknown("SPDY/3.1")),
            (head, "GET", "Upgrade", "h2c, websocket", unknown("h2c, websocket")),
            (head, "POST", "Upgrade", "websocket", Err(WrongMethod)),
            (jobs, "GET", "Upgrade", "websocket", Err(NoUpgrade)),
            (jobs, "GET", "keep-alive", "", Ok(false)),
            (events, "GET", "Upgrade", "websocket", Err(NoUpgrade)),
            ("/healthz", "GET", "Upgrade", "websocket", Ok(false)),
        ] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let request = RayApiRequest::of(&Method::GET, path).expect("a request");
            let headers = headers(connection, protocol);
            let asks = asks_for_upgrade(&request, &method, Version::HTTP_11, &headers);
            assert_eq!(asks, expected, "{path} {method} {connection} {protocol}");
            let newer = asks_for_upgrade(&request, &method, Version::HTTP_2, &headers);
            assert_eq!(newer, Ok(false), "{path}");
        }
    }

    #[test]
    fn a_head_changes_to_the_protocol_that_was_asked_for_only() {
        let changed = StatusCode::SWITCHING_PROTOCOLS;
        for (asked, code, protocol, expected) in [
            (true, changed, "WebSocket", Ok(true)),
            (true, changed, "h2c", Err(RayApiRefusal::WrongUpgrade)),
            (true, changed, "", Err(RayApiRefusal::WrongUpgrade)),
            (false, changed, "websocket", Err(RayApiRefusal::WrongUpgrade)),
            (true, StatusCode::OK, "websocket", Ok(false)),
            (true, StatusCode::NOT_FOUND, "", Ok(false)),
        ] {
            let headers = headers("Upgrade", protocol);
            assert_eq!(is_upgraded(asked, code, &headers), expected, "{asked} {code} {protocol}");
        }
    }

    #[test]
    fn an_open_upgrade_outlasts_a_cluster_that_does_not_answer() {
        for (refusal, ends) in [
            (RayApiRefusal::NotConnected("east".to_owned()), true),
            (RayApiRefusal::NotRayService, true),
            (RayApiRefusal::LookupFailed, false),
            (RayApiRefusal::NotReviewed, false),
        ] {
            assert_eq!(refusal.ends_upgrade(), ends, "{refusal:?}");
        }
    }
}
