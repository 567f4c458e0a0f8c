//! Keys of requests: by address, header or extension.

use std::any::type_name;
use std::net::IpAddr;

use http::StatusCode;
use http::request::Parts;

use crate::address::network;
use crate::check_key;

/// Why a request has no key. The layer responds with `status`, and the request does not reach the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKey {
    /// The status of the response.
    pub status: StatusCode,
    /// What is wrong, for the client.
    pub detail: String,
}

/// Returns the key of an address: an IPv4 address as it is, an IPv6 address by its /64, which one subscriber has.
///
/// ```
/// use tollgate::tower::key::address;
///
/// assert_eq!(address("::ffff:192.0.2.1".parse().unwrap()), "192.0.2.1");
/// assert_eq!(address("2001:db8::1".parse().unwrap()), address("2001:db8::ffff".parse().unwrap()));
/// ```
pub fn address(address: IpAddr) -> String {
    network(address)
}

/// Returns a function that takes the key from an extension of the request, such as axum's `ConnectInfo<SocketAddr>` or
/// the user that another layer found. A request without that extension gets a 500: the server forgot to add it.
///
/// ```
/// use tollgate::tower::key;
///
/// #[derive(Clone)]
/// struct User(u64);
///
/// let key = key::extension(|user: &User| user.0.to_string());
/// let (mut parts, ()) = http::Request::new(()).into_parts();
/// assert_eq!(key(&parts).unwrap_err().status, 500);
/// parts.extensions.insert(User(42));
/// assert_eq!(key(&parts).unwrap(), "42");
/// ```
pub fn extension<T: Clone + Send + Sync + 'static>(
    key: impl Fn(&T) -> String,
) -> impl Fn(&Parts) -> Result<String, NoKey> {
    move |parts| {
        let missing = || NoKey {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            detail: format!("the request has no extension {}", type_name::<T>()),
        };
        parts.extensions.get().map(&key).ok_or_else(missing)
    }
}

/// Returns a function that takes the key from a header. A request gets a 400 if it has none, several, or one that is
/// not visible ASCII of 1 to 1,024 characters.
///
/// A client can make up the value of a header: count by one only if something before this layer has checked it.
///
/// ```
/// use tollgate::tower::key;
///
/// let key = key::header("x-api-key");
/// let (parts, ()) = http::Request::builder().header("X-Api-Key", "abc").body(()).unwrap().into_parts();
/// assert_eq!(key(&parts).unwrap(), "abc");
/// let (parts, ()) = http::Request::new(()).into_parts();
/// assert_eq!(key(&parts).unwrap_err().detail, "the header x-api-key is required, once");
/// ```
pub fn header(name: &'static str) -> impl Fn(&Parts) -> Result<String, NoKey> {
    let no_key = |detail| NoKey { status: StatusCode::BAD_REQUEST, detail };
    move |parts| {
        let mut values = parts.headers.get_all(name).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(no_key(format!("the header {name} is required, once")));
        };
        let text = value.to_str().map(str::trim).ok().filter(|text| check_key(text).is_ok());
        text.map(Into::into)
            .ok_or_else(|| no_key(format!("the header {name} must be 1 to 1024 visible ASCII characters")))
    }
}

/// Returns the key of the client's address as Cloudflare saw it, in `CF-Connecting-IP`: only for a server that nobody
/// reaches but through Cloudflare, since elsewhere a client sends what it likes. Without it, a request gets a 400.
///
/// ```
/// use tollgate::tower::key::cloudflare_address;
///
/// let request = http::Request::builder().header("CF-Connecting-IP", "2001:db8::1").body(()).unwrap();
/// assert_eq!(cloudflare_address(&request.into_parts().0).unwrap(), "2001:0db8:0000:0000::/64");
/// ```
pub fn cloudflare_address(parts: &Parts) -> Result<String, NoKey> {
    let text = header("cf-connecting-ip")(parts)?;
    let no_key = |_| NoKey {
        status: StatusCode::BAD_REQUEST,
        detail: "the header cf-connecting-ip must be an IP address".into(),
    };
    text.parse::<IpAddr>().map(network).map_err(no_key)
}
