//! The API for programs: an OpenAPI 3.1 document. It is built from the table of calls, the operations and the
//! types.

use std::sync::{Arc, LazyLock};

use axum::{extract::State, response::Response};
use serde_json::{Map, Value, json};

mod operations;
mod types;

use operations::{OPERATIONS, Operation};
use types::schema;

use super::{Server, answer};
use crate::{access::Call, operations::VERSION};

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

/// Serves the document, with the prefix that clients must use.
pub(super) async fn openapi(State(server): State<Arc<Server>>) -> Response {
    let prefix = server.face.prefix();
    if prefix.as_str().is_empty() {
        return answer::ok(&*DOCUMENT);
    }
    let mut document = DOCUMENT.clone();
    if let Some(document) = document.as_object_mut() {
        document.insert("servers".to_owned(), json!([{"url": prefix.as_str()}]));
    }
    answer::ok(&document)
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let Some((method, route)) = operation.call.split_once(' ') else { continue };
        let path = paths.entry(route).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(method.to_ascii_lowercase(), described(operation, route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass", "version": VERSION, "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            "description": "A durable task queue. Times are RFC 3339 in UTC, durations whole milliseconds. A server on loopback \
                may be set to ask for no token."
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": types::schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`windlass token create --scope read` makes one. A page of \
                    this server may use the cookie that POST /v1/login sets instead."}
            }
        }
    })
}

fn described(operation: &Operation, route: &str) -> Value {
    let call = Call::named(operation.call);
    let scope = call.and_then(|call| call.scope);
    let mut responses = Map::new();
    for (status, types) in operation.answers {
        responses.insert(status.to_string(), success(types));
    }
    // Every call refuses a foreign Host or Origin, and a query or a path that cannot be read.
    let mut errors = vec![400, 403];
    errors.extend(operation.errors);
    if scope.is_some() {
        errors.extend([401, 429, 500, 501, 503]);
    }
    if !operation.body.is_empty() {
        errors.extend([408, 413, 415]);
    }
    for status in errors {
        responses.entry(status.to_string()).or_insert_with(|| failure(status));
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(operation, route),
        "responses": responses,
        "security": scope.map_or_else(|| json!([]), |scope| json!([{"token": [scope.as_str()]}])),
        "x-destructive": call.is_some_and(|call| call.destructive),
    });
    if let Some(described) = described.as_object_mut()
        && !operation.body.is_empty()
    {
        let content = json!({"application/json": {"schema": one_of(operation.body)}});
        // A body may be absent if each of its fields may be absent.
        let required = operation.body.iter().any(|body| is_needed(body));
        described.insert("requestBody".to_owned(), json!({"required": required, "content": content}));
    }
    described
}

fn is_needed(body: &str) -> bool {
    let schemas = types::schemas();
    let required = schemas.get(body).and_then(|schema| schema.get("required")).and_then(Value::as_array);
    required.is_some_and(|required| !required.is_empty())
}

fn parameters(operation: &Operation, route: &str) -> Vec<Value> {
    let in_path = route.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).map(|name| {
        let kind = match route {
            route if route.starts_with("/v1/tasks/") => "TaskId",
            route if route.starts_with("/v1/runs/") => "uint",
            _ => "Name",
        };
        json!({"name": name, "in": "path", "required": true, "schema": schema(kind)})
    });
    let in_query = operation
        .query
        .iter()
        .map(|(name, kind)| json!({"name": name, "in": "query", "required": false, "schema": schema(kind)}));
    in_path.chain(in_query).collect()
}

fn one_of(types: &[&str]) -> Value {
    match types {
        [only] => schema(only),
        several => json!({"anyOf": several.iter().map(|kind| schema(kind)).collect::<Vec<_>>()}),
    }
}

fn success(types: &[&str]) -> Value {
    if types.is_empty() {
        return json!({"description": "As asked.", "content": {"text/*": {}, "application/x-ndjson": {}}});
    }
    json!({"description": "As asked.", "content": {"application/json": {"schema": one_of(types)}}})
}

fn failure(status: u16) -> Value {
    let text = match status {
        400 => "Something in the request breaks a rule.",
        401 => "A token is missing, unknown, revoked or expired.",
        403 => "The caller may not do this, or the Host or Origin is a foreign one.",
        404 => "There is no such thing.",
        408 => "The body did not arrive in time.",
        409 => "Not in this state, or the name or key is taken.",
        413 => "A body, a payload or a batch is over its limit.",
        415 => "The body is not declared to be JSON.",
        429 => "The caller calls too often.",
        501 => "This store cannot do that.",
        503 => "The store or the server cannot take this now.",
        507 => "The disk has too little room.",
        _ => "The store failed, or it is not known whether the call took effect.",
    };
    json!({"description": text, "content": {"application/json": {"schema": schema("Error")}}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::CALLS;

    #[test]
    fn every_call_of_http_is_described_and_nothing_else() {
        let mut described: Vec<_> = OPERATIONS.iter().map(|operation| operation.call).collect();
        let mut known: Vec<_> =
            CALLS.iter().map(|call| call.name).filter(|name| name.contains(' ')).collect();
        described.sort_unstable();
        known.sort_unstable();
        assert_eq!(described, known, "what is described on the left, calls on the right");
    }

    #[test]
    fn no_operation_has_the_name_of_another() {
        let mut ids: Vec<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), OPERATIONS.len());
    }
}
