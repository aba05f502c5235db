//! What a certificate says of who may sign others, read from its few fields (X.509, RFC 5280 4.1 and 4.2, in DER): who judges servers'
//! certificates refuses to read authorities for what does not matter to them, such as critical extensions that servers do not have.

use rustls::pki_types::UnixTime;

/// Tags of DER.
mod tag {
    pub(super) const BOOLEAN: u8 = 0x01;
    pub(super) const INTEGER: u8 = 0x02;
    pub(super) const BIT_STRING: u8 = 0x03;
    pub(super) const OCTET_STRING: u8 = 0x04;
    pub(super) const OBJECT: u8 = 0x06;
    pub(super) const UTC_TIME: u8 = 0x17;
    pub(super) const GENERAL_TIME: u8 = 0x18;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const VERSION: u8 = 0xa0;
    pub(super) const EXTENSIONS: u8 = 0xa3;
}

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const ANY_USAGE: &[u8] = &[0x55, 0x1d, 0x25, 0x00];
const SERVERS: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// Of `keyUsage`, the first eight bits: may sign certificates.
const MAY_SIGN: u8 = 0x04;

/// Whether a certificate may sign those of servers, now, and how many authorities may stand between it and them: any number where it does
/// not say. As OpenSSL has it (X509_check_ca), it may if it says so, if it does not say anything else than what its key may be used for,
/// or if it is its own issuer and of a version in which nobody could say so.
pub(crate) fn may_sign(certificate: &[u8], now: UnixTime) -> Option<usize> {
    let fields = read(certificate)?;
    let may_sign = fields.is_valid(now) && fields.is_authority() && fields.is_for_servers();
    may_sign.then(|| fields.depth()).flatten()
}

/// Whether what a certificate says of its key, if it does, lets it sign others.
pub(crate) fn has_key_that_signs(certificate: &[u8]) -> bool {
    read(certificate).is_some_and(|fields| fields.key_signs() != Some(false))
}

/// Whether a certificate is of version 1, in which it says nothing of what it is for.
pub(crate) fn is_of_version_1(certificate: &[u8]) -> bool {
    read(certificate).is_some_and(|fields| fields.version == 0)
}

/// The key of a certificate, with what it is made for (`SubjectPublicKeyInfo`).
pub(crate) fn key(certificate: &[u8]) -> Option<&[u8]> {
    read(certificate)?.key
}

/// Whether the time of a certificate is now.
pub(crate) fn is_valid(certificate: &[u8], now: UnixTime) -> bool {
    read(certificate).is_some_and(|fields| fields.is_valid(now))
}

/// The common name of the subject, if it has one: of several the last, which is the most specific (RFC 2818 3.1).
pub(crate) fn common_name(certificate: &[u8]) -> Option<&[u8]> {
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    let pairs = Der(read(certificate)?.subject).flat_map(|(_, set)| Der(set));
    let named = pairs.filter_map(|(_, pair)| {
        let mut pair = Der(pair);
        let (name, (_, text)) = (pair.one(tag::OBJECT)?, pair.next()?);
        (name == COMMON_NAME).then_some(text)
    });
    named.last()
}

struct Fields<'a> {
    /// 0 is version 1; 1 is version 2, in which as in version 1 there are no extensions; 2 is version 3.
    version: u8,
    issuer: &'a [u8],
    subject: &'a [u8],
    /// From the first second to the last, both included.
    validity: [u64; 2],
    /// With what it is made for, as it stands there.
    key: Option<&'a [u8]>,
    extensions: &'a [u8],
}

impl<'a> Fields<'a> {
    fn is_valid(&self, now: UnixTime) -> bool {
        (self.validity[0]..=self.validity[1]).contains(&now.as_secs())
    }

    fn is_authority(&self) -> bool {
        let is_one = self.basic_constraints().map(|mut says| says.one(tag::BOOLEAN).is_some_and(|says| says != [0]));
        match (is_one, self.key_signs()) {
            _ if self.version < 2 => self.issuer == self.subject,
            (Some(is_one), key_signs) => is_one && key_signs != Some(false),
            (None, key_signs) => key_signs == Some(true),
        }
    }

