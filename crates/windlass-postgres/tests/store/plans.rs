//! How the server plans the statements of the store, with the settings of the store: planned once, with any
//! rows the tables had then.

use serde_json::Value;
use tokio_postgres::{Client, SimpleQueryMessage};
use windlass_postgres::inside::{self, Statement};

use crate::place::Place;

/// How a statement may find rows of the large tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By any index.
    Index,
    /// By any index, and it only checks whether the rest of the history has any row.
    Look,
    /// Fences use the primary key: of any other index of running tasks, the server would read all for each of
    /// them.
    Key,
    /// Finds rows by an index, and changes them by the primary key.
    Gate,
    /// Changes tasks by row location (ctid), and finds them by no index.
    Location,
}

/// Indexes that must be entered by a value: each has the rows of all jobs, workflows or lanes.
const GATE_INDEXES: [&str; 4] = ["task_job", "task_step", "task_parked", "gate_todo_key"];

/// Statements that run for each task, and those of the duties.
const WAYS: &[(&str, Way)] = &[
    ("ask_cancel", Way::Key),
    ("cancel_unstarted", Way::Key),
    ("claim_hand_over", Way::Index),
    ("claim_held", Way::Index),
    ("claim_suspect", Way::Index),
    ("count_crowd", Way::Index),
    ("crash", Way::Key),
    ("delete_dead", Way::Index),
    ("delete_keys", Way::Index),
    ("delete_tombstones", Way::Index),
    ("enqueue", Way::Index),
    ("enqueue_one", Way::Index),
    ("enqueue_plain", Way::Index),
    ("expired_workers", Way::Index),
    ("find_ended", Way::Index),
    ("floor_history", Way::Index),
    ("floor_task", Way::Index),
    ("held", Way::Index),
    ("held_named", Way::Key),
    ("job_count", Way::Index),
    ("job_demote", Way::Gate),
    ("job_forget", Way::Index),
    ("job_list", Way::Index),
    ("job_occupants", Way::Index),
    ("job_make", Way::Index),
    ("job_outranked", Way::Index),
    ("job_gone", Way::Gate),
    ("job_pace", Way::Gate),
    ("job_set", Way::Gate),
    ("job_park", Way::Gate),
    ("job_promote", Way::Gate),
    ("job_tasks", Way::Index),
    ("key_holder", Way::Index),
    ("key_read", Way::Index),
    ("key_take", Way::Index),
    ("lanes_missed", Way::Index),
    ("lead", Way::Look),
    ("list_dead", Way::Index),
    ("list_history", Way::Index),
    ("list_task", Way::Index),
    ("look", Way::Index),
    ("next_due", Way::Index),
    ("park_dead", Way::Gate),
    ("promote_due", Way::Index),
    ("put_progress", Way::Key),
    ("ready_lines", Way::Index),
    ("redrive", Way::Key),
    ("remove_dead", Way::Key),
    ("renew", Way::Index),
    ("renew_many", Way::Index),
    ("settle_asked", Way::Key),
    ("settle_done", Way::Key),
    ("settle_leave", Way::Key),
    ("settle_receipt", Way::Index),
    ("settle_replay", Way::Index),
    ("settle_stay", Way::Key),
    ("show_task", Way::Index),
    ("suspect_aside", Way::Index),
    ("suspect_groups", Way::Index),
    ("take", Way::Index),
    ("todo_held", Way::Index),
    ("todo_later", Way::Index),
    ("todo_room", Way::Index),
    ("todo_take", Way::Index),
    ("unpark", Way::Gate),
    ("workflow_forget", Way::Index),
    ("workflow_free", Way::Index),
    ("workflow_list", Way::Index),
    ("workflow_make", Way::Index),
    ("workflow_of", Way::Key),
    ("workflow_pass", Way::Gate),
    ("workflow_place", Way::Gate),
    ("workflow_steps", Way::Index),
];

/// Rows in every state, as in a store that is much used.
const FILL: &str = "
INSERT INTO {s}.lane (queue, kind) SELECT 'q' || n, 'k' FROM generate_series(1, 20) AS n;
INSERT INTO {s}.worker (lease_ttl_ms, min_claim_no, registered_at, renewed_at, expires_at, ended_at, pid, slots, available,
  in_flight, draining, host, version, kinds, queues)
SELECT 10000, 0, 0, 0, 0, CASE WHEN n % 2 = 0 THEN n END, 1, 1, 1, 1, false, 'h', '0', '{k}', '{}'
FROM generate_series(1, 100) AS n;
INSERT INTO {s}.task (id, ready_seq, due_at, ended_at, worker, claim_no, lane, priority, lease, attempt, max_attempts, crashes,
  state, encoding, key, cancel, payload, job, workflow, step, parked)
