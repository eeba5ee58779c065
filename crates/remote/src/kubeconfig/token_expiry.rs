//! The expiry of a bearer token, if the token says so: service accounts have JSON Web Tokens (RFC 7519, claim `exp`). The signature is the
//! business of the API server; here the claims decide about a notice only.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use runtime::credential_expiry::CredentialExpiry;
use serde::Deserialize;

#[derive(Deserialize)]
struct WebTokenClaims {
    exp: Option<f64>,
    iat: Option<f64>,
}

/// `None` for a token without an expiry, or of another form.
pub(super) fn of(token: &str) -> Option<CredentialExpiry> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let claims: WebTokenClaims =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    let time = |seconds: f64| Timestamp::from_second(seconds as i64).ok();
    Some(CredentialExpiry::of_token(claims.iat.and_then(time), claims.exp.and_then(time)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("{{}}.{}.signature", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn the_claims_of_a_web_token_have_its_lifetime() {
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        let read = of(&token(r#"{"aud":["a"],"exp":1800003600,"iat":1800000000}"#));
        let expected = CredentialExpiry::of_token(Some(at(1_800_000_000)), at(1_800_003_600));
        assert_eq!(read, Some(expected));
        let without_start = of(&token(r#"{"exp":1.8e9}"#));
        assert_eq!(without_start, Some(CredentialExpiry::of_token(None, at(1_800_000_000))));
    }

    #[test]
    fn another_token_has_no_expiry() {
        let permanent = token(r#"{"iss":"kubernetes/serviceaccount"}"#);
        let strange = [
            permanent,
            token("[]"),
            token(r#"{"exp":"soon"}"#),
            token(r#"{"exp":1e300}"#),
            "t".to_owned(),
            "a.b.c".to_owned(),
            "a.b.c.d.e".to_owned(),
        ];
        for token in strange {
            assert_eq!(of(&token), None, "{token}");
        }
    }
}