    /// How many authorities may stand below it: any number where it does not say, and nobody knows of a number that is none.
    fn depth(&self) -> Option<usize> {
        match self.basic_constraints().and_then(|mut says| says.find(|(tag, _)| *tag == tag::INTEGER)) {
            None => Some(usize::MAX),
            Some((_, digits)) => {
                let number = |all: usize, digit: &u8| all.saturating_mul(256).saturating_add(usize::from(*digit));
                digits.first().is_some_and(|first| *first < 0x80).then(|| digits.iter().fold(0, number))
            }
        }
    }

    /// Whether its key may sign certificates, if it says what its key is for.
    fn key_signs(&self) -> Option<bool> {
        // Behind the number of bits that are not used.
        let first = |value| Der(value).one(tag::BIT_STRING).and_then(|bits| bits.get(1).copied());
        self.extension(KEY_USAGE).map(|value| first(value).is_some_and(|first| first & MAY_SIGN != 0))
    }

    /// Whether it is an authority, and how many may stand below it, if it says either.
    fn basic_constraints(&self) -> Option<Der<'a>> {
        self.extension(BASIC_CONSTRAINTS).map(|value| Der(Der(value).one(tag::SEQUENCE).unwrap_or_default()))
    }

    /// Whether it is not for something else alone, such as mails.
    fn is_for_servers(&self) -> bool {
        self.extension(EXTENDED_KEY_USAGE).is_none_or(|value| {
            let uses = Der(value).one(tag::SEQUENCE).unwrap_or_default();
            Der(uses).any(|(_, used)| [ANY_USAGE, SERVERS].contains(&used))
        })
    }

    /// What an extension says.
    fn extension(&self, name: &[u8]) -> Option<&'a [u8]> {
        Der(self.extensions).find_map(|(_, extension)| {
            let mut parts = Der(extension);
            let is_it = parts.one(tag::OBJECT)? == name;
            is_it.then(|| parts.find(|(tag, _)| *tag == tag::OCTET_STRING).map_or(&[][..], |(_, value)| value))
        })
    }
}

fn read(certificate: &[u8]) -> Option<Fields<'_>> {
    let signed = Der(certificate).one(tag::SEQUENCE)?;
    let mut parts = Der(Der(signed).one(tag::SEQUENCE)?);
    let version = match parts.clone().one(tag::VERSION) {
        Some(version) => {
            parts.next();
            *Der(version).one(tag::INTEGER)?.last()?
        }
        None => 0,
    };
    let _serial = parts.one(tag::INTEGER)?;
    let _algorithm = parts.one(tag::SEQUENCE)?;
    let issuer = parts.one(tag::SEQUENCE)?;
    let mut validity = Der(parts.one(tag::SEQUENCE)?);
    let validity = [time(validity.next()?)?, time(validity.next()?)?];
    let subject = parts.one(tag::SEQUENCE)?;
    let rest = parts.0;
    let key = parts.one(tag::SEQUENCE).map(|_| &rest[..rest.len() - parts.0.len()]);
    let extensions = parts.find(|(tag, _)| *tag == tag::EXTENSIONS).map(|(_, inner)| inner);
    let extensions = extensions.and_then(|inner| Der(inner).one(tag::SEQUENCE)).unwrap_or_default();
    Some(Fields { version, issuer, subject, validity, key, extensions })
}

