//! Query strings and path parameters. An error names the parameter.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use http::{Uri, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};
use windlass_core::{Name, TaskId};

use crate::{
    api::{ErrorDetail, TaskFilter},
    json,
};

/// `?state&kind&queue&job&workflow&since&after&limit`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    state: Option<String>,
    kind: Option<String>,
    queue: Option<String>,
    job: Option<String>,
    workflow: Option<String>,
    since: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

impl ListQuery {
    pub(super) fn filter(&self) -> Result<TaskFilter, ErrorDetail> {
        Ok(TaskFilter {
            state: self.state.as_deref().map(str::parse).transpose()?,
            kind: name("kind", self.kind.as_ref())?,
            queue: name("queue", self.queue.as_ref())?,
            job: name("job", self.job.as_ref())?,
            workflow: name("workflow", self.workflow.as_ref())?,
            since: parsed("since", self.since.as_ref())?,
        })
    }

    pub(super) fn after(&self) -> Result<Option<TaskId>, ErrorDetail> {
        parsed("after", self.after.as_ref())
    }

    pub(super) fn limit(&self) -> Result<Option<u32>, ErrorDetail> {
        number("limit", self.limit.as_ref())
    }
}

/// `?after&limit` of lists by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamesQuery {
    after: Option<String>,
    limit: Option<String>,
}

impl NamesQuery {
    pub(super) fn after(&self) -> Result<Option<Name>, ErrorDetail> {
        name("after", self.after.as_ref())
    }

    pub(super) fn limit(&self) -> Result<Option<u32>, ErrorDetail> {
        number("limit", self.limit.as_ref())
    }
}

/// `?blocked&after&limit`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowsQuery {
    blocked: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

impl WorkflowsQuery {
    pub(super) fn blocked(&self) -> Result<bool, ErrorDetail> {
        flag("blocked", self.blocked.as_ref())
    }

    pub(super) fn page(self) -> NamesQuery {
        NamesQuery { after: self.after, limit: self.limit }
    }
}

/// `?now`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NowQuery {
    now: Option<String>,
}

impl NowQuery {
    pub(super) fn now(&self) -> Result<bool, ErrorDetail> {
        flag("now", self.now.as_ref())
    }
}

/// `?timeout_ms`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitQuery {
    timeout_ms: Option<String>,
}

impl WaitQuery {
    pub(super) fn timeout_ms(&self) -> Result<Option<u64>, ErrorDetail> {
        number("timeout_ms", self.timeout_ms.as_ref())
    }
}

/// Reads the query string of a request.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ErrorDetail> {
    Query::try_from_uri(uri).map(|Query(query)| query).map_err(|rejection| {
        let message = rejection.body_text();
        json::unknown_field(&message)
            .unwrap_or_else(|| ErrorDetail::invalid("the query string cannot be read"))
    })
}

pub(super) fn name(what: &str, text: Option<&String>) -> Result<Option<Name>, ErrorDetail> {
    Ok(text.map(|text| Name::new(what, text)).transpose()?)
}

/// False if absent; true for the bare name.
fn flag(what: &str, text: Option<&String>) -> Result<bool, ErrorDetail> {
    match text.map(String::as_str) {
        None | Some("false") => Ok(false),
        Some("" | "true") => Ok(true),
        Some(_) => Err(ErrorDetail::invalid(format!("{what} must be true or false"))),
    }
}

/// A number. An error says in words that it is not one.
fn number<T: FromStr>(what: &str, text: Option<&String>) -> Result<Option<T>, ErrorDetail> {
    let wrong = |text: &String| {
        let shown: String = text.chars().take(40).collect();
        ErrorDetail::invalid(format!("{what} must be a whole number, not {shown:?}"))
    };
    text.map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(
    what: &str,
    text: Option<&String>,
) -> Result<Option<T>, ErrorDetail> {
    text.map(|text| text.parse().map_err(|error| ErrorDetail::invalid(format!("{what}: {error}"))))
        .transpose()
}

/// The only parameter of a path, as text.
pub(super) struct Param(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Param {
    type Rejection = ErrorDetail;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorDetail> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(text)| Self(text)).map_err(|_| ErrorDetail::invalid("the path is not valid UTF-8"))
    }
}

/// The only parameter of a path, as a task id.
pub(super) struct Id(pub(super) TaskId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ErrorDetail;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorDetail> {
        let Param(text) = Param::from_request_parts(parts, state).await?;
        text.parse().map(Self).map_err(|error| ErrorDetail::invalid(format!("{error}")))
    }
}
