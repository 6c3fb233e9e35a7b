//! Every call with the scope that it needs, and the decision about one. The server refuses a call that is not
//! in this table, so a new call without an entry cannot be left open.

use windlass_core::{Scope, Scopes};

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Method and route (`GET /v1/tasks/{id}`), or service and method of gRPC (`windlass.v1.Tasks/GetTask`).
    pub name: &'static str,
    /// The scope that the caller needs; `None` if the call is open to all.
    pub scope: Option<Scope>,
    /// Whether the call changes, stops or removes something that other callers made or rely on. Such a call
    /// is audited.
    pub destructive: bool,
}

impl Call {
    /// The call of a method and a route.
    pub fn of_route(method: &str, route: &str) -> Option<&'static Self> {
        // Every GET route also answers HEAD.
        let method = if method == "HEAD" { "GET" } else { method };
        Self::all().find(|call| call.name.split_once(' ') == Some((method, route)))
    }

    /// The call of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|call| call.name == name)
    }

    /// Calls of the API and pages.
    fn all() -> impl Iterator<Item = &'static Self> {
        CALLS.iter().chain(PAGES)
    }

    /// Whether it is a page of the dashboard.
    pub fn is_page(&self) -> bool {
        PAGES.iter().any(|page| page.name == self.name)
    }

    /// Whether a browser may make it by itself, without a script of a page: it only reads.
    pub fn is_get(&self) -> bool {
        self.name.starts_with("GET ")
    }

    /// Whether it is a gRPC call.
    pub fn is_grpc(&self) -> bool {
        !self.name.contains(' ')
    }

    /// Methods of a route.
    pub fn methods(route: &str) -> impl Iterator<Item = &'static str> {
        Self::all()
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
        "GET /healthz", "GET /readyz", "GET /v1/openapi.json",
        // They check what they are shown by themselves.
        "POST /v1/login", "POST /v1/logout",
        "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch",
        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    }
    Some(Scope::Read), false => {
        "GET /metrics",
        "GET /v1/tasks", "GET /v1/tasks/export", "GET /v1/tasks/{id}", "GET /v1/tasks/{id}/why", "GET /v1/tasks/{id}/wait",
        "POST /v1/tasks/wait",
        "GET /v1/dead", "GET /v1/queues", "GET /v1/queues/{name}/why", "GET /v1/jobs",
        "GET /v1/jobs/{name}", "GET /v1/workflows", "GET /v1/workflows/{name}",
        "GET /v1/workflows/{name}/steps", "GET /v1/schedules", "GET /v1/schedules/{name}",
        "GET /v1/workers", "GET /v1/consumers", "GET /v1/info", "GET /v1/overview", "GET /v1/audit",
        "GET /v1/runs", "GET /v1/runs/{id}",
        "GET /v1/snapshot", "GET /v1/events", "GET /v1/series",
        "windlass.v1.Tasks/GetTask", "windlass.v1.Tasks/ListTasks", "windlass.v1.Tasks/WaitTasks",
        "windlass.v1.Tasks/FindKey",
        "windlass.v1.Workers/ListWorkers",
        "windlass.v1.Control/ListQueues",
        "windlass.v1.Control/ListJobs", "windlass.v1.Control/GetJob",
        "windlass.v1.Control/ListWorkflows", "windlass.v1.Control/GetWorkflow",
        "windlass.v1.Store/Audit", "windlass.v1.Store/ViewGates", "windlass.v1.Store/ListSchedules",
    }
    // Without `admin`, only the sessions of the caller's own token.
    Some(Scope::Read), false => { "GET /v1/sessions", }
    Some(Scope::Read), true => { "DELETE /v1/sessions/{id}", }
    Some(Scope::Enqueue), false => {
        "POST /v1/tasks", "POST /v1/consumers",
        "windlass.v1.Tasks/Enqueue", "windlass.v1.Tasks/EnqueueBatch",
    }
    Some(Scope::Work), false => {
        "windlass.v1.Workers/Register", "windlass.v1.Workers/Heartbeat", "windlass.v1.Workers/TaskHeartbeat",
        "windlass.v1.Workers/Retire", "windlass.v1.Workers/Claim", "windlass.v1.Workers/Complete",
        "windlass.v1.Workers/Fail", "windlass.v1.Workers/Release", "windlass.v1.Workers/Progress",
        "windlass.v1.Workers/Reconcile", "windlass.v1.Workers/Work",
        // What a worker needs to know about the store.
        "windlass.v1.Store/GetRules", "windlass.v1.Store/GetInfo", "windlass.v1.Store/GetReadyLines",
        "windlass.v1.Store/ListLanes", "windlass.v1.Store/ClaimFor",
        "windlass.v1.Store/Unclaim", "windlass.v1.Store/Settle", "windlass.v1.Store/DoDuty",
        "windlass.v1.Store/WatchHints", "windlass.v1.Store/DueSchedules", "windlass.v1.Store/FireSchedule",
    }
    Some(Scope::Admin), true => {
        "POST /v1/tasks/{id}/cancel", "POST /v1/tasks/{id}/retry",
        "POST /v1/tasks/cancel", "POST /v1/tasks/retry",
        "DELETE /v1/tasks/{id}", "POST /v1/tasks/remove",
        "POST /v1/runs", "POST /v1/runs/{id}/stop",
        "POST /v1/queues/{name}/pause", "POST /v1/queues/{name}/resume", "POST /v1/queues/{name}/purge",
        "PUT /v1/jobs/{name}", "DELETE /v1/jobs/{name}",
        "POST /v1/workflows/{name}/retry", "POST /v1/workflows/{name}/skip",
        "POST /v1/workflows/{name}/cancel",
        "PUT /v1/schedules/{name}", "DELETE /v1/schedules/{name}", "POST /v1/schedules/{name}/pause",
        "POST /v1/schedules/{name}/resume", "POST /v1/schedules/{name}/run",
        "PUT /v1/workers/{id}",
        "POST /v1/tokens", "DELETE /v1/tokens/{id}",
        "windlass.v1.Tasks/CancelTasks", "windlass.v1.Tasks/RetryTasks", "windlass.v1.Tasks/RepeatTask",
        "windlass.v1.Tasks/RemoveTasks",
        "windlass.v1.Workers/SetWorker",
        "windlass.v1.Control/SetQueue", "windlass.v1.Control/SetJob", "windlass.v1.Control/RemoveJob",
        "windlass.v1.Control/ChangeWorkflow",
        "windlass.v1.Store/PutSchedule", "windlass.v1.Store/RemoveSchedule",
    }
    // Only an administrator may see who may do what, and who did what.
    Some(Scope::Admin), false => {
        "GET /v1/tokens", "GET /v1/activity",
    }
}