SELECT n, CASE WHEN s.state = 1 THEN n END, CASE WHEN s.state = 0 THEN n END, CASE WHEN s.state = 6 THEN n END,
  CASE WHEN s.state = 2 THEN 1 + n % 7 END, 1, 1 + n % 20, n % 3, 1, 1, 10, CASE WHEN n % 10 = 0 THEN 2 ELSE 0 END, s.state, 0,
  CASE WHEN n % 4 = 0 THEN 'key' || n END, CASE WHEN n % 50 = 2 THEN 'no' END, '1',
  CASE WHEN s.state = 3 OR n % 5 = 0 THEN 'job-' || n % 40 END, CASE WHEN s.state = 4 OR n % 7 = 0 THEN 'flow-' || n % 500 END,
  CASE WHEN n % 3 > 0 AND (s.state = 4 OR n % 7 = 0) THEN n END, s.state = 3 AND n % 11 = 0
FROM generate_series(1, 20000) AS n, LATERAL (SELECT (ARRAY[1, 1, 2, 2, 0, 6, 3, 4])[1 + n % 8]::smallint AS state) AS s;
INSERT INTO {s}.job (name, created_at, concurrency, state, recount, at_limit)
SELECT 'job-' || n, 0, CASE WHEN n % 2 = 0 THEN 3 END, 0, false, false FROM generate_series(0, 39) AS n;
INSERT INTO {s}.workflow (name, created_at, blocked_by, on_failure)
SELECT 'flow-' || n, 0, CASE WHEN n % 50 = 0 THEN n END, 0 FROM generate_series(0, 499) AS n;
INSERT INTO {s}.gate_todo (at, kind, key) SELECT n, n % 3, 'job-' || n % 40 FROM generate_series(1, 5000) AS n;
INSERT INTO {s}.key (queue, key, task, digest, expires_at)
SELECT 'q' || n % 20, 'key' || n, n, '', CASE WHEN n % 2 = 0 THEN n END FROM generate_series(1, 10000) AS n;
INSERT INTO {s}.history (id, ended_at, lane, priority, lease, attempt, max_attempts, state, encoding, ran, payload)
SELECT 20000 + n, p.from_ms + n, 1 + n % 20, 0, 1, 1, 10, 5, 0, true, '1'
FROM generate_series(1, 2000) AS n, {s}.part AS p;
INSERT INTO {s}.doorbell (listener, armed_until, lanes) SELECT n, n, '{1}' FROM generate_series(1, 50) AS n;
";

const ANALYZE: &str =
    "ANALYZE {s}.task; ANALYZE {s}.key; ANALYZE {s}.history; ANALYZE {s}.worker; ANALYZE {s}.job;
ANALYZE {s}.workflow; ANALYZE {s}.gate_todo";

/// What a plan does against its rule. A scan of a whole index that must be entered by a value counts like a
/// scan of the table.
fn faults(plan: &Value, way: Way, found: &mut Vec<String>) {
    let text = |name: &str| plan[name].as_str().unwrap_or_default();
    let (node, relation, index) = (text("Node Type"), text("Relation Name"), text("Index Name"));
    let is_large = ["task", "key", "gate_todo"].contains(&relation) || relation.starts_with("history");
    let is_by_id = ["task_pkey", "key_pkey"].contains(&index) || index.ends_with("_id_idx");
    if node == "Seq Scan" && is_large {
        found.push(format!("scans {relation}"));
    }
    let is_look = way == Way::Look && relation == "history_rest";
    if node.contains("Index") && is_by_id && !is_look && text("Index Cond").is_empty() {
        found.push(format!("reads all of {index}"));
    }
    if GATE_INDEXES.contains(&index) && text("Index Cond").is_empty() {
        found.push(format!("reads all of {index}"));
    }
    if way == Way::Gate && node == "ModifyTable" && relation == "task" {
        changed_along(plan, found);
    }
    if way == Way::Location && node == "ModifyTable" && relation == "task" {
        let mut scans = Vec::new();
        scans_of(plan, &mut scans);
        if scans != ["Tid Scan"] {
            found.push(format!("is changed along {}", scans.join(", ")));
        }
    }
    // A bitmap scan names its index in a node below, without the table.
    if way == Way::Key && index.starts_with("task_") && index != "task_pkey" {
        found.push(format!("goes by {index}"));
    }
    for part in plan["Plans"].as_array().into_iter().flatten() {
        faults(part, way, found);
    }
}

/// By which scans a change finds the tasks that it changes. The rows that it picked before are a plan of
/// their own.
fn scans_of(plan: &Value, found: &mut Vec<String>) {
    let parts = plan["Plans"].as_array().into_iter().flatten();
    for part in parts {
        let relationship = part["Parent Relationship"].as_str().unwrap_or_default();
        if relationship == "InitPlan" || relationship == "SubPlan" {
            continue;
        }
        if part["Relation Name"] == "task" {
            found.push(part["Node Type"].as_str().unwrap_or_default().to_owned());
        }
        scans_of(part, found);
    }
}

/// By which indexes other than the primary key a change finds its tasks. The rows that it picked before are a
/// plan of their own.
fn changed_along(plan: &Value, found: &mut Vec<String>) {
    let parts = plan["Plans"].as_array().into_iter().flatten();
    for part in parts.filter(|part| part["Parent Relationship"] != "InitPlan") {
        let index = part["Index Name"].as_str().unwrap_or_default();
        if index.starts_with("task_") && index != "task_pkey" {
            found.push(format!("is changed along {index}"));
        }
        changed_along(part, found);
    }
}

