//! Bind addresses in Go's notation: `:8443`, `127.0.0.1:8443`, `[::1]:8443`.

use anyhow::Context;
use tokio::net::TcpListener;

/// Host and port of an address; none for `0` and the empty text, which disable a server.
///
/// # Errors
/// If the text is not an address.
pub(crate) fn parse(address: &str) -> anyhow::Result<Option<(String, u16)>> {
    if ["", "0"].contains(&address) {
        return Ok(None);
    }
    let (host, port) =
        address.rsplit_once(':').with_context(|| format!("address {address:?} has no port"))?;
    let port = port.parse().with_context(|| format!("address {address:?} has no valid port"))?;
    // Go's notation has brackets around an IPv6 address, the resolver takes it without.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(Some((host.to_owned(), port)))
}

/// Binds the address. Without a host it binds all addresses, of both families where the system supports them.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) async fn bind(what: &str, host: &str, port: u16) -> anyhow::Result<TcpListener> {
    let listener = if host.is_empty() {
        // A socket on `::` takes both families; a system without IPv6 refuses it.
        match TcpListener::bind(("::", port)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(("0.0.0.0", port)).await,
        }
    } else {
        TcpListener::bind((host, port)).await
    };
    let listener =
        listener.with_context(|| format!("cannot listen on {host}:{port} for {what}"))?;
    tracing::info!(address = %listener.local_addr()?, "listening for {what}");
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_gos_notation() {
        let some = |host: &str, port| Some((host.to_owned(), port));
        for (address, expected) in [
            (":8443", some("", 8443)),
            ("127.0.0.1:8081", some("127.0.0.1", 8081)),
            ("[::1]:1", some("::1", 1)),
            ("localhost:0", some("localhost", 0)),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(parse(address).expect(address), expected, "{address}");
        }
        for address in ["8443", ":http", ":70000"] {
            assert!(parse(address).is_err(), "{address}");
        }
    }
}
