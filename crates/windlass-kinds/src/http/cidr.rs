//! A block of addresses as an operator writes it.

use std::{fmt, net::IpAddr, str::FromStr};

/// A block of IPv4 or IPv6 addresses such as `10.0.0.0/8` or `fd00::/8`; a bare address is a block of one.
///
/// ```
/// use windlass_kinds::Cidr;
/// let block: Cidr = "10.0.0.0/8".parse().unwrap();
/// assert!(block.contains("10.1.2.3".parse().unwrap()));
/// assert!("10.1.2.3/8".parse::<Cidr>().unwrap_err().to_string().contains("10.0.0.0/8"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

/// The text is not a block of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseCidrError {
    /// The part before the slash is not an address.
    #[error("{0:?} is not a CIDR: expected an address and a prefix such as 10.0.0.0/8 or fd00::/8")]
    Address(String),
    /// The part after the slash is not a prefix length.
    #[error("{0:?} is not a CIDR: the prefix of this address must be 0 to {1}")]
    Prefix(String, u8),
    /// The address has bits beyond the prefix, so one of the two is probably a typing error.
    #[error("{0:?} has bits beyond its prefix: write {1} for the block, or the address alone for one host")]
    HostBits(String, Cidr),
}

impl Cidr {
    /// The block of `prefix` bits around an address.
    pub(crate) const fn trusted(network: IpAddr, prefix: u8) -> Self {
        Self { network, prefix }
    }

    /// Whether the address lies inside. An IPv4 block does not contain an IPv6 address, nor the reverse.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = mask(self.prefix, 32) as u32;
                network.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = mask(self.prefix, 128);
                network.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

/// A number of `width` bits whose first `prefix` are set.
const fn mask(prefix: u8, width: u8) -> u128 {
    let all = if width == 128 { u128::MAX } else { (1 << width) - 1 };
    match all.checked_shl((width - prefix) as u32) {
        Some(mask) => mask & all,
        None => 0,
    }
}

impl FromStr for Cidr {
    type Err = ParseCidrError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shown = || text.chars().take(60).collect::<String>();
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ParseCidrError::Address(shown()))?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().unwrap_or(u8::MAX)
            }
            Some(_) => u8::MAX,
        };
        if prefix > width {
            return Err(ParseCidrError::Prefix(shown(), width));
        }
        let network = match address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & mask(prefix, 32) as u32).into()),
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & mask(prefix, 128)).into()),
        };
        let block = Self { network, prefix };
        if network == address { Ok(block) } else { Err(ParseCidrError::HostBits(shown(), block)) }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_contains_exactly_its_addresses() {
        let cases = [
            ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]),
            ("192.0.2.7", ["192.0.2.7", "192.0.2.7"], ["192.0.2.6", "192.0.2.8"]),
            ("172.16.0.0/12", ["172.16.0.0", "172.31.255.255"], ["172.15.255.255", "172.32.0.0"]),
            ("fd00::/8", ["fd00::", "fdff::1"], ["fc00::", "fe00::"]),
            ("::1", ["::1", "::1"], ["::", "::2"]),
            ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::", "::1"]),
            ("::/0", ["::", "ffff::"], ["0.0.0.0", "127.0.0.1"]),
        ];
        for (block, inside, outside) in cases {
            let block: Cidr = block.parse().unwrap();
            for address in inside {
                assert!(block.contains(address.parse().unwrap()), "{block} {address}");
            }
            for address in outside {
                assert!(!block.contains(address.parse().unwrap()), "{block} {address}");
            }
        }
    }

    #[test]
    fn invalid_text_is_refused_with_an_example() {
        for (text, hint) in [
            ("", "such as 10.0.0.0/8"),
            ("example.com/8", "such as 10.0.0.0/8"),
            ("10.0.0/8", "such as 10.0.0.0/8"),
            ("10.0.0.0/33", "0 to 32"),
            ("10.0.0.0/", "0 to 32"),
            ("10.0.0.0/+8", "0 to 32"),
            ("fd00::/129", "0 to 128"),
            ("10.0.0.1/8", "write 10.0.0.0/8"),
        ] {
            let error = text.parse::<Cidr>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text:?}: {error}");
        }
    }
}
