//! Ranges of addresses (CIDR), and lists of them that let requests pass or deny them.

use std::net::IpAddr;

use crate::text::shown;

/// Describes the accepted ranges in error messages.
pub(crate) const ACCEPTS: &str =
    "an address such as \"192.0.2.7\", or a range such as \"192.0.2.0/24\" or \"2001:db8::/32\"";

/// A range of addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    is_v4: bool,
    /// The address, in the lowest bits.
    bits: u128,
    prefix: u32,
}

/// Why a text is not a range.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    NoRange,
    /// It has bits after its prefix; the range that has not.
    HostBits(String),
}

impl Range {
    /// Parses an address or a range. IPv4-mapped IPv6 is IPv4.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix_of(prefix).ok_or(Invalid::NoRange)?)),
            None => (text, None),
        };
        let given: IpAddr = address.parse().map_err(|_| Invalid::NoRange)?;
        let longest = if given.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(longest);
        if prefix > longest {
            return Err(Invalid::NoRange);
        }
        let bits = bits_of(given);
        let host = if prefix == 0 { low(longest) } else { low(longest - prefix) };
        if bits & host != 0 {
            let network = match given {
                IpAddr::V4(_) => IpAddr::from(((bits & !host) as u32).to_be_bytes()).to_string(),
                IpAddr::V6(_) => IpAddr::from((bits & !host).to_be_bytes()).to_string(),
            };
            return Err(Invalid::HostBits(format!("{network}/{prefix}")));
        }
        // A range of all mapped addresses or fewer is one of IPv4; a larger one has none of them.
        let canonical = given.to_canonical();
        let is_mapped = given.is_ipv6() && canonical.is_ipv4() && prefix >= 96;
        Ok(match is_mapped {
            true => Self { is_v4: true, bits: bits_of(canonical), prefix: prefix - 96 },
            false => Self { is_v4: given.is_ipv4(), bits, prefix },
        })
    }

    fn contains(&self, is_v4: bool, bits: u128) -> bool {
        let longest: u32 = if self.is_v4 { 32 } else { 128 };
        is_v4 == self.is_v4 && (bits ^ self.bits) & !low(longest - self.prefix) & low(longest) == 0
    }
}

/// How a range is treated: it lets the requests of its addresses pass without a limit, or it denies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Deny,
}

/// Returns the verdict of the narrowest range that contains an address; `None` if none does. A text that is no address may
/// hide a denied one, so it is denied if any is.
pub(crate) fn verdict(ranges: &[(Range, Verdict)], address: &str) -> Option<Verdict> {
    let Ok(address) = address.trim().parse::<IpAddr>() else {
        return ranges.iter().map(|(_, verdict)| *verdict).find(|verdict| *verdict == Verdict::Deny);
    };
    let address = address.to_canonical();
    let (is_v4, bits) = (address.is_ipv4(), bits_of(address));
    let containing = ranges.iter().filter(|(range, _)| range.contains(is_v4, bits));
    containing.max_by_key(|(range, _)| range.prefix).map(|(_, verdict)| *verdict)
}

/// Returns the error text of an invalid range.
pub(crate) fn problem(text: &str, invalid: Invalid) -> String {
    match invalid {
        Invalid::NoRange => format!("{} is not {ACCEPTS}", shown(text)),
        Invalid::HostBits(network) => format!("{} has bits after its prefix; use {}", shown(text), shown(&network)),
    }
}

/// Parses the length of a prefix: digits, without a zero in front.
fn prefix_of(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// Returns a number whose lowest `count` bits are set.
fn low(count: u32) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../../../tests/vectors/ranges.json")).unwrap()
    }

    #[test]
    fn vectors_of_ranges() {
        for vector in vectors()["contains"].as_array().unwrap() {
            let range = Range::parse(vector["range"].as_str().unwrap()).unwrap();
            for (list, expected) in [("in", Some(Verdict::Deny)), ("out", None)] {
                for address in vector[list].as_array().unwrap() {
                    let address = address.as_str().unwrap();
                    // An unreadable address is in no range.
                    let expected = expected.or(address.parse::<IpAddr>().is_err().then_some(Verdict::Deny));
                    assert_eq!(verdict(&[(range, Verdict::Deny)], address), expected, "{vector}: {address}");
                }
            }
        }
    }

    #[test]
    fn vectors_of_texts_that_are_no_ranges() {
        let vectors = vectors();
        for text in vectors["invalid"].as_array().unwrap() {
            let text = text.as_str().unwrap();
            assert_eq!(Range::parse(text), Err(Invalid::NoRange), "{text}");
        }
        for (text, network) in vectors["hostBits"].as_object().unwrap() {
            assert_eq!(Range::parse(text), Err(Invalid::HostBits(network.as_str().unwrap().into())));
            assert!(problem(text, Range::parse(text).unwrap_err()).contains("bits after its prefix; use "));
        }
    }

    #[test]
    fn the_narrowest_range_decides() {
        let range = |text, verdict| (Range::parse(text).unwrap(), verdict);
        let ranges = [
            range("10.0.0.0/8", Verdict::Allow),
            range("10.1.0.0/16", Verdict::Deny),
            range("10.1.2.3", Verdict::Allow),
            range("0.0.0.0/0", Verdict::Deny),
        ];
        let found = |address| verdict(&ranges, address);
        assert_eq!([found("10.9.0.1"), found("10.1.9.9")], [Some(Verdict::Allow), Some(Verdict::Deny)]);
        assert_eq!([found("::ffff:10.1.2.3"), found("8.8.8.8")], [Some(Verdict::Allow), Some(Verdict::Deny)]);
        assert_eq!(found("2001:db8::1"), None);
    }

    #[test]
    fn a_text_that_is_no_address_is_denied_if_any_address_is() {
        let (allowed, denied) = (Range::parse("192.0.2.7").unwrap(), Range::parse("203.0.113.0/24").unwrap());
        for text in
            ["203.0.113.9:443", "203.0.113.9, 192.0.2.7", "[2001:db8::1]", "fe80::1%eth0", "203.0.113.009", "x", ""]
        {
            let both = [(allowed, Verdict::Allow), (denied, Verdict::Deny)];
            assert_eq!(verdict(&both, text), Some(Verdict::Deny), "{text}");
            assert_eq!(verdict(&both[..1], text), None, "{text}");
        }
    }
}
