//! Several servers behind one address, of which one can be written to: a primary and its standbys.
//!
//! Each host is tried apart from the others, with a time of its own. The driver would try them too, but a
//! host that accepts a connection and then says nothing would use up the time of all.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::config::Host;

/// The parameter that says which of several servers is meant.
const ATTRIBUTES: &str = "target_session_attrs";

/// The servers of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hosts {
    /// One address for each server.
    pub(super) urls: Vec<String>,
    /// A server that does not accept writes is passed over.
    pub(super) must_write: bool,
}

impl Hosts {
    /// Reads `scheme://user:password@first:5432,second/database?parameters`.
    ///
    /// # Errors
    /// One sentence: the address asks for a server that cannot be written to.
    pub(super) fn of(url: &str) -> Result<Self, String> {
        let (url, asked) = without_attributes(url);
        let is_asked = match asked {
            None | Some("any") => false,
            Some("read-write" | "primary") => true,
            Some(other) => {
                return Err(format!(
                    "{ATTRIBUTES}={other} names a server that cannot be written to; use read-write"
                ));
            }
        };
        let urls = split(&url);
        let must_write = is_asked || urls.len() > 1;
        Ok(Self { urls, must_write })
    }
}

/// Takes the parameter out of an address: the driver does not know all of its values.
fn without_attributes(url: &str) -> (String, Option<&str>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let mut asked = None;
    let rest: Vec<_> = query
        .split('&')
        .filter(|pair| match pair.split_once('=') {
            Some((ATTRIBUTES, value)) => {
                asked = Some(value);
                false
            }
            _ => true,
        })
        .collect();
    (if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) }, asked)
}

/// One address for each host. Hosts in parameters are left to the driver. As in the driver, the first `@` ends
/// the user and the password.
fn split(url: &str) -> Vec<String> {
    let start = url.find('@').map(|at| at + 1).or_else(|| url.find("://").map(|at| at + 3)).unwrap_or(0);
    let (user, rest) = url.split_at(start);
    let (hosts, beyond) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    hosts.split(',').map(|host| format!("{user}{host}{beyond}")).collect()
}

/// The host and the port of one server.
pub(super) fn shown(config: &tokio_postgres::Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    format!("{host}:{}", config.get_ports().first().unwrap_or(&5432))
}

/// The host that answered last: it is tried first.
#[derive(Debug, Default)]
pub(super) struct Preferred(AtomicUsize);

impl Preferred {
    /// The numbers of `n` hosts in the order in which they are tried.
    pub(super) fn order(&self, n: usize) -> impl Iterator<Item = usize> {
        let first = self.0.load(Ordering::Relaxed);
        (0..n).map(move |step| (first + step) % n)
    }

    pub(super) fn answered(&self, number: usize) {
        self.0.store(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_server_or_several() {
        let one = Hosts::of("postgres://me:p%40@db/app?sslmode=disable").unwrap();
        assert_eq!(one.urls, ["postgres://me:p%40@db/app?sslmode=disable"]);
        assert!(!one.must_write);
        let two = Hosts::of("postgres://me:a,b@db1:5433,db2/app?target_session_attrs=any&x=1").unwrap();
        assert_eq!(two.urls, ["postgres://me:a,b@db1:5433/app?x=1", "postgres://me:a,b@db2/app?x=1"]);
        assert!(two.must_write, "of several servers one accepts writes");
        let slash = Hosts::of("postgres://me:a,/b@db1,db2/app").unwrap();
        assert_eq!(slash.urls, ["postgres://me:a,/b@db1/app", "postgres://me:a,/b@db2/app"]);
        assert_eq!(Hosts::of("postgres://a,[::1]:1").unwrap().urls, ["postgres://a", "postgres://[::1]:1"]);
    }

    #[test]
    fn a_standby_may_be_passed_over_and_never_be_asked_for() {
        assert!(Hosts::of("postgres://db/app?target_session_attrs=read-write").unwrap().must_write);
        assert!(Hosts::of("postgres://db/app?target_session_attrs=primary").unwrap().must_write);
        let error = Hosts::of("postgres://db/app?target_session_attrs=standby").unwrap_err();
        assert!(error.contains("use read-write"), "{error}");
    }

    #[test]
    fn the_host_that_answered_is_tried_first() {
        let preferred = Preferred::default();
        assert_eq!(preferred.order(3).collect::<Vec<_>>(), [0, 1, 2]);
        preferred.answered(2);
        assert_eq!(preferred.order(3).collect::<Vec<_>>(), [2, 0, 1]);
    }
}
