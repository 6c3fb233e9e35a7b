//! The caller who looks at a page, and what the page may offer to that caller.

use std::{fmt::Write as _, sync::Arc};

use http::{HeaderMap, Uri};
use serde::de::DeserializeOwned;

use super::{FRAGMENT, FRESH};
use crate::{
    access::{Auth, Call, Caller, Mode, Verdict, may},
    api::{ErrorCode, ErrorDetail},
    http::{Server, query},
    operations::{Operations, Result},
    public_url::Prefix,
};

/// One request for a page.
pub(super) struct Ask {
    pub(super) server: Arc<Server>,
    pub(super) viewer: Viewer,
    pub(super) uri: Uri,
    /// The name or id in the path.
    pub(super) name: Option<String>,
    pub(super) headers: HeaderMap,
}

impl Ask {
    pub(super) fn operations(&self) -> &Operations {
        &self.server.operations
    }

    /// The name or id in the path.
    pub(super) fn name(&self) -> Result<&str> {
        self.name
            .as_deref()
            .ok_or_else(|| ErrorDetail::new(ErrorCode::NotFound, "the address of this page has no name"))
    }

    pub(super) fn query<T: DeserializeOwned>(&self) -> Result<T> {
        query(&self.uri)
    }

    /// Path and query: the address of the page without the origin.
    pub(super) fn address(&self) -> &str {
        self.uri.path_and_query().map_or("/", |address| address.as_str())
    }

    pub(super) fn wants_fragment(&self) -> bool {
        self.headers.contains_key(FRAGMENT)
    }

    pub(super) fn wants_fresh(&self) -> bool {
        self.headers.contains_key(FRESH)
    }
}

/// Who looks.
#[derive(Debug, Clone)]
pub(super) struct Viewer {
    caller: Arc<Caller>,
    mode: Mode,
    auth: Auth,
    links: Prefix,
}

impl Viewer {
    pub(super) fn new(caller: Arc<Caller>, mode: Mode, auth: Auth, links: Prefix) -> Self {
        Self { caller, mode, auth, links }
    }

    /// Whether the viewer may make this call of the API. A page shows no button that would be refused.
    pub(super) fn may(&self, call: &str) -> bool {
        Call::named(call).is_some_and(|call| may(self.caller.scopes(), call, self.mode) == Verdict::Allowed)
    }

    /// The viewer in a word or two, if the server asks callers who they are.
    pub(super) fn name(&self) -> Option<String> {
        (self.auth == Auth::Tokens).then(|| self.caller.to_string())
    }

    /// The caller who looks.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The viewer's rights and the viewer: what decides about a page that shows the viewer's own things.
    pub(super) fn identity(&self) -> String {
        format!("{} {}", self.rights(), self.caller)
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.mode == Mode::ReadOnly
    }

    pub(super) fn link(&self, path: &str) -> String {
        self.links.link(path)
    }

    /// A link to the page of one thing: `at("/jobs", "a b")` is `/jobs/a%20b`.
    pub(super) fn at(&self, folder: &str, name: &str) -> String {
        self.links.link(&format!("{folder}/{}", encoded(name)))
    }

    pub(super) fn links(&self) -> &Prefix {
        &self.links
    }

    /// What decides which buttons a page shows: two viewers with the same rights share one drawing.
    pub(super) fn rights(&self) -> String {
        format!("{} {:?}", self.caller.scopes(), self.mode)
    }
}

/// A text as one segment of a path or one value of a query.
pub(super) fn encoded(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            safe.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_link_cannot_leave_its_segment() {
        assert_eq!(encoded("a/b?c#d%e&f é"), "a%2Fb%3Fc%23d%25e%26f%20%C3%A9");
        assert_eq!(encoded("api.example-com_1~"), "api.example-com_1~");
    }

    #[test]
    fn only_a_permitted_call_gets_a_button() {
        use windlass_core::{Scope, Scopes};
        let with = |scope, mode| {
            let certificate = crate::access::Certificate { fingerprint: "ab".into() };
            let caller = Caller::Certificate { certificate, scopes: Scopes::of([scope]) };
            Viewer::new(Arc::new(caller), mode, Auth::Tokens, Prefix::default())
        };
        let pause = "POST /v1/queues/{name}/pause";
        assert!(with(Scope::Admin, Mode::Whole).may(pause));
        assert!(!with(Scope::Admin, Mode::ReadOnly).may(pause));
        assert!(!with(Scope::Read, Mode::Whole).may(pause));
        assert!(!with(Scope::Admin, Mode::Whole).may("POST /v1/moon/land"));
    }
}
