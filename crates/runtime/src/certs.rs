//! Creates a CA and serving certificates, and decides about renewal. Pure: PEM in, PEM out, time from `now`.
//!
//! Keys are ECDSA P-256. A certificate is valid from one day before `now`, because clocks differ, and is renewed 90 days before
//! its end, so that a process that was down for weeks still has a valid one.

use jiff::{Timestamp, ToSpan, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use x509_parser::{extensions::GeneralName, pem::parse_x509_pem, prelude::X509Certificate};

const AUTHORITY_DAYS: i64 = 3650;
const SERVING_DAYS: i64 = 365;

/// A certificate with less than this left is renewed.
const RENEW_DAYS: i64 = 90;

/// Why a certificate could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// The names, the key or the CA are invalid.
    #[error("cannot make a certificate for {subject:?}: {source}")]
    Make {
        /// The subject.
        subject: String,
        /// What is wrong.
        source: rcgen::Error,
    },
    /// The time cannot be expressed in a certificate.
    #[error("cannot make a certificate for the time {0}")]
    Time(Timestamp),
}

/// A certificate and its private key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertPair {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS#8.
    pub key: String,
}

impl std::fmt::Debug for CertPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key, which must not reach a log.
        f.debug_struct("CertPair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Creates a self-signed CA.
///
/// # Errors
/// If the time cannot be expressed in a certificate.
pub fn make_authority(subject: &str, now: Timestamp) -> Result<CertPair, CertError> {
    let failed = |source| CertError::Make { subject: subject.to_owned(), source };
    let mut params = params(subject, &[], AUTHORITY_DAYS, now)?;
    // Path length 0: the CA signs serving certificates and no other CA.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(CertPair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Creates a serving certificate for these DNS names and addresses, signed by `authority`.
///
/// # Errors
/// If a name is invalid, or `authority` is not a CA with its private key.
pub fn issue(
    authority: &CertPair,
    names: &[String],
    now: Timestamp,
) -> Result<CertPair, CertError> {
    let subject = names.first().map_or("server", String::as_str);
    let failed = |source| CertError::Make { subject: subject.to_owned(), source };
    let mut params = params(subject, names, SERVING_DAYS, now)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let authority_key = KeyPair::from_pem(&authority.key).map_err(failed)?;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, authority_key).map_err(failed)?;
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
    Ok(CertPair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn params(
    subject: &str,
    names: &[String],
    days: i64,
    now: Timestamp,
) -> Result<CertificateParams, CertError> {
    let mut params = CertificateParams::new(names)
        .map_err(|source| CertError::Make { subject: subject.to_owned(), source })?;
    // A common name holds 64 characters. It is informational only.
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject.get(..64).unwrap_or(subject));
    let (year, month, day) = date(now, -1).ok_or(CertError::Time(now))?;
    params.not_before = date_time_ymd(year, month, day);
    let (year, month, day) = date(now, days).ok_or(CertError::Time(now))?;
    params.not_after = date_time_ymd(year, month, day);
    Ok(params)
}

/// The date `days` after `now`.
fn date(now: Timestamp, days: i64) -> Option<(i32, u8, u8)> {
    let date = now.to_zoned(TimeZone::UTC).date().checked_add(days.days()).ok()?;
    let (month, day) = (u8::try_from(date.month()).ok()?, u8::try_from(date.day()).ok()?);
    Some((i32::from(date.year()), month, day))
}

/// Whether a serving certificate needs renewal: unreadable, near its end, not signed by `authority`, or without one of the
/// names.
#[must_use]
pub fn needs_renewal(
    pair: &CertPair,
    authority: &CertPair,
    names: &[String],
    now: Timestamp,
) -> bool {
    !matches_key(pair)
        || !with_certificate(&pair.certificate, |certificate| {
            is_valid_until_renewal(certificate, now)
                // A certificate with further names stays valid for the names that are used now.
                && names.iter().all(|name| has_name(certificate, name))
                // Objects with an injected CA trust no certificate of a former one.
                && with_certificate(&authority.certificate, |authority| {
                    certificate.verify_signature(Some(authority.public_key())).is_ok()
                })
        })
}

/// Whether a CA needs renewal: unreadable, near its end, or not a CA.
#[must_use]
pub fn authority_needs_renewal(authority: &CertPair, now: Timestamp) -> bool {
    !matches_key(authority)
        || !with_certificate(&authority.certificate, |certificate| {
            certificate.is_ca() && is_valid_until_renewal(certificate, now)
        })
}

fn matches_key(pair: &CertPair) -> bool {
    let Ok(key) = KeyPair::from_pem(&pair.key) else {
        return false;
    };
    with_certificate(&pair.certificate, |certificate| {
        certificate.public_key().subject_public_key.data.as_ref() == key.public_key_raw()
    })
}

/// When the first certificate of a PEM text expires; `None` if there is none.
#[must_use]
pub fn expires_at(pem: &str) -> Option<Timestamp> {
    let (_, pem) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

fn with_certificate(pem: &str, holds: impl FnOnce(&X509Certificate<'_>) -> bool) -> bool {
    let Ok((_, pem)) = parse_x509_pem(pem.as_bytes()) else {
        return false;
    };
    pem.parse_x509().is_ok_and(|certificate| holds(&certificate))
}

fn is_valid_until_renewal(certificate: &X509Certificate<'_>, now: Timestamp) -> bool {
    let validity = certificate.validity();
    let left = validity.not_after.timestamp().saturating_sub(now.as_second());
    validity.not_before.timestamp() <= now.as_second() && left > RENEW_DAYS * 24 * 60 * 60
}

fn has_name(certificate: &X509Certificate<'_>, wanted: &str) -> bool {
    let address = wanted.parse::<std::net::IpAddr>().ok();
    let octets = address.map(|address| match address {
        std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    });
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return false;
    };
    names.value.general_names.iter().any(|name| match (name, &octets) {
        // A client that calls an address compares it with addresses only, never with DNS names.
        (GeneralName::DNSName(name), None) => *name == wanted,
        (GeneralName::IPAddress(bytes), Some(octets)) => *bytes == octets.as_slice(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["hooks.ns.svc", "127.0.0.1", "::1"];

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().expect("a time")
    }

    fn later(days: i64) -> Timestamp {
        now() + (days * 24).hours()
    }

    #[test]
    fn a_certificate_is_renewed_only_when_needed() {
        let authority = make_authority("ca", now()).expect("a CA");
        let other = make_authority("ca", now()).expect("a CA");
        let pair = issue(&authority, &names(NAMES), now()).expect("a certificate");
        let foreign_key = CertPair { key: other.key.clone(), ..pair.clone() };
        let garbage = CertPair { certificate: "x".into(), key: "y".into() };
        let table = [
            ("fresh", &pair, &authority, NAMES, 0, false),
            ("fewer names", &pair, &authority, &NAMES[..1], 0, false),
            ("another name", &pair, &authority, &["other.ns.svc"][..], 0, true),
            ("another address", &pair, &authority, &["127.0.0.2"][..], 0, true),
            ("half way", &pair, &authority, NAMES, 274, false),
            ("near its end", &pair, &authority, NAMES, 276, true),
            ("not yet valid", &pair, &authority, NAMES, -2, true),
            ("another CA", &pair, &other, NAMES, 0, true),
            ("another key", &foreign_key, &authority, NAMES, 0, true),
            ("garbage", &garbage, &authority, NAMES, 0, true),
        ];
        for (case, pair, authority, wanted, days, renew) in table {
            let decision = needs_renewal(pair, authority, &names(wanted), later(days));
            assert_eq!(decision, renew, "{case}");
        }
    }

    #[test]
    fn the_expiry_of_a_certificate_is_read() {
        let authority = make_authority("ca", now()).expect("a CA");
        let pair = issue(&authority, &names(NAMES), now()).expect("a certificate");
        let expires = expires_at(&pair.certificate).expect("a time");
        assert!(
            later(SERVING_DAYS - 1) <= expires && expires <= later(SERVING_DAYS + 1),
            "{expires}"
        );
        assert_eq!(expires_at("no certificate"), None);
    }

    #[test]
    fn a_ca_is_renewed_near_its_end() {
        let authority = make_authority("ca", now()).expect("a CA");
        let serving = issue(&authority, &names(NAMES), now()).expect("a certificate");
        assert!(!authority_needs_renewal(&authority, now()));
        assert!(!authority_needs_renewal(&authority, later(3559)));
        assert!(authority_needs_renewal(&authority, later(3561)));
        assert!(authority_needs_renewal(&serving, now()));
    }

    #[test]
    fn keys_are_not_printed() {
        let authority = make_authority("ca", now()).expect("a CA");
        assert!(!format!("{authority:?}").contains("PRIVATE"));
    }

    #[test]
    fn an_invalid_name_is_an_error() {
        let authority = make_authority("ca", now()).expect("a CA");
        let error = issue(&authority, &names(&["näme"]), now()).expect_err("not ASCII");
        assert!(error.to_string().starts_with("cannot make a certificate for \"näme\""), "{error}");
    }
}
