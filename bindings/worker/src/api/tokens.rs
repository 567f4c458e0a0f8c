//! The limit on wrong tokens of the HTTP API, by the address that they come from.

use tollgate::{Error, Policies, Policy};

use crate::config::policies::PolicySet;
use crate::request::key::{Source, encode, ip};

/// The name of the policy.
const NAME: &str = "wrong-tokens";

/// The wrong tokens that an address may send at once, and per minute.
const WRONG: u64 = 10;

/// Returns the policy that limits wrong tokens.
pub(crate) fn policy() -> Result<PolicySet, Error> {
    let policy = Policy::token_bucket(WRONG, WRONG, "1m")?.named(NAME)?;
    Ok(PolicySet::new(Policies::new(vec![policy])?))
}

/// Returns the name of the object that counts an address's wrong tokens. No key of a rule or of the API has that name.
pub(crate) fn object(source: &impl Source) -> String {
    encode(NAME, &ip(source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::key::testing::Request;

    #[test]
    fn an_address_has_ten_wrong_tokens() {
        assert_eq!(policy().unwrap().policies.names().collect::<Vec<_>>(), ["wrong-tokens"]);
        assert_eq!(object(&Request(vec![("cf-connecting-ip", "192.0.2.1")])), "/wrong-tokens=9:192.0.2.1");
    }
}
