//! Every call of the API, over HTTP/JSON and over gRPC, with the scope that it needs: the one table that whoever decides
//! about a call asks, and that tests compare with the routes and with the descriptors of the proto.

use axum::extract::{MatchedPath, Request};

/// What a caller must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Nothing: anybody may ask whether the server is well, and what it speaks.
    Open,
    /// To look.
    Read,
    /// To add tasks, and to wait for them.
    Enqueue,
    /// To register as a worker, and to touch the tasks that it leases.
    Work,
    /// To change what others made.
    Admin,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Method and route (`GET /v1/tasks/{id}`) or the full name of a gRPC method (`windlass.v1.Tasks/GetTask`).
    pub name: &'static str,
    /// What it needs.
    pub scope: Scope,
}

macro_rules! calls {
    ($($scope:ident { $($name:literal,)* })*) => {
        /// Every call.
        pub const CALLS: &[Call] = &[$($(Call { name: $name, scope: Scope::$scope },)*)*];
    };
}

calls! {
    Open {
        "GET /", "GET /healthz", "GET /readyz",
        "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch",
        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    }
    Read {
        "GET /metrics",
        "GET /v1/tasks", "GET /v1/tasks/{id}", "GET /v1/tasks/{id}/why", "GET /v1/tasks/{id}/wait",
        "POST /v1/tasks/wait",
        "GET /v1/dead", "GET /v1/queues", "GET /v1/jobs", "GET /v1/jobs/{name}",
        "GET /v1/workflows", "GET /v1/workflows/{name}", "GET /v1/schedules", "GET /v1/schedules/{name}",
        "GET /v1/workers", "GET /v1/info", "GET /v1/overview", "GET /v1/audit",
        "windlass.v1.Tasks/GetTask", "windlass.v1.Tasks/ListTasks", "windlass.v1.Tasks/WaitTasks",
        "windlass.v1.Workers/ListWorkers",
        "windlass.v1.Control/ListQueues",
        "windlass.v1.Control/ListJobs", "windlass.v1.Control/GetJob",
        "windlass.v1.Control/ListWorkflows", "windlass.v1.Control/GetWorkflow",
        "windlass.v1.Store/GetInfo", "windlass.v1.Store/Audit", "windlass.v1.Store/GetReadyLines",
        "windlass.v1.Store/ViewGates", "windlass.v1.Store/ListSchedules",
    }
    Enqueue {
        "POST /v1/tasks",
        "windlass.v1.Tasks/Enqueue", "windlass.v1.Tasks/EnqueueBatch",
    }
    Work {
        "windlass.v1.Workers/Register", "windlass.v1.Workers/Heartbeat", "windlass.v1.Workers/TaskHeartbeat",
        "windlass.v1.Workers/Retire", "windlass.v1.Workers/Claim", "windlass.v1.Workers/Complete",
        "windlass.v1.Workers/Fail", "windlass.v1.Workers/Release", "windlass.v1.Workers/Progress",
        "windlass.v1.Workers/Reconcile", "windlass.v1.Workers/Work",
        "windlass.v1.Store/GetRules", "windlass.v1.Store/ListLanes", "windlass.v1.Store/ClaimFor",
        "windlass.v1.Store/Unclaim", "windlass.v1.Store/Settle", "windlass.v1.Store/DoDuty",
        "windlass.v1.Store/WatchHints", "windlass.v1.Store/DueSchedules", "windlass.v1.Store/FireSchedule",
    }
    Admin {
        "POST /v1/tasks/{id}/cancel", "POST /v1/tasks/{id}/retry",
        "POST /v1/tasks/cancel", "POST /v1/tasks/retry",
        "POST /v1/queues/{name}/pause", "POST /v1/queues/{name}/resume",
        "PUT /v1/jobs/{name}", "DELETE /v1/jobs/{name}",
        "POST /v1/workflows/{name}/retry", "POST /v1/workflows/{name}/skip",
        "POST /v1/workflows/{name}/cancel",
        "PUT /v1/schedules/{name}", "DELETE /v1/schedules/{name}", "POST /v1/schedules/{name}/pause",
        "POST /v1/schedules/{name}/resume", "POST /v1/schedules/{name}/run",
        "PUT /v1/workers/{id}",
        "windlass.v1.Tasks/CancelTasks", "windlass.v1.Tasks/RetryTasks",
        "windlass.v1.Workers/SetWorker",
        "windlass.v1.Control/SetQueue", "windlass.v1.Control/SetJob", "windlass.v1.Control/RemoveJob",
        "windlass.v1.Control/ChangeWorkflow",
        "windlass.v1.Store/PutSchedule", "windlass.v1.Store/RemoveSchedule",
    }
}

impl Call {
    /// The call of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CALLS.iter().find(|call| call.name == name)
    }

    /// The call that a request makes; none if there is nothing at its path, or not with its method.
    pub fn of(request: &Request) -> Option<&'static Self> {
        let path = request.extensions().get::<MatchedPath>()?;
        if is_grpc(request.headers()) {
            return Self::named(request.uri().path().trim_start_matches('/'));
        }
        Self::named(&format!("{} {}", request.method(), path.as_str()))
    }
}

/// Whether a request says that it is gRPC.
pub fn is_grpc(headers: &http::HeaderMap) -> bool {
    headers
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message;

    use super::*;

    #[test]
    fn every_call_stands_once_in_the_table() {
        let names: BTreeSet<_> = CALLS.iter().map(|call| call.name).collect();
        assert_eq!(names.len(), CALLS.len());
    }

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
}
