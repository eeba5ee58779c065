//! Headers that are passed on, of requests and of answers.
//!
//! Headers of one connection end at the proxy. Credentials and names of users of the caller end there, too: the request is sent
//! with the account of the proxy, and no head gets a token. A handshake has the headers of its upgrade again.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
};

use crate::upgrade::WEBSOCKET;

/// Headers of one connection.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers of a request that the client sets itself, and credentials.
const OF_CALLER: &[&str] = &["authorization", "content-length", "cookie", "expect", "host"];

/// Headers of an answer that end at the proxy.
const OF_HEAD: &[&str] = &["set-cookie"];

/// Beginnings of headers by which an API server learns about another user.
const USERS: &[&str] = &["impersonate-", "x-remote-"];

/// The beginning of a protocol of a WebSocket that is a token: an API server takes one from a page, which cannot set headers.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The headers of a request that are sent on.
#[must_use]
pub fn of_request(headers: &HeaderMap) -> HeaderMap {
    let names_user = |name: &str| USERS.iter().any(|start| name.starts_with(start));
    without(headers, |name| OF_CALLER.contains(&name) || names_user(name))
}

/// The headers of an answer that are passed on. All heads have the origin of the API, so that a cookie of one would be sent to the others.
#[must_use]
pub fn of_answer(headers: &HeaderMap) -> HeaderMap {
    without(headers, |name| OF_HEAD.contains(&name))
}

/// The headers of a handshake that are sent on.
#[must_use]
pub fn of_handshake(headers: &HeaderMap) -> HeaderMap {
    let mut passed = of_request(headers);
    let protocols = without_tokens(&passed);
    passed.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Some(protocols) = HeaderValue::from_str(&protocols).ok().filter(|it| !it.is_empty()) {
        passed.insert(SEC_WEBSOCKET_PROTOCOL, protocols);
    }
    upgraded(passed)
}

/// The headers of the answer to a handshake that are passed on.
#[must_use]
pub fn of_upgrade(headers: &HeaderMap) -> HeaderMap {
    let mut passed = of_answer(headers);
    // The answer has no body.
    passed.remove(CONTENT_LENGTH);
    upgraded(passed)
}

fn upgraded(mut headers: HeaderMap) -> HeaderMap {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
    headers
}

fn without_tokens(headers: &HeaderMap) -> String {
    let protocols = listed(headers, &SEC_WEBSOCKET_PROTOCOL);
    let kept = protocols.filter(|name| !name.starts_with(TOKEN_PROTOCOL));
    kept.collect::<Vec<_>>().join(", ")
}

/// The items of a header that is a list, which may be given several times.
pub(crate) fn listed<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

fn without(headers: &HeaderMap, refused: impl Fn(&str) -> bool) -> HeaderMap {
    let named: Vec<String> = listed(headers, &CONNECTION).map(str::to_lowercase).collect();
    let is_passed = |name: &HeaderName| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name) && !named.iter().any(|other| other == name) && !refused(name)
    };
    let passed = headers.iter().filter(|(name, _)| is_passed(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        given.iter().map(header).collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn credentials_and_headers_of_the_connection_are_not_sent_on() {
        let given = headers(&[
            ("accept", "application/json"),
            ("authorization", "Bearer hush"),
            ("connection", "close, X-Hop"),
            ("content-length", "3"),
            ("content-type", "application/json"),
            ("cookie", "a=b"),
            ("expect", "100-continue"),
            ("host", "ray-api"),
            ("impersonate-user", "admin"),
            ("impersonate-extra-scopes", "a"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-hop", "1"),
            ("x-ray-authorization", "Bearer of-ray"),
            ("x-remote-user", "admin"),
        ]);
        let passed = of_request(&given);
        assert_eq!(names(&passed), ["accept", "content-type", "x-ray-authorization"]);
    }

    #[test]
    fn an_answer_sets_no_cookies() {
        let given = headers(&[
            ("connection", "keep-alive"),
            ("content-length", "3"),
            ("content-type", "text/html"),
            ("set-cookie", "a=b"),
        ]);
        assert_eq!(names(&of_answer(&given)), ["content-length", "content-type"]);
    }

    #[test]
    fn a_handshake_has_its_upgrade_and_no_token() {
        let given = headers(&[
            ("authorization", "Bearer hush"),
            ("connection", "Upgrade, X-Hop"),
            ("cookie", "a=b"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", "a, base64url.bearer.authorization.k8s.io.aHVzaA,b"),
            ("sec-websocket-version", "13"),
            ("upgrade", "WebSocket"),
            ("x-hop", "1"),
        ]);
        let passed = of_handshake(&given);
        assert_eq!(
            names(&passed),
            [
                "connection",
                "sec-websocket-key",
                "sec-websocket-protocol",
                "sec-websocket-version",
                "upgrade"
            ]
        );
        assert_eq!(
            (&passed["connection"], &passed["upgrade"]),
            (&HeaderValue::from_static("Upgrade"), &HeaderValue::from_static("websocket"))
        );
        assert_eq!(passed["sec-websocket-protocol"], "a, b");
        let token = "base64url.bearer.authorization.k8s.io.aHVzaA";
        let only = of_handshake(&headers(&[("sec-websocket-protocol", token)]));
        assert!(!only.contains_key("sec-websocket-protocol"));
    }

    #[test]
    fn the_answer_to_a_handshake_sets_no_cookies() {
        let given = headers(&[
            ("connection", "Upgrade"),
            ("content-length", "0"),
            ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            ("set-cookie", "a=b"),
            ("upgrade", "websocket"),
        ]);
        let passed = of_upgrade(&given);
        assert_eq!(names(&passed), ["connection", "sec-websocket-accept", "upgrade"]);
    }
}
