//! Every statement, one file each in `sql/`.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $file, ".sql"));)*

        /// Every statement with the name of its file.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

statements! {
    ADD_CALL = "operators/add_call";
    ADD_RUN = "operators/add_run";
    ADD_SESSION = "tokens/add_session";
    ADD_TOKEN = "tokens/add_token";
    ADMIT = "gates/admit";
    ADMIT_MANY = "gates/admit_many";
    ASK_CANCEL = "operate/ask_cancel";
    AUDIT = "upkeep/audit";
    AUDIT_GATES = "upkeep/audit_gates";
    BEGIN_EPOCH = "leases/begin_epoch";
    CLAIM_HAND_OVER = "claim/claim_hand_over";
    CLAIM_KEYS = "claim/claim_keys";
    CLAIM_READ = "claim/claim_read";
    CLAIM_SUSPECT = "claim/claim_suspect";
    CLAIM_TAKE = "claim/claim_take";
    CLAIM_TAKE_ONE = "claim/claim_take_one";
    CLEAR_LINE = "gates/clear_line";
    COME_BACK = "gates/come_back";
    COUNT_DEAD = "upkeep/count_dead";
    COUNT_LINES = "gates/count_lines";
    COUNT_STEPS = "gates/count_steps";
    DELETE_DEAD = "upkeep/delete_dead";
    DELETE_DONE = "settle/delete_done";
    DELETE_HISTORY_RANGE = "upkeep/delete_history_range";
    DELETE_JOB = "gates/delete_job";
    DELETE_KEY = "enqueue/delete_key";
    DELETE_RECEIPTS = "upkeep/delete_receipts";
    DELETE_RUNNING = "settle/delete_running";
    DELETE_SCHEDULE = "schedules/delete_schedule";
    DELETE_SESSION = "tokens/delete_session";
    DELETE_SESSIONS_OF = "tokens/delete_sessions_of";
    DELETE_TOKEN = "tokens/delete_token";
    DELETE_UNSTARTED = "operate/delete_unstarted";
    DELETE_WORKER = "leases/delete_worker";
    DELETE_WORKFLOW = "gates/delete_workflow";
    DEMOTE = "gates/demote";
    DUE_SCHEDULES = "schedules/due_schedules";
    END_WORKER = "leases/end_worker";
    ENDED_WORKERS = "leases/ended_workers";
    EXPIRE_KEY = "enqueue/expire_key";
    EXPORT_COUNTS = "transfer/export_counts";
    EXPORT_HISTORY = "transfer/export_history";
    EXPORT_JOBS = "transfer/export_jobs";
    EXPORT_KEYS = "transfer/export_keys";
    EXPORT_LANES = "transfer/export_lanes";
    EXPORT_MARKS = "transfer/export_marks";
    EXPORT_PAUSED = "transfer/export_paused";
    EXPORT_SCHEDULES = "transfer/export_schedules";
    EXPORT_TASKS = "transfer/export_tasks";
    EXPORT_WORKFLOWS = "transfer/export_workflows";
    FILL_LINES = "gates/fill_lines";
    FIND_DUE = "operate/find_due";
    FIND_ENDED = "operate/find_ended";
    FIND_HEAD = "gates/find_head";
    FIND_HELD = "gates/find_held";
    FIND_JOB = "gates/find_job";
    FIND_KEY = "enqueue/find_key";
    FIND_RECEIPT = "settle/find_receipt";
    FIND_REGISTRATION = "leases/find_registration";
    FIND_RUN = "operators/find_run";
    FIND_SCHEDULE = "schedules/find_schedule";
    FIND_SESSION = "tokens/find_session";
    FIND_STEPS = "gates/find_steps";
    FIND_TASK = "operate/find_task";
    FIND_TOKEN = "tokens/find_token";
    FIND_WORKFLOW = "gates/find_workflow";
    FIRE_SCHEDULE = "schedules/fire_schedule";
    FLOOR_HISTORY = "operate/floor_history";
    FLOOR_TASK = "operate/floor_task";
    HAS_SCHEDULED = "claim/has_scheduled";
    HAS_WORKER = "gates/has_worker";
    INSERT_LANE = "enqueue/insert_lane";
    INSERT_LEASED = "enqueue/insert_leased";
    INSERT_PLAIN_TASK = "enqueue/insert_plain_task";
    INSERT_TASK = "enqueue/insert_task";
    INSERT_WORKER = "leases/insert_worker";
    INSERT_WORKFLOW = "gates/insert_workflow";
    IS_ENDED = "operate/is_ended";
    KEEP_CANCELLED = "settle/keep_cancelled";
    KEEP_DONE = "settle/keep_done";
    KEEP_ENDED = "settle/keep_ended";
    LAST_FORGIVEN_STEP = "gates/last_forgiven_step";
    LAST_READY_SEQ = "upkeep/last_ready_seq";
    LEAVE_LINE = "gates/leave_line";
    LINE_UP = "gates/line_up";
    LIST_CALLS = "operators/list_calls";
    LIST_DEAD = "operate/list_dead";
    LIST_HISTORY = "operate/list_history";
    LIST_JOBS = "operate/list_jobs";
    LIST_RUNS = "operators/list_runs";
    LIST_SCHEDULES = "schedules/list_schedules";
    LIST_SESSIONS = "tokens/list_sessions";
    LIST_TASK = "operate/list_task";
    LIST_TOKENS = "tokens/list_tokens";
    LIST_WORKFLOWS = "operate/list_workflows";
    LOAD_EPOCH = "leases/load_epoch";
    LOAD_FIGURES = "operate/load_figures";
    LOAD_JOBS = "upkeep/load_jobs";
    LOAD_LANES = "upkeep/load_lanes";
    LOAD_PAUSED = "upkeep/load_paused";
    LOAD_TASKS = "upkeep/load_tasks";
    LOAD_WORKERS = "leases/load_workers";
    LOAD_WORKFLOWS = "upkeep/load_workflows";
    MEND_LINE = "gates/mend_line";
    NEXT_DUE = "claim/next_due";
    OLD_DEAD = "upkeep/old_dead";
    OLD_HISTORY = "upkeep/old_history";
    OLD_KEYS = "upkeep/old_keys";
    OLD_SESSIONS = "upkeep/old_sessions";
    OLD_WORKERS = "leases/old_workers";
    PASS_ON = "gates/pass_on";
    PAUSE_QUEUE = "operate/pause_queue";
    PROLONG_KEY = "enqueue/prolong_key";
    PROMOTE = "gates/promote";
    PUT_JOB = "gates/put_job";
    PUT_KEY = "enqueue/put_key";
    PUT_PROGRESS = "leases/put_progress";
    PUT_RECEIPT = "settle/put_receipt";
    PUT_SCHEDULE = "schedules/put_schedule";
    PUT_WORKFLOW = "gates/put_workflow";
    RAISE_MIN_CLAIM_NO = "leases/raise_min_claim_no";
    READ_LOG = "upkeep/read_log";
    REDRIVE = "operate/redrive";
    REDRIVE_STEP = "gates/redrive_step";
    RESTORE_END_WORKERS = "leases/restore_end_workers";
    RESTORE_HAND_BACK = "leases/restore_hand_back";
    RESTORE_HOLD = "leases/restore_hold";
    RESTORE_RUNNING = "leases/restore_running";
    RESTORE_WORKER_IDS = "leases/restore_worker_ids";
    RESUME_QUEUE = "operate/resume_queue";
    RETIRE_LANE = "upkeep/retire_lane";
    RUNNING_RUNS = "operators/running_runs";
    SAVE_RUN = "operators/save_run";
    SEE_SESSION = "tokens/see_session";
    SETTLE_DEAD = "settle/settle_dead";
    SETTLE_READY = "settle/settle_ready";
    SETTLE_RETRY = "settle/settle_retry";
    SET_WORKER_SLOTS = "leases/set_worker_slots";
    SHOW_HISTORY = "operate/show_history";
    SHOW_TASK = "operate/show_task";
    STAND_ASIDE = "claim/stand_aside";
    TRIM_CALLS = "operators/trim_calls";
    TRIM_RUNS = "operators/trim_runs";
    TRIM_SESSIONS = "tokens/trim_sessions";
    UNRETIRE_LANES = "upkeep/unretire_lanes";
    UNSTARTED_HELD = "gates/unstarted_held";
    UNSTARTED_LATER = "gates/unstarted_later";
    WAITING_SUSPECTS = "claim/waiting_suspects";
    WRITE_FIGURES = "operate/write_figures";
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params_from_iter, types::Value};

    use super::*;
    use crate::upkeep::migrate::{MIGRATIONS, migrate};

    fn schema() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, None, MIGRATIONS).unwrap();
        conn
    }

    /// A store with tasks in every state, most of them ready.
    fn filled() -> Connection {
        let conn = schema();
        conn.execute_batch(
            "INSERT INTO lane (id, queue, kind) VALUES (1, 'q', 'a'), (2, 'q', 'b');
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO task (id, lane, state, priority, ready_seq, due_at, ended_at, lease, attempt,
               max_attempts, crashes, worker, claim_no, encoding, payload)
             SELECT i, i % 2 + 1, state, i % 3, i, iif(state = 0, i, NULL), iif(state = 6, i, NULL), 1, 1, 10,
               2 * (i % 1000 = 1), 7, i / 50, 0, x'00'
             FROM (SELECT i, CASE WHEN i % 10 = 0 THEN 0 WHEN i % 10 = 5 THEN 2 WHEN i % 100 = 6 THEN 6 ELSE 1 END
               AS state FROM n);",
        )
        .unwrap();
        conn
    }

    fn plan(conn: &Connection, sql: &str) -> String {
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![Value::Integer(1); statement.parameter_count()];
        let lines = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        lines.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
    }

    #[test]
    fn every_statement_prepares_and_names_its_index() {
        let conn = schema();
        for (file, sql) in ALL {
            let statement = conn.prepare(sql);
            assert!(statement.is_ok(), "{file}: {:?}", statement.err());
            assert!(sql.starts_with("-- "), "{file} does not begin with a comment");
            assert!(
                sql.contains("Index: ")
                    || sql.to_lowercase().contains("scan")
                    || sql.contains("Workers that"),
                "{file}"
            );
            assert!(
                !sql.contains("LIMIT")
                    || sql.contains("ORDER BY")
                    || file.ends_with("count_dead")
                    || file.contains("/audit"),
                "{file}"
            );
        }
    }

    #[test]
    fn every_file_is_a_statement_that_the_store_uses() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
        for folder in std::fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path()) {
            let step = folder.file_name().unwrap().to_str().unwrap().to_owned();
            if step == "migrations" {
                continue;
            }
            for file in std::fs::read_dir(&folder).unwrap() {
                let path = file.unwrap().path();
                let name = format!("{step}/{}", path.file_stem().unwrap().to_str().unwrap());
                assert!(ALL.iter().any(|(known, _)| *known == name), "{name} is not used");
            }
        }
    }

    #[test]
    fn hot_statements_use_their_index_in_every_state_of_the_tables() {
        let analyzed = filled();
        analyzed.execute_batch("ANALYZE").unwrap();
        let by_id = "INTEGER PRIMARY KEY (rowid=?)";
        for (state, conn) in [("empty", schema()), ("full", filled()), ("analyzed", analyzed)] {
            for (sql, index) in [
                (CLAIM_KEYS, "COVERING INDEX task_ready (lane=?)"),
                (CLAIM_READ, "INDEX task_ready (lane=?)"),
                (CLAIM_TAKE, "INDEX task_ready (lane=? AND priority=? AND ready_seq>? AND ready_seq<?)"),
                (WAITING_SUSPECTS, "INDEX task_suspect (lane=?)"),
                (STAND_ASIDE, by_id),
                (COME_BACK, by_id),
                (CLAIM_TAKE_ONE, by_id),
                (CLAIM_HAND_OVER, by_id),
                (KEEP_DONE, by_id),
                (DELETE_DONE, by_id),
                (KEEP_ENDED, by_id),
                (DELETE_RUNNING, by_id),
                (SETTLE_RETRY, by_id),
                (SETTLE_READY, by_id),
                (SETTLE_DEAD, by_id),
                (PUT_PROGRESS, by_id),
                (NEXT_DUE, "COVERING INDEX task_due"),
                (FIND_DUE, "INDEX task_due (due_at>? AND due_at<?)"),
                (PROMOTE, by_id),
                (OLD_HISTORY, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
                (OLD_DEAD, "INDEX task_dead (ended_at>? AND ended_at<?)"),
                (FIND_HELD, "PRIMARY KEY (job=? AND lane=? AND (rank,id)>(?,?) AND rank<?)"),
                (UNSTARTED_HELD, "PRIMARY KEY (job=?)"),
                (CLEAR_LINE, "PRIMARY KEY (job=? AND lane=? AND (rank,id)<(?,?))"),
                (LEAVE_LINE, "PRIMARY KEY (job=? AND lane=? AND rank=? AND id=?)"),
                (UNSTARTED_LATER, "INDEX task_later (job=?"),
                (HAS_SCHEDULED, "INDEX task_later (job=?"),
                (ADMIT, by_id),
                (ADMIT_MANY, by_id),
                (DEMOTE, by_id),
                (PASS_ON, by_id),
                (FIND_HEAD, "INDEX task_step (workflow=?)"),
                (FIND_STEPS, "INDEX task_step (workflow=? AND step<?)"),
                (COUNT_STEPS, "INDEX task_step (workflow=?)"),
                (DUE_SCHEDULES, "INDEX schedule_due"),
                (FIND_KEY, "PRIMARY KEY (queue=? AND key=?)"),
                (OLD_KEYS, "INDEX key_expires (expires_at>? AND expires_at<?)"),
            ] {
                let plan = plan(&conn, sql);
                assert!(plan.contains(index), "{state}: {sql}\n{plan}\ndoes not use {index}");
                assert!(!plan.contains("TEMP B-TREE"), "{state}: {sql}\n{plan}");
                assert!(
                    !plan.contains("SCAN task\n") && !plan.ends_with("SCAN task"),
                    "{state}: {sql}\n{plan}"
                );
            }
        }
    }
}
