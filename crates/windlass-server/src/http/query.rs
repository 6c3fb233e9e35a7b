//! Query strings and path parameters. An error names the parameter.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use http::{Uri, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};
use windlass_core::{Name, TaskId};

use crate::{
    api::{Detail, ErrorDetail, ExportFormat, ExportRequest, TaskFilter},
    json,
};

/// `?state&kind&queue&job&workflow&since&until&cause&worker&key&ids&after&limit&detail`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    state: Option<String>,
    kind: Option<String>,
    queue: Option<String>,
    job: Option<String>,
    workflow: Option<String>,
    since: Option<String>,
    until: Option<String>,
    cause: Option<String>,
    worker: Option<String>,
    key: Option<String>,
    ids: Option<String>,
    after: Option<String>,
    limit: Option<String>,
    detail: Option<String>,
}

impl ListQuery {
    pub(crate) fn filter(&self) -> Result<TaskFilter, ErrorDetail> {
        Ok(TaskFilter {
            state: self.state.as_deref().map(str::parse).transpose()?,
            kind: name("kind", self.kind.as_ref())?,
            queue: name("queue", self.queue.as_ref())?,
            job: name("job", self.job.as_ref())?,
            workflow: name("workflow", self.workflow.as_ref())?,
            since: parsed("since", self.since.as_ref())?,
            until: parsed("until", self.until.as_ref())?,
            cause: self.cause.clone(),
            worker: self.worker.clone(),
            key: self.key.clone(),
            ids: self.ids.as_deref().map(task_ids).transpose()?,
        })
    }

    /// How much of each task is asked for.
    pub(crate) fn detail(&self) -> Result<Detail, ErrorDetail> {
        match self.detail.as_deref() {
            None | Some("whole") => Ok(Detail::Whole),
            Some("summary") => Ok(Detail::Summary),
            Some(_) => Err(ErrorDetail::invalid("detail must be whole or summary")),
        }
    }

    /// Whether it asks for a part of a list.
    pub(crate) fn is_paged(&self) -> bool {
        self.after.is_some() || self.limit.is_some() || self.detail.is_some()
    }

    pub(crate) fn after(&self) -> Result<Option<TaskId>, ErrorDetail> {
        parsed("after", self.after.as_ref())
    }

    pub(crate) fn limit(&self) -> Result<Option<u32>, ErrorDetail> {
        number("limit", self.limit.as_ref())
    }
}

/// `?format&payload` of an export, beside the fields of [`ListQuery`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    format: Option<String>,
    payload: Option<String>,
}

/// What the query of an export asks for.
pub(crate) fn export(uri: &Uri) -> Result<ExportRequest, ErrorDetail> {
    let is_own = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        matches!(name, "format" | "payload")
    };
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let (own, rest): (Vec<_>, Vec<_>) = pairs.partition(is_own);
    let of = |pairs: Vec<&str>| {
        let text = format!("/?{}", pairs.join("&"));
        text.parse::<Uri>().map_err(|_| ErrorDetail::invalid("the query string cannot be read"))
    };
    let own: ExportQuery = query(&of(own)?)?;
    let list: ListQuery = query(&of(rest)?).map_err(of_export)?;
    if list.detail.is_some() {
        return Err(ErrorDetail::invalid("detail is for /v1/tasks; payload=true exports whole tasks"));
    }
    let format = match own.format.as_deref() {
        Some("csv") => ExportFormat::Csv,
        Some("ndjson") => ExportFormat::Ndjson,
        _ => return Err(ErrorDetail::invalid("format must be csv or ndjson")),
    };
    let payload = flag("payload", own.payload.as_ref())?;
    Ok(ExportRequest { filter: list.filter()?, format, payload, after: list.after()?, limit: list.limit()? })
}

/// An unknown field of an export is refused with the fields that an export has.
fn of_export(error: ErrorDetail) -> ErrorDetail {
    let fields = error.hint.as_deref().and_then(|hint| hint.strip_prefix("known fields: "));
    let Some(fields) = fields else { return error };
    let known: Vec<_> = ["format", "payload"]
        .into_iter()
        .chain(fields.split(", ").filter(|name| *name != "detail"))
        .collect();
    let hint = format!("known fields: {}", known.join(", "));
    error.hint(hint)
}

/// `?after&limit` of lists by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamesQuery {
    after: Option<String>,
    limit: Option<String>,
}

impl NamesQuery {
    pub(crate) fn after(&self) -> Result<Option<Name>, ErrorDetail> {
        name("after", self.after.as_ref())
    }

    pub(crate) fn limit(&self) -> Result<Option<u32>, ErrorDetail> {
        number("limit", self.limit.as_ref())
    }
}

/// `?after&limit` of lists whose places are ids or numbers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    after: Option<String>,
    limit: Option<String>,
}

impl PageQuery {
    pub(crate) fn after_task(&self) -> Result<Option<TaskId>, ErrorDetail> {
        parsed("after", self.after.as_ref())
    }

    pub(crate) fn after_number(&self) -> Result<Option<u64>, ErrorDetail> {
        number("after", self.after.as_ref())
    }

    pub(crate) fn limit(&self) -> Result<Option<u32>, ErrorDetail> {
        number("limit", self.limit.as_ref())
    }
}

/// `?blocked&after&limit`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkflowsQuery {
    blocked: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

impl WorkflowsQuery {
    pub(crate) fn blocked(&self) -> Result<bool, ErrorDetail> {
        flag("blocked", self.blocked.as_ref())
    }

    pub(crate) fn page(self) -> NamesQuery {
        NamesQuery { after: self.after, limit: self.limit }
    }
}

/// `?now`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NowQuery {
    now: Option<String>,
}

impl NowQuery {
    pub(crate) fn now(&self) -> Result<bool, ErrorDetail> {
        flag("now", self.now.as_ref())
    }
}

/// `?timeout_ms`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitQuery {
    timeout_ms: Option<String>,
}

impl WaitQuery {
    pub(crate) fn timeout_ms(&self) -> Result<Option<u64>, ErrorDetail> {
        number("timeout_ms", self.timeout_ms.as_ref())
    }
}

/// Reads the query string of a request.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ErrorDetail> {
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

/// Ids with commas between them.
fn task_ids(text: &str) -> Result<Vec<TaskId>, ErrorDetail> {
    let pieces = text.split(',').filter(|piece| !piece.is_empty());
    pieces.map(|id| id.parse().map_err(|error| ErrorDetail::invalid(format!("ids: {error}")))).collect()
}

/// The only parameter of a path, as text.
pub(crate) struct Param(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Param {
    type Rejection = ErrorDetail;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorDetail> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(text)| Self(text)).map_err(|_| ErrorDetail::invalid("the path is not valid UTF-8"))
    }
}

/// The only parameter of a path, as a task id.
pub(crate) struct Id(pub(crate) TaskId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ErrorDetail;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorDetail> {
        let Param(text) = Param::from_request_parts(parts, state).await?;
        text.parse().map(Self).map_err(|error| ErrorDetail::invalid(format!("{error}")))
    }
}