async fn faults_of(client: &Client, statement: &Statement, way: Way) -> Vec<String> {
    let types: Vec<&str> = statement.types.iter().map(tokio_postgres::types::Type::name).collect();
    let types = if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
    let nulls = vec!["NULL"; statement.types.len()].join(", ");
    let nulls = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    client.batch_execute(&format!("PREPARE looked_at{types} AS {}", statement.text)).await.unwrap();
    let explain = format!("EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE looked_at{nulls}");
    // As text: the driver has no type for JSON.
    let shown = client.simple_query(&explain).await.unwrap();
    let shown = shown.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let shown: Value = serde_json::from_str(shown.unwrap()).unwrap();
    client.batch_execute("DEALLOCATE looked_at").await.unwrap();
    let mut found = Vec::new();
    faults(&shown[0]["Plan"], way, &mut found);
    found.iter().map(|fault| format!("{}: {fault}", statement.name)).collect()
}

/// The faults of all statements that have a rule.
async fn all_faults(place: &Place) -> Vec<String> {
    let client = place.client().await;
    client.batch_execute(&inside::settings()).await.unwrap();
    let statements = inside::statements(&place.options().schema);
    let mut found = Vec::new();
    for (name, way) in WAYS {
        let statement = statements.iter().find(|statement| statement.name == *name).unwrap();
        found.extend(faults_of(&client, statement, *way).await);
    }
    found
}

#[tokio::test]
async fn statements_use_indexes_with_any_statistics() {
    let place = Place::new();
    drop(place.make().await);
    assert_eq!(all_faults(&place).await, Vec::<String>::new(), "empty tables, not analysed");
    place.execute(ANALYZE).await;
    assert_eq!(all_faults(&place).await, Vec::<String>::new(), "empty tables, analysed");
    place.execute(FILL).await;
    assert_eq!(all_faults(&place).await, Vec::<String>::new(), "full tables, not analysed");
    place.execute(ANALYZE).await;
    assert_eq!(all_faults(&place).await, Vec::<String>::new(), "full tables, analysed");
    place.execute("DELETE FROM {s}.task; ANALYZE {s}.task").await;
    assert_eq!(all_faults(&place).await, Vec::<String>::new(), "empty again, with its pages");
}

/// Any other statement that reads the large tables reads them whole on purpose: it counts, copies, audits or
/// empties them.
#[test]
fn every_statement_that_touches_tasks_has_a_way() {
    const WHOLE: [&str; 9] = [
        "audit",
        "copy_counts",
        "copy_keys",
        "copy_todo",
        "count_dead",
        "delete_history",
        "depth_now",
        "history_size",
        "lanes_used",
    ];
    let touches = |text: &str| {
        ["task", "history", "key", "gate_todo"].iter().any(|table| {
            text.contains(&format!("windlass.{table} AS")) || text.contains(&format!("windlass.{table}\n"))
        })
    };
    let statements = inside::statements(&windlass_postgres::Schema::default());
    let touching =
        statements.iter().filter(|statement| touches(&statement.text)).map(|statement| statement.name);
    let forgotten: Vec<_> = touching
        .filter(|name| !WHOLE.contains(name) && !WAYS.iter().any(|(known, _)| known == name))
        .collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

/// The check exists for plans such as these.
#[tokio::test]
async fn a_bad_plan_is_noticed() {
    let place = Place::new();
    drop(place.make().await);
    place.execute(FILL).await;
    let client = place.client().await;
    client.batch_execute(&inside::settings()).await.unwrap();
    for (text, way, fault) in [
        ("SELECT t.id FROM {s}.task AS t WHERE t.payload = $1", Way::Index, "scans task"),
        ("SELECT h.id FROM {s}.history AS h WHERE h.payload = $1", Way::Index, "scans history"),
        (
            "SELECT t.id FROM {s}.task AS t WHERE t.payload = $1 ORDER BY t.id",
            Way::Index,
            "reads all of task_pkey",
        ),
        (
            "DELETE FROM {s}.task AS t WHERE t.worker = 3 AND t.state = 2 AND t.payload = $1",
            Way::Key,
            "goes by task_running",
        ),
        (
            "SELECT t.id FROM {s}.task AS t WHERE t.job IS NOT NULL AND t.state <> 6 AND t.payload = $1 ORDER BY t.job",
            Way::Index,
            "reads all of task_job",
        ),
        (
            "UPDATE {s}.task AS t SET state = 3 WHERE t.job = 'job-1' AND t.state = 1 AND t.payload = $1",
            Way::Gate,
            "is changed along task_job",
        ),
        (
            "UPDATE {s}.task AS t SET state = 3 WHERE t.id = 7 AND t.payload = $1",
            Way::Location,
            "is changed along Index Scan",
        ),
    ] {
        let statement = Statement {
            name: "bad",
            text: place.of(text).into(),
            types: &[tokio_postgres::types::Type::BYTEA],
        };
        let found = faults_of(&client, &statement, way).await;
        assert!(found.iter().any(|found| found.starts_with(&format!("bad: {fault}"))), "{text}: {found:?}");
    }
}
