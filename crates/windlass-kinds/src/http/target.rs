//! Which addresses an `http` task may reach (promise S6).
//!
//! A task's payload often comes from outside. It must not be able to reach the machine, its network or its
//! cloud's metadata service. So everything that is not clearly a public unicast address is refused unless the
//! operator allowed its block.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cidr::Cidr;

/// The addresses that the operator allowed in addition to the public ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    allowed: Vec<Cidr>,
}

/// An address that may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "target {address} is refused: {reason}; start the worker with --allow-target {address} (or a CIDR around it) to allow it"
)]
pub(crate) struct Refused {
    pub(crate) address: IpAddr,
    pub(crate) reason: &'static str,
}

impl Policy {
    pub(crate) fn new(allowed: Vec<Cidr>) -> Self {
        Self { allowed }
    }

    /// The address to connect to: the given one in its canonical form.
    pub(crate) fn check(&self, address: IpAddr) -> Result<IpAddr, Refused> {
        // A mapped address is an IPv4 address in another form, and the kernel treats it as one.
        let plain = address.to_canonical();
        if self.allowed.iter().any(|block| block.contains(plain) || block.contains(address)) {
            return Ok(plain);
        }
        match reason_against(plain) {
            Some(reason) => Err(Refused { address: plain, reason }),
            None => Ok(plain),
        }
    }
}

/// Why an address is not a public one, if it is not.
fn reason_against(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => reason_against_v4(v4),
        IpAddr::V6(v6) => reason_against_v6(v6),
    }
}

fn reason_against_v4(address: Ipv4Addr) -> Option<&'static str> {
    find(NOT_PUBLIC_V4, IpAddr::V4(address))
}

fn reason_against_v6(address: Ipv6Addr) -> Option<&'static str> {
    // With DNS64 every IPv4-only host has such an address, so the IPv4 address in it is checked.
    if NAT64.contains(IpAddr::V6(address)) {
        return reason_against_v4(Ipv4Addr::from_bits(address.to_bits() as u32));
    }
    let address = IpAddr::V6(address);
    find(NOT_PUBLIC_V6, address)
        .or_else(|| (!GLOBAL_UNICAST.contains(address)).then_some("it is not a global unicast address"))
}

