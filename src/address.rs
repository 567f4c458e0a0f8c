//! One key for every client: an IPv4 address as it is, an IPv6 address by its /64, which one subscriber has.

use alloc::format;
use alloc::string::{String, ToString};
use core::net::IpAddr;

/// Returns the key of an address.
pub(crate) fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:04x}:{b:04x}:{c:04x}:{d:04x}::/64")
        }
    }
}
