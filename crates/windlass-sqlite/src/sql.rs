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
    ADD_TOKEN = "add_token";
    ADMIT = "admit";
    ADMIT_MANY = "admit_many";
    ASK_CANCEL = "ask_cancel";
    AUDIT = "audit";
    AUDIT_GATES = "audit_gates";
    BEGIN_EPOCH = "begin_epoch";
    CLAIM_HAND_OVER = "claim_hand_over";
    CLAIM_KEYS = "claim_keys";
    CLAIM_READ = "claim_read";
    CLAIM_SUSPECT = "claim_suspect";
    CLAIM_TAKE = "claim_take";
    CLAIM_TAKE_ONE = "claim_take_one";
    CLEAR_LINE = "clear_line";
    COME_BACK = "come_back";
    COUNT_DEAD = "count_dead";
    COUNT_LINES = "count_lines";
    COUNT_STEPS = "count_steps";
    DELETE_DEAD = "delete_dead";
    DELETE_DONE = "delete_done";
    DELETE_HISTORY_RANGE = "delete_history_range";
    DELETE_JOB = "delete_job";
    DELETE_KEY = "delete_key";
    DELETE_RECEIPTS = "delete_receipts";
    DELETE_RUNNING = "delete_running";
    DELETE_SCHEDULE = "delete_schedule";
    DELETE_TOKEN = "delete_token";
    DELETE_UNSTARTED = "delete_unstarted";
    DELETE_WORKER = "delete_worker";
    DELETE_WORKFLOW = "delete_workflow";
    DEMOTE = "demote";
    DUE_SCHEDULES = "due_schedules";
    END_WORKER = "end_worker";
    ENDED_WORKERS = "ended_workers";
    EXPIRE_KEY = "expire_key";
    EXPORT_COUNTS = "export_counts";
    EXPORT_HISTORY = "export_history";
    EXPORT_JOBS = "export_jobs";
    EXPORT_KEYS = "export_keys";
    EXPORT_LANES = "export_lanes";
    EXPORT_MARKS = "export_marks";
    EXPORT_PAUSED = "export_paused";
    EXPORT_SCHEDULES = "export_schedules";
    EXPORT_TASKS = "export_tasks";
    EXPORT_WORKFLOWS = "export_workflows";
    FILL_LINES = "fill_lines";
    FIND_DUE = "find_due";
    FIND_ENDED = "find_ended";
    FIND_HEAD = "find_head";
    FIND_HELD = "find_held";
    FIND_JOB = "find_job";
    FIND_KEY = "find_key";
    FIND_RECEIPT = "find_receipt";
    FIND_REGISTRATION = "find_registration";
    FIND_SCHEDULE = "find_schedule";
    FIND_STEPS = "find_steps";
    FIND_TASK = "find_task";
    FIND_TOKEN = "find_token";
    FIND_WORKFLOW = "find_workflow";
    FIRE_SCHEDULE = "fire_schedule";
    FLOOR_HISTORY = "floor_history";
    FLOOR_TASK = "floor_task";
    HAS_SCHEDULED = "has_scheduled";
    HAS_WORKER = "has_worker";
    INSERT_LANE = "insert_lane";
    INSERT_LEASED = "insert_leased";
    INSERT_PLAIN_TASK = "insert_plain_task";
    INSERT_TASK = "insert_task";
    INSERT_WORKER = "insert_worker";
    INSERT_WORKFLOW = "insert_workflow";
    IS_ENDED = "is_ended";
    KEEP_CANCELLED = "keep_cancelled";
    KEEP_DONE = "keep_done";
    KEEP_ENDED = "keep_ended";
    LAST_FORGIVEN_STEP = "last_forgiven_step";
    LAST_READY_SEQ = "last_ready_seq";
    LEAVE_LINE = "leave_line";
    LINE_UP = "line_up";
    LIST_DEAD = "list_dead";
    LIST_HISTORY = "list_history";
    LIST_JOBS = "list_jobs";
    LIST_SCHEDULES = "list_schedules";
    LIST_TASK = "list_task";
    LIST_TOKENS = "list_tokens";
    LIST_WORKFLOWS = "list_workflows";
    LOAD_EPOCH = "load_epoch";
    LOAD_FIGURES = "load_figures";
    LOAD_JOBS = "load_jobs";
    LOAD_LANES = "load_lanes";
    LOAD_PAUSED = "load_paused";
    LOAD_TASKS = "load_tasks";
    LOAD_WORKERS = "load_workers";
    LOAD_WORKFLOWS = "load_workflows";
    MEND_LINE = "mend_line";
    NEXT_DUE = "next_due";
    OLD_DEAD = "old_dead";
    OLD_HISTORY = "old_history";
    OLD_KEYS = "old_keys";
    OLD_WORKERS = "old_workers";
    PASS_ON = "pass_on";
    PAUSE_QUEUE = "pause_queue";
    PROLONG_KEY = "prolong_key";
    PROMOTE = "promote";
    PUT_JOB = "put_job";
    PUT_KEY = "put_key";
    PUT_PROGRESS = "put_progress";
    PUT_RECEIPT = "put_receipt";
    PUT_SCHEDULE = "put_schedule";
    PUT_WORKFLOW = "put_workflow";
    RAISE_MIN_CLAIM_NO = "raise_min_claim_no";
    READ_LOG = "read_log";
    REDRIVE = "redrive";
    REDRIVE_STEP = "redrive_step";
    RESTORE_END_WORKERS = "restore_end_workers";
    RESTORE_HAND_BACK = "restore_hand_back";
    RESTORE_HOLD = "restore_hold";
    RESTORE_RUNNING = "restore_running";
    RESTORE_WORKER_IDS = "restore_worker_ids";
    RESUME_QUEUE = "resume_queue";
    SETTLE_DEAD = "settle_dead";
    SETTLE_READY = "settle_ready";
    SETTLE_RETRY = "settle_retry";
    SET_WORKER_SLOTS = "set_worker_slots";
    SHOW_HISTORY = "show_history";
    SHOW_TASK = "show_task";
    STAND_ASIDE = "stand_aside";
    UNSTARTED_HELD = "unstarted_held";
    UNSTARTED_LATER = "unstarted_later";
    WAITING_SUSPECTS = "waiting_suspects";
    WRITE_FIGURES = "write_figures";
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params_from_iter, types::Value};

    use super::*;
    use crate::migrate::{MIGRATIONS, migrate};

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
                    || *file == "count_dead"
                    || file.starts_with("audit"),
                "{file}"
            );
        }
    }

    #[test]
    fn every_file_is_a_statement_that_the_store_uses() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")).unwrap();
        for file in files {
            let path = file.unwrap().path();
            if path.is_file() {
                let name = path.file_stem().unwrap().to_str().unwrap();
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
