//! One key for every client: an IPv4 address as it is, an IPv6 address by its /64, which one subscriber has.

use std::net::IpAddr;

use crate::address::network;

/// The key of clients whose address is unknown. They share one budget.
const UNKNOWN: &str = "unknown";

/// Returns the key of the client that sent a request, by the address that Cloudflare saw.
///
/// Requests without an address, as under a local `wrangler dev`, share one key.
///
/// # Errors
///
/// Fails only if the platform does.
pub fn client_address(request: &worker::Request) -> worker::Result<String> {
    let address = request.headers().get("CF-Connecting-IP")?;
    Ok(address.and_then(|address| client_key(&address)).unwrap_or_else(|| UNKNOWN.into()))
}

/// Returns the key of the client with this address, in any spelling; `None` if it is not an address.
///
/// IPv4 addresses are used as they are, IPv6 addresses by their /64, which one subscriber has.
///
/// ```
/// use tollgate::cloudflare::client_key;
///
/// assert_eq!(client_key("::ffff:192.0.2.1").as_deref(), Some("192.0.2.1"));
/// assert_eq!(client_key("2001:db8::1"), client_key("2001:db8::ffff"));
/// assert_eq!(client_key("unknown"), None);
/// ```
pub fn client_key(address: &str) -> Option<String> {
    address.trim().parse::<IpAddr>().ok().map(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_for_all_spellings() {
        for spelling in [
            "2001:db8::1",
            "2001:0DB8:0:0:0:0:0:1",
            "2001:db8:0000:0000:ffff:ffff:ffff:ffff",
            "2001:db8::0.0.0.1",
            " 2001:db8::9 ",
        ] {
            assert_eq!(client_key(spelling).as_deref(), Some("2001:0db8:0000:0000::/64"), "{spelling}");
        }
        for spelling in ["192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1"] {
            assert_eq!(client_key(spelling).as_deref(), Some("192.0.2.1"), "{spelling}");
        }
        assert_ne!(client_key("2001:db8:0:1::1"), client_key("2001:db8::1"));
    }

    #[test]
    fn an_invalid_address_has_no_key() {
        for spelling in ["", "unknown", "192.0.2", "192.0.2.1, 192.0.2.2", "192.0.2.01", "fe80::1%eth0", "1.2.3.4:80"] {
            assert_eq!(client_key(spelling), None, "{spelling}");
        }
    }
}
