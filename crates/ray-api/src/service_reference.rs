//! The name of a Service in the path of a proxied request.

use crate::refusal::RayApiRefusal;

/// The longest name of a Service.
const MAX_NAME: usize = 63;

/// `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceReference<'a> {
    /// The segment of the path, which is sent on as it is.
    pub text: &'a str,
    /// The name of the Service.
    pub name: &'a str,
}

impl<'a> ServiceReference<'a> {
    /// Reads the segment of a path.
    ///
    /// # Errors
    /// If it has none of the three forms.
    pub fn read(text: &'a str) -> Result<Self, RayApiRefusal> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match *parts.as_slice() {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => return Err(malformed(text)),
        };
        let is_known = ["", "http", "https"].contains(&scheme);
        if is_known && is_label(name) && (port.is_empty() || is_label(port)) {
            Ok(Self { text, name })
        } else {
            Err(malformed(text))
        }
    }
}

fn malformed(text: &str) -> RayApiRefusal {
    RayApiRefusal::MalformedService(text.to_owned())
}

/// A name of a Service or a port, or the number of a port. Other characters could be read as another path.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_a_name_and_may_have_scheme_and_port() {
        for (text, name) in [
            ("train-head-svc", Some("train-head-svc")),
            ("train-head-svc:8265", Some("train-head-svc")),
            ("train-head-svc:dashboard", Some("train-head-svc")),
            ("http:train-head-svc:8265", Some("train-head-svc")),
            ("https:train-head-svc:", Some("train-head-svc")),
            (":train-head-svc:8265", Some("train-head-svc")),
            ("", None),
            (":8265", None),
            ("ftp:train-head-svc:8265", None),
            ("a:b:c:d", None),
            ("train%2fhead", None),
            ("Train", None),
            ("..", None),
        ] {
            let read = ServiceReference::read(text).map(|service| service.name);
            assert_eq!(read.ok(), name, "{text:?}");
        }
    }
}
