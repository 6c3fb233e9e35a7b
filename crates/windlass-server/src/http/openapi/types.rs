//! Reads the table of types.

use serde_json::{Map, Value, json};
use windlass_core::worker::SLOTS_MAX;

use crate::{api::WAIT_MAX_MS, operations::DURATION_MAX_MS};

/// What the text of a task's id looks like.
const TASK_ID: &str = "[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{12}";
const TYPES: &str = include_str!("types.txt");

/// Every type as a JSON schema, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    schemas.insert(
        "TaskId".to_owned(),
        json!({
            "type": "string", "pattern": format!("^{TASK_ID}$"),
            "examples": ["01JD3M8K2ZQ4R"], "description": "Sorted by the time of enqueue."
        }),
    );
    schemas.insert("Name".to_owned(), json!({"type": "string", "minLength": 1, "maxLength": 128}));
    let lines = TYPES.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let mut rest = lines.trim_start();
    while let Some((schema, after)) = read(rest) {
        schemas.insert(schema.0, schema.1);
        rest = after.trim_start();
    }
    schemas
}

/// The first type in a text, and the rest of the text.
fn read(text: &str) -> Option<((String, Value), &str)> {
    let (head, _) = text.split_once(['=', '{'])?;
    let after = text.get(head.len() + 1..)?;
    let mut words = head.split_whitespace();
    let name = words.next()?.to_owned();
    if text.get(head.len()..)?.starts_with('=') {
        let (words, rest) = after.split_once('\n').unwrap_or((after, ""));
        let words: Vec<_> = words.split('|').map(str::trim).collect();
        return Some(((name, json!({"type": "string", "enum": words})), rest));
    }
    let (fields, rest) = after.split_once('}')?;
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
        let (field, kind) = field.split_once(':')?;
        let field = if let Some(optional) = field.strip_suffix('?') {
            optional
        } else {
            required.push(field);
            field
        };
        properties.insert(field.to_owned(), schema(kind.trim()));
    }
    let mut object = json!({"type": "object", "properties": properties, "required": required});
    if words.next() == Some("closed")
        && let Some(object) = object.as_object_mut()
    {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(((name, object), rest))
}

/// The schema of a type by its name in this table.
pub(super) fn schema(kind: &str) -> Value {
    if let Some(item) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        return json!({"type": "array", "items": schema(item)});
    }
    if let Some(kind) = kind.strip_suffix('?') {
        return json!({"anyOf": [schema(kind), {"type": "null"}]});
    }
    match kind {
        "any" => json!({}),
        "string" => json!({"type": "string"}),
        "boolean" => json!({"type": "boolean"}),
        "number" => json!({"type": "number"}),
        "int" => json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}),
        "uint" => json!({"type": "integer", "minimum": 0}),
        "limit" => json!({"type": "integer", "minimum": 1, "maximum": u32::MAX}),
        "ms" => json!({"type": "integer", "minimum": 0, "maximum": DURATION_MAX_MS}),
        "wait_ms" => json!({"type": "integer", "minimum": 0, "maximum": WAIT_MAX_MS}),
        "slots" => json!({"type": "integer", "minimum": 1, "maximum": SLOTS_MAX}),
        "worker_id" => json!({"type": "string", "pattern": "^[wW]?[1-9][0-9]{0,17}$"}),
        "task_ids" => json!({
            "type": "string", "pattern": format!("^{TASK_ID}(,{TASK_ID})*$"),
            "description": "Ids with commas between them, at most a thousand."
        }),
        "time" => json!({"type": "string", "format": "date-time"}),
        name => json!({"$ref": format!("#/components/schemas/{name}")}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table_is_read_and_every_name_in_it_is_known() {
        let schemas = schemas();
        let declared = TYPES.lines().filter(|line| {
            line.starts_with(|first: char| first.is_ascii_uppercase()) && line.contains(['=', '{'])
        });
        assert_eq!(schemas.len(), declared.count() + 2);
        let text = Value::Object(schemas.clone()).to_string();
        for name in text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(schemas.contains_key(name), "{name}");
        }
        assert_eq!(
            schemas["RetryDelays"],
            json!({
                "type": "object", "required": [], "additionalProperties": false,
                "properties": {
                    "base_ms": schema("ms"), "max_ms": {"type": "integer", "minimum": 0, "maximum": DURATION_MAX_MS}
                }
            })
        );
        assert_eq!(schemas["Missed"], json!({"type": "string", "enum": ["once", "skip"]}));
    }
}
