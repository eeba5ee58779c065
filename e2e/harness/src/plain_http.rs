//! One plain HTTP request to a server on this machine: readiness endpoints and etcd's maintenance.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum length of a response.
const READ_AT_MOST: u64 = 64 * 1024;

/// What the server answered.
pub(crate) struct HttpResponse {
    /// Such as `HTTP/1.1 200 OK`.
    pub(crate) status: String,
    pub(crate) body: String,
}

impl HttpResponse {
    pub(crate) fn is_ok(&self) -> bool {
        self.status.split(' ').nth(1) == Some("200")
    }
}

/// Sends a request; without a body it is a GET.
pub(crate) async fn ask(
    server: SocketAddr,
    path: &str,
    body: &str,
) -> std::io::Result<HttpResponse> {
    let method = if body.is_empty() { "GET" } else { "POST" };
    // HTTP 1.0: the body is not encoded and ends with the connection.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {server}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(READ_AT_MOST).read_to_end(&mut answer).await?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.lines().next().unwrap_or_default().to_owned();
    Ok(HttpResponse { status, body: body.to_owned() })
}