fn find(table: &[(Cidr, &'static str)], address: IpAddr) -> Option<&'static str> {
    table.iter().find(|(block, _)| block.contains(address)).map(|(_, reason)| *reason)
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Cidr {
    Cidr::trusted(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Cidr {
    Cidr::trusted(IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix)
}

/// The IPv6 addresses that lead to hosts on the public network; all others are special.
const GLOBAL_UNICAST: Cidr = v6(0x2000, 0, 0, 3);
/// The well-known prefix through which IPv6-only networks reach IPv4 hosts.
const NAT64: Cidr = v6(0x64, 0xff9b, 0, 96);

/// From the IANA registry of special addresses, and two on which clouds serve metadata. The first match wins.
const NOT_PUBLIC_V4: &[(Cidr, &str)] = &[
    (v4(169, 254, 169, 254, 32), "it is a cloud metadata address"),
    (v4(100, 100, 100, 200, 32), "it is a cloud metadata address"),
    (v4(168, 63, 129, 16, 32), "it is a cloud metadata address"),
    (v4(0, 0, 0, 0, 8), "it is an unspecified address"),
    (v4(10, 0, 0, 0, 8), "it is a private address"),
    (v4(100, 64, 0, 0, 10), "it is a carrier-grade NAT address"),
    (v4(127, 0, 0, 0, 8), "it is a loopback address"),
    (v4(169, 254, 0, 0, 16), "it is a link-local address"),
    (v4(172, 16, 0, 0, 12), "it is a private address"),
    (v4(192, 0, 0, 0, 24), "it is a protocol assignment"),
    (v4(192, 0, 2, 0, 24), "it is a documentation address"),
    (v4(192, 88, 99, 0, 24), "it is a 6to4 relay address"),
    (v4(192, 168, 0, 0, 16), "it is a private address"),
    (v4(198, 18, 0, 0, 15), "it is a benchmark address"),
    (v4(198, 51, 100, 0, 24), "it is a documentation address"),
    (v4(203, 0, 113, 0, 24), "it is a documentation address"),
    (v4(224, 0, 0, 0, 4), "it is a multicast address"),
    (v4(255, 255, 255, 255, 32), "it is the broadcast address"),
    (v4(240, 0, 0, 0, 4), "it is a reserved address"),
];

/// The same for IPv6, with names for the common blocks; any other address outside of [`GLOBAL_UNICAST`] is
/// refused without a name.
const NOT_PUBLIC_V6: &[(Cidr, &str)] = &[
    (v6(0xfd00, 0xec2, 0, 32), "it is a cloud metadata address"),
    (Cidr::trusted(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128), "it is an unspecified address"),
    (Cidr::trusted(IpAddr::V6(Ipv6Addr::LOCALHOST), 128), "it is a loopback address"),
    (v6(0, 0, 0, 96), "it is an IPv4-compatible address"),
    (v6(0x64, 0xff9b, 1, 48), "it is a local NAT64 address"),
    (v6(0xfc00, 0, 0, 7), "it is a unique local address"),
    (v6(0xfe80, 0, 0, 10), "it is a link-local address"),
    (v6(0xfec0, 0, 0, 10), "it is a site-local address"),
    (v6(0xff00, 0, 0, 8), "it is a multicast address"),
    (v6(0x2001, 0xdb8, 0, 32), "it is a documentation address"),
    (v6(0x2001, 0, 0, 32), "it is a Teredo address"),
    (v6(0x2001, 2, 0, 48), "it is a benchmark address"),
    (v6(0x2001, 0, 0, 23), "it is a protocol assignment"),
    (v6(0x2002, 0, 0, 16), "it is a 6to4 address"),
    (v6(0x3fff, 0, 0, 20), "it is a documentation address"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(address: &str) -> Option<&'static str> {
        Policy::default().check(address.parse().unwrap()).err().map(|refused| refused.reason)
    }

    #[test]
    fn only_public_unicast_addresses_are_allowed_by_default() {
        for (address, expected) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("10.0.0.1", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "carrier-grade"),
            ("100.127.255.255", "carrier-grade"),
            ("100.100.100.200", "metadata"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("168.63.129.16", "metadata"),
            ("169.254.0.1", "link-local"),
            ("169.254.169.254", "metadata"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.192", "protocol assignment"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "6to4 relay"),
            ("192.168.1.1", "private"),
            ("198.18.0.1", "benchmark"),
            ("198.19.255.255", "benchmark"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "IPv4-compatible"),
            ("::8.8.8.8", "IPv4-compatible"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.0.0.1", "private"),
            ("::ffff:169.254.169.254", "metadata"),
            ("::ffff:0:7f00:1", "not a global unicast"),
            ("64:ff9b::127.0.0.1", "loopback"),
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b::a9fe:a9fe", "metadata"),
            ("64:ff9b:1::1", "local NAT64"),
            ("100::1", "not a global unicast"),
            ("2001::1", "Teredo"),
            ("2001:2::1", "benchmark"),
            ("2001:10::1", "protocol assignment"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "6to4"),
            ("2002:808:808::1", "6to4"),
            ("3fff::1", "documentation"),
            ("5f00::1", "not a global unicast"),
            ("fc00::1", "unique local"),
            ("fd12:3456::1", "unique local"),
            ("fd00:ec2::254", "metadata"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ] {
            let found = reason(address);
            assert!(found.is_some_and(|reason| reason.contains(expected)), "{address}: {found:?}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2606:4700:4700::1111",
            "2a00:1450::1",
        ] {
            assert_eq!(reason(address), None, "{address}");
        }
    }

    #[test]
    fn an_allowed_block_allows_only_itself_in_every_form() {
        let policy = Policy::new(vec!["127.0.0.0/8".parse().unwrap(), "fd00:1::/32".parse().unwrap()]);
        let check = |address: &str| policy.check(address.parse().unwrap());
        assert_eq!(check("127.0.0.1").unwrap(), IpAddr::from([127, 0, 0, 1]));
        assert_eq!(check("::ffff:127.0.0.1").unwrap(), IpAddr::from([127, 0, 0, 1]));
        assert!(check("fd00:1::5").is_ok());
        assert!(check("10.0.0.1").is_err());
        assert!(check("::1").is_err());
        assert!(check("fd00:2::5").is_err());
    }

    #[test]
    fn a_refusal_names_the_flag() {
        let text = Policy::default().check("10.1.2.3".parse().unwrap()).unwrap_err().to_string();
        assert!(text.contains("--allow-target 10.1.2.3"), "{text}");
    }
}
