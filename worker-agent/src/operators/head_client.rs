//! Requests to Ray heads.
//!
//! A head runs code of users. Its answer is bounded in time and size, and only Services of the namespace of the RayJob or
//! RayService are asked, so that a changed status leads the agent nowhere else. A head that hangs delays its own object only:
//! every pass is a task.

use std::{future::Future, pin::Pin, time::Duration};

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Request, Uri,
    body::Bytes,
    client::conn::http1,
    header::{CONTENT_TYPE, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use ray::head::{HeadAnswer, HeadMethod, HeadRequest};
use tokio::{net::TcpStream, time};

/// From the first packet to the last byte of the answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// The largest answer in bytes. Longer ones do not count.
const LARGEST_ANSWER: usize = 1 << 20;

/// The header with the token of a cluster, which a proxy between does not take for its own.
const TOKEN_HEADER: &str = "x-ray-authorization";

/// A way to ask Ray heads.
///
/// A request always has an answer: one that cannot be had is [`HeadAnswer::Unreachable`].
pub(super) trait AskHead: Send + Sync {
    /// Sends a request of an object of `namespace`.
    fn ask<'a>(
        &'a self,
        request: &'a HeadRequest,
        namespace: &'a str,
        token: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = HeadAnswer> + Send + 'a>>;
}

/// Asks Ray heads, through a proxy if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadClient {
    /// `host:port` of an HTTP proxy.
    pub(super) proxy: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum HeadError {
    #[error("the address {0:?} is not a Service of the namespace {1}")]
    Foreign(String, String),
    #[error("cannot connect to {0}: {1}")]
    Connect(String, #[source] std::io::Error),
    #[error("the request to the head failed: {0}")]
    Request(#[from] hyper::Error),
    #[error("the request to the head is malformed: {0}")]
    Malformed(#[from] hyper::http::Error),
    #[error("the answer of the head is not complete: {0}")]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl AskHead for HeadClient {
    fn ask<'a>(
        &'a self,
        request: &'a HeadRequest,
        namespace: &'a str,
        token: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = HeadAnswer> + Send + 'a>> {
        Box::pin(async move {
            match time::timeout(DEADLINE, self.send(request, namespace, token)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => HeadAnswer::Unreachable(error.to_string()),
                Err(_) => HeadAnswer::Unreachable(format!("no answer within {DEADLINE:?}")),
            }
        })
    }
}

impl HeadClient {
    async fn send(
        &self,
        request: &HeadRequest,
        namespace: &str,
        token: Option<&str>,
    ) -> Result<HeadAnswer, HeadError> {
        let uri: Uri = request.url.parse().map_err(hyper::http::Error::from)?;
        let address = address(&uri, namespace)?;
        let target = self.proxy.as_ref().unwrap_or(&address);
        let stream = TcpStream::connect(target).await;
        let stream = stream.map_err(|error| HeadError::Connect(target.clone(), error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = self.http_request(request, &uri, &address, token)?;
        // The connection is driven beside the request and dropped with it.
        let answer = async {
            let response = sender.send_request(request).await?;
            let code = response.status().as_u16();
            let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
            let body = body.map_err(HeadError::Answer)?.to_bytes();
            let body = String::from_utf8_lossy(&body).into_owned();
            Ok(HeadAnswer::Response { code, body })
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            ended = connection => {
                ended?;
                answer.await
            }
        }
    }

    fn http_request(
        &self,
        request: &HeadRequest,
        uri: &Uri,
        address: &str,
        token: Option<&str>,
    ) -> Result<Request<Full<Bytes>>, HeadError> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // A proxy needs the whole address, a server the path.
        let target = if self.proxy.is_some() { request.url.as_str() } else { path };
        let method = match request.method {
            HeadMethod::Get => "GET",
            HeadMethod::Post => "POST",
            HeadMethod::Put => "PUT",
        };
        let mut builder = Request::builder().method(method).uri(target).header(HOST, address);
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(hyper::http::Error::from)?;
            value.set_sensitive(true);
            builder = builder.header(TOKEN_HEADER, value);
        }
        let body = request.body.as_ref().map(ToString::to_string).unwrap_or_default();
        if !body.is_empty() {
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        Ok(builder.body(Full::from(body))?)
    }
}

/// `host:port` of a head, if it is a Service of the namespace.
fn address(uri: &Uri, namespace: &str) -> Result<String, HeadError> {
    let host = uri.host().unwrap_or_default();
    let mut parts = host.split('.');
    let is_service = parts.next().is_some_and(|name| !name.is_empty())
        && parts.next() == Some(namespace)
        && parts.next() == Some("svc");
    if !is_service {
        return Err(HeadError::Foreign(host.to_owned(), namespace.to_owned()));
    }
    Ok(format!("{host}:{}", uri.port_u16().unwrap_or(80)))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    fn request() -> HeadRequest {
        HeadRequest {
            method: HeadMethod::Get,
            url: "http://c-head-svc.ns.svc.cluster.local:8265/api/jobs/j".to_owned(),
            body: None,
            token_secret: None,
        }
    }

    /// A proxy that answers one connection with this text, and what it was asked.
    async fn answer_with(text: String) -> (HeadAnswer, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = listener.local_addr().expect("an address").to_string();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut read = vec![0; 4096];
            let length = stream.read(&mut read).await.expect("a request");
            let _ = stream.write_all(text.as_bytes()).await;
            String::from_utf8_lossy(&read[..length]).into_owned()
        });
        let client = HeadClient { proxy: Some(proxy) };
        let answer = client.ask(&request(), "ns", Some("secret")).await;
        (answer, served.await.expect("served"))
    }

    #[tokio::test]
    async fn a_request_carries_the_token_and_names_the_head() {
        let text = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_owned();
        let (answer, asked) = answer_with(text).await;
        assert_eq!(answer, HeadAnswer::Response { code: 404, body: "no".to_owned() });
        let first = "GET http://c-head-svc.ns.svc.cluster.local:8265/api/jobs/j HTTP/1.1";
        assert!(asked.starts_with(first), "{asked}");
        assert!(asked.contains("x-ray-authorization: Bearer secret"), "{asked}");
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_does_not_count() {
        let length = LARGEST_ANSWER + 1;
        let body = "x".repeat(length);
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        let (answer, _) = answer_with(text).await;
        assert!(matches!(answer, HeadAnswer::Unreachable(_)), "{answer:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_hangs_is_left_after_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = Some(listener.local_addr().expect("an address").to_string());
        let answer = HeadClient { proxy }.ask(&request(), "ns", None).await;
        assert_eq!(answer, HeadAnswer::Unreachable("no answer within 2s".to_owned()));
    }

    #[tokio::test]
    async fn only_services_of_the_namespace_are_asked() {
        for url in [
            "http://169.254.169.254/latest",
            "http://c.other.svc.cluster.local:8265/",
            "http://ns/",
            "http://.ns.svc/",
            "http://c.ns.example.com/",
        ] {
            let request = HeadRequest { url: url.to_owned(), ..request() };
            let HeadAnswer::Unreachable(why) =
                HeadClient::default().ask(&request, "ns", None).await
            else {
                unreachable!("{url} was asked")
            };
            assert!(why.contains("is not a Service of the namespace ns"), "{why}");
        }
    }
}
