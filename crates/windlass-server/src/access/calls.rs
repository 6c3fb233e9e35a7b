//! Every call with the scope that it needs, and the decision about one. A door that takes a call which is not in this table
//! refuses it, so a new call cannot be forgotten.

use windlass_core::{Scope, Scopes};

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Method and route (`GET /v1/tasks/{id}`), or service and method of gRPC (`windlass.v1.Tasks/GetTask`).
    pub name: &'static str,
    /// What the caller must have; nothing for what anybody may ask.
    pub scope: Option<Scope>,
    /// Whether it changes, stops or removes what others made or rely on. Such a call is audited.
    pub destructive: bool,
}

impl Call {
    /// The call of a method and a route.
    pub fn of_route(method: &str, route: &str) -> Option<&'static Self> {
        // Whatever can be fetched can be asked for its head alone.
        let method = if method == "HEAD" { "GET" } else { method };
        CALLS.iter().find(|call| call.name.split_once(' ') == Some((method, route)))
    }

    /// The call of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CALLS.iter().find(|call| call.name == name)
    }

    /// Methods of a route.
    pub fn methods(route: &str) -> impl Iterator<Item = &'static str> {
        CALLS
            .iter()
            .filter_map(|call| call.name.split_once(' '))
            .filter_map(move |(method, of)| (of == route).then_some(method))
    }
}

macro_rules! calls {
    ($($scope:expr, $destructive:literal => { $($name:literal,)* })*) => {
        /// Every call.
        pub const CALLS: &[Call] =
            &[$($(Call { name: $name, scope: $scope, destructive: $destructive },)*)*];
    };
}

calls! {
    None, false => {
        "GET /", "GET /healthz", "GET /readyz", "GET /v1/openapi.json",
    }
    Some(Scope::Read), false => {
        "GET /metrics",
        "GET /v1/tasks", "GET /v1/tasks/{id}", "GET /v1/tasks/{id}/why", "GET /v1/tasks/{id}/wait",
        "POST /v1/tasks/wait",
        "GET /v1/dead", "GET /v1/queues", "GET /v1/jobs", "GET /v1/jobs/{name}",
        "GET /v1/workflows", "GET /v1/workflows/{name}", "GET /v1/schedules", "GET /v1/schedules/{name}",
        "GET /v1/workers", "GET /v1/info", "GET /v1/overview", "GET /v1/audit",
    }
    Some(Scope::Enqueue), false => {
        "POST /v1/tasks",
    }
    Some(Scope::Admin), true => {
        "POST /v1/tasks/{id}/cancel", "POST /v1/tasks/{id}/retry",
        "POST /v1/tasks/cancel", "POST /v1/tasks/retry",
        "POST /v1/queues/{name}/pause", "POST /v1/queues/{name}/resume",
        "PUT /v1/jobs/{name}", "DELETE /v1/jobs/{name}",
        "POST /v1/workflows/{name}/retry", "POST /v1/workflows/{name}/skip",
        "POST /v1/workflows/{name}/cancel",
        "PUT /v1/schedules/{name}", "DELETE /v1/schedules/{name}", "POST /v1/schedules/{name}/pause",
        "POST /v1/schedules/{name}/resume", "POST /v1/schedules/{name}/run",
        "PUT /v1/workers/{id}",
        "POST /v1/tokens", "DELETE /v1/tokens/{id}",
    }
    // Who may do what is for nobody but those who decide it.
    Some(Scope::Admin), false => {
        "GET /v1/tokens",
    }
}

/// Whether anything can be changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// It can.
    #[default]
    Whole,
    /// It cannot, whoever asks: nothing is enqueued, claimed, settled or changed through this server.
    ReadOnly,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is made.
    Allowed,
    /// The caller lacks its scope.
    MissingScope,
    /// Nobody may make it here.
    ReadOnly,
}

/// Decides about a call of somebody with these scopes. Who may not is told so before anything else: what a server is good
/// for is not for strangers.
pub fn may(scopes: Scopes, call: &Call, mode: Mode) -> Verdict {
    let Some(scope) = call.scope else { return Verdict::Allowed };
    let changes = call.destructive || matches!(scope, Scope::Enqueue | Scope::Work);
    match mode {
        _ if !scopes.allow(scope) => Verdict::MissingScope,
        Mode::ReadOnly if changes => Verdict::ReadOnly,
        Mode::Whole | Mode::ReadOnly => Verdict::Allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_named_twice_and_each_that_changes_something_needs_admin() {
        for (place, call) in CALLS.iter().enumerate() {
            assert!(CALLS.iter().skip(place + 1).all(|other| other.name != call.name), "{}", call.name);
            assert!(!call.destructive || call.scope == Some(Scope::Admin), "{}", call.name);
        }
    }

    #[test]
    fn a_call_of_http_that_does_more_than_look_is_an_enqueue_or_destructive() {
        for call in CALLS.iter().filter(|call| call.name.contains(' ') && !call.name.starts_with("GET ")) {
            let looks = call.name == "POST /v1/tasks/wait";
            let known = call.destructive || call.scope == Some(Scope::Enqueue) || looks;
            assert!(known, "{}", call.name);
        }
    }

    #[test]
    fn every_scope_is_asked_about_every_call() {
        for call in CALLS {
            for held in Scope::ALL {
                let allowed = call.scope.is_none_or(|scope| held == scope || held == Scope::Admin);
                let verdict = may(Scopes::of([held]), call, Mode::Whole);
                assert_eq!(verdict == Verdict::Allowed, allowed, "{held} for {}", call.name);
            }
        }
    }

    #[test]
    fn in_read_only_mode_nobody_changes_anything_and_all_may_look_as_before() {
        let admin = Scopes::of([Scope::Admin]);
        for call in CALLS {
            let looks = !call.destructive && !matches!(call.scope, Some(Scope::Enqueue | Scope::Work));
            let expected = if looks { Verdict::Allowed } else { Verdict::ReadOnly };
            assert_eq!(may(admin, call, Mode::ReadOnly), expected, "{}", call.name);
        }
        let cancel = Call::named("POST /v1/tasks/cancel").unwrap();
        assert_eq!(may(Scopes::NONE, cancel, Mode::ReadOnly), Verdict::MissingScope);
    }
}