macro_rules! pages {
    ($($scope:expr => { $($name:literal,)* })*) => {
        /// Every page of the dashboard, and what pages load. A page needs the scope that its content needs.
        pub const PAGES: &[Call] = &[$($(Call { name: $name, scope: $scope, destructive: false },)*)*];
    };
}

pages! {
    // The way in: they show nothing of the store.
    None => { "GET /login", "GET /assets/{file}", }
    Some(Scope::Read) => {
        "GET /", "GET /queues", "GET /queues/{name}", "GET /tasks", "GET /tasks/{id}", "GET /dead", "GET /runs",
        "GET /jobs", "GET /jobs/{name}", "GET /workflows", "GET /workflows/{name}", "GET /schedules",
        "GET /schedules/{name}", "GET /workers", "GET /consumers", "GET /access", "GET /store",
    }
}

/// Whether calls may change anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// They may.
    #[default]
    Whole,
    /// They may not, with any scope: nothing is enqueued, claimed, settled or changed through this server.
    ReadOnly,
}

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call is made.
    Allowed,
    /// The caller lacks the scope of the call.
    MissingScope,
    /// The call changes something, and this server is read-only.
    ReadOnly,
}

/// Decides about a call by a caller with these scopes. A missing scope is the first answer: a caller without
/// rights does not learn that the server is read-only.
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
    use std::collections::BTreeSet;

    use prost::Message;

    use super::*;

    /// The parts of a descriptor set that name methods.
    #[derive(Message)]
    struct Files {
        #[prost(message, repeated, tag = "1")]
        files: Vec<File>,
    }

    #[derive(Message)]
    struct File {
        #[prost(string, tag = "2")]
        package: String,
        #[prost(message, repeated, tag = "6")]
        services: Vec<Service>,
    }

    #[derive(Message)]
    struct Service {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(message, repeated, tag = "2")]
        methods: Vec<Method>,
    }

    #[derive(Message)]
    struct Method {
        #[prost(string, tag = "1")]
        name: String,
    }

    #[test]
    fn the_table_names_exactly_the_methods_of_the_proto() {
        let files = Files::decode(windlass_proto::DESCRIPTORS).unwrap();
        let mut methods = BTreeSet::new();
        for file in &files.files {
            for service in &file.services {
                for method in &service.methods {
                    methods.insert(format!("{}.{}/{}", file.package, service.name, method.name));
                }
            }
        }
        assert!(methods.len() > 40, "{methods:?}");
        let listed = CALLS.iter().map(|call| call.name.to_owned());
        let listed: BTreeSet<_> = listed.filter(|name| name.starts_with("windlass.v1.")).collect();
        assert_eq!(listed, methods);
    }

    #[test]
    fn destructive_calls_need_admin_and_names_are_unique() {
        for (place, call) in CALLS.iter().enumerate() {
            assert!(CALLS.iter().skip(place + 1).all(|other| other.name != call.name), "{}", call.name);
            let own = call.name == "DELETE /v1/sessions/{id}";
            assert!(!call.destructive || call.scope == Some(Scope::Admin) || own, "{}", call.name);
        }
    }

    #[test]
    fn an_http_call_that_is_not_a_get_enqueues_or_is_destructive() {
        for call in CALLS.iter().filter(|call| call.name.contains(' ') && !call.name.starts_with("GET ")) {
            let looks = ["POST /v1/tasks/wait", "POST /v1/login", "POST /v1/logout"].contains(&call.name);
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
    fn read_only_mode_refuses_changes_and_allows_reads() {
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