/// A time in seconds since 1970, if it is later: years of two digits are from 1950 to 2049 (RFC 5280 4.1.2.5).
fn time((tag, text): (u8, &[u8])) -> Option<u64> {
    let text = text.strip_suffix(b"Z")?;
    let (year, rest) = match tag {
        tag::UTC_TIME if text.len() == 12 => {
            let year = number(&text[..2])?;
            (if year < 50 { 2000 + year } else { 1900 + year }, &text[2..])
        }
        tag::GENERAL_TIME if text.len() == 14 => (number(&text[..4])?, &text[4..]),
        _ => return None,
    };
    let part = |at: usize| number(&rest[at..at + 2]);
    let (month, day, hour, minute, second) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days of the Gregorian calendar, in years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    const TO_1970: u64 = 719_468;
    Some(days.saturating_sub(TO_1970) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_one = digits.iter().all(u8::is_ascii_digit);
    is_one.then(|| digits.iter().fold(0, |all, digit| all * 10 + u64::from(digit - b'0')))
}

/// Elements, one behind the other: the tag of each and what it holds. What is cut short, or longer than 4 GiB, is none.
#[derive(Clone)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next, if it has this tag.
    fn one(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().and_then(|(found, value)| (found == tag).then_some(value))
    }
}

impl<'a> Iterator for Der<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)), rest)
            }
            0x80 | 0x85.. => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_of_both_kinds() {
        for (tag, text, seconds) in [
            (tag::UTC_TIME, "700101000000Z", Some(0)),
            (tag::UTC_TIME, "000229235959Z", Some(951_868_799)),
            (tag::UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (tag::UTC_TIME, "500101000000Z", Some(0)),
            (tag::GENERAL_TIME, "20500101000000Z", Some(2_524_608_000)),
            (tag::GENERAL_TIME, "21000301000000Z", Some(4_107_542_400)),
            (tag::GENERAL_TIME, "99991231235959Z", Some(253_402_300_799)),
            (tag::GENERAL_TIME, "00000101000000Z", None),
            (tag::UTC_TIME, "7001010000Z", None),
            (tag::UTC_TIME, "700101000000+0100", None),
            (tag::UTC_TIME, "701301000000Z", None),
            (tag::UTC_TIME, "70010100000\u{e9}", None),
            (tag::UTC_TIME, "+00101000000Z", None),
            (tag::INTEGER, "700101000000Z", None),
        ] {
            assert_eq!(time((tag, text.as_bytes())), seconds, "{text}");
        }
    }

    /// `CN=a, CN=b`, around what else a certificate has.
    #[test]
    fn of_several_common_names_the_last_counts() {
        let der = |tag: u8, parts: &[&[u8]]| [&[tag, parts.concat().len() as u8][..], &parts.concat()].concat();
        let name = |text: &str| {
            let pair = [der(tag::OBJECT, &[&[0x55, 0x04, 0x03]]), der(0x0c, &[text.as_bytes()])].concat();
            der(0x31, &[&der(tag::SEQUENCE, &[&pair])])
        };
        let time = der(tag::UTC_TIME, &[b"700101000000Z"]);
        let (empty, validity) = (der(tag::SEQUENCE, &[]), der(tag::SEQUENCE, &[&time, &time]));
        let subject =
            |names: &[&str]| der(tag::SEQUENCE, &[&names.iter().flat_map(|one| name(one)).collect::<Vec<_>>()]);
        let certificate = |names: &[&str]| {
            let (serial, subject) = (der(tag::INTEGER, &[&[1]]), subject(names));
            der(tag::SEQUENCE, &[&der(tag::SEQUENCE, &[&serial, &empty, &empty, &validity, &subject])])
        };
        assert_eq!(common_name(&certificate(&["a", "b"])), Some(&b"b"[..]));
        assert_eq!(common_name(&certificate(&["a"])), Some(&b"a"[..]));
        assert_eq!(common_name(&certificate(&[])), None);
    }

    /// Whatever bytes: they are read to their end, or not at all.
    #[test]
    fn no_bytes_break_the_reader() {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let whole = own.cert.der();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(2_000_000_000));
        assert_eq!(common_name(whole), Some(&b"rcgen self signed cert"[..]));
        for length in 0..whole.len() {
            may_sign(&whole[..length], now);
            for other in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut bytes = whole.to_vec();
                bytes[length] = other;
                may_sign(&bytes, now);
                common_name(&bytes);
            }
        }
    }
}
