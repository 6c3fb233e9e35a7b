//! Every statement of the store, one in each file. They are written for the schema `windlass`, and rewritten
//! for any other schema.
//!
//! A rule that several statements share stands once, in `sql/parts`. A statement names it as `{part}`, or as
//! `{part: name = text, …}` with the text that replaces `:name` in the part.

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::types::Type;

/// A statement with the types of its parameters, so that one round trip is enough even without a prepared
/// form.
pub(crate) struct Sql {
    pub name: &'static str,
    text: &'static str,
    pub types: &'static [Type],
}

impl Sql {
    /// The text as written, for the schema `windlass`.
    pub(crate) fn text(&self) -> &'static str {
        self.text
    }
}

macro_rules! statements {
    ($($constant:ident $folder:literal $file:literal [$($type:ident),*];)*) => {
        $(pub(crate) static $constant: Sql = Sql {
            name: $file,
            text: include_str!(concat!("../sql/", $folder, "/", $file, ".sql")),
            types: &[$(Type::$type),*],
        };)*

        /// Every statement.
        pub(crate) static ALL: &[&Sql] = &[$(&$constant),*];
    };
}

statements! {
    ASK_CANCEL "operate" "ask_cancel" [INT8_ARRAY, TEXT, TEXT];
    AUDIT "upkeep" "audit" [INT8];
    AWAIT_TASKS "operate" "await" [INT8_ARRAY, INT8];
    BEGIN_EPOCH "leases" "begin_epoch" [INT8, INT8];
    CALL_LIST "operators" "call_list" [INT8, INT8];
    CALL_NOTE "operators" "call_note" [INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    CALL_TRIM "operators" "call_trim" [INT8];
    CANCEL_UNSTARTED "operate" "cancel_unstarted" [INT8_ARRAY, TEXT, INT8, BOOL, BOOL];
    TAKE "claim" "take" [INT8, INT8, INT8, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT4, INT8, INT4_ARRAY, BOOL];
    CLAIM_HAND_OVER "claim" "claim_hand_over" [INT8_ARRAY, INT8_ARRAY, INT8_ARRAY];
    CLAIM_HELD "claim" "claim_held" [INT8];
    CLAIM_LOCK "claim" "claim_lock" [INT8_ARRAY, INT8_ARRAY];
    CLAIM_SUSPECT "claim" "claim_suspect" [INT8, INT8, INT4_ARRAY, INT8_ARRAY, INT8];
    COPIED_LANES "transfer" "copied_lanes" [];
    COPY_ADVANCE "transfer" "copy_advance" [INT8, INT8];
    COPY_BEGIN "transfer" "copy_begin" [INT8];
    COPY_COUNTS "transfer" "copy_counts" [];
    COPY_HISTORY "transfer" "copy_history" [
        INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY,
        INT4_ARRAY, INT4_ARRAY, INT2_ARRAY, INT2_ARRAY, INT2_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY
    ];
    COPY_JOBS "transfer" "copy_jobs" [
        TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY, INT2_ARRAY, BOOL_ARRAY,
        BOOL_ARRAY
    ];
    COPY_KEYS "transfer" "copy_keys" [TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY];
    COPY_LANES "transfer" "copy_lanes" [TEXT_ARRAY, TEXT_ARRAY];
    COPY_NUMBERS "transfer" "copy_numbers" [INT8, INT8];
    COPY_PARTS "transfer" "copy_parts" [];
    COPY_PAUSED "transfer" "copy_paused" [TEXT_ARRAY, INT8_ARRAY];
    COPY_RESUME "transfer" "copy_resume" [TEXT_ARRAY];
    COPY_SCHEDULES "transfer" "copy_schedules" [TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, BOOL_ARRAY, TEXT_ARRAY];
    COPY_STATE "transfer" "copy_state" [];
    COPY_TASKS "transfer" "copy_tasks" [
        INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY,
        INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT2_ARRAY,
        INT2_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY
    ];
    COPY_TODO "transfer" "copy_todo" [];
    COPY_WORKFLOWS "transfer" "copy_workflows" [TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT2_ARRAY];
    COUNT_CROWD "leases" "count_crowd" [INT8];
    COUNT_DEAD "upkeep" "count_dead" [INT8];
    CRASH "leases" "crash" [INT8, INT8_ARRAY, INT4_ARRAY, BOOL_ARRAY, INT4_ARRAY];
    DELETE_AWAITED "upkeep" "delete_awaited" [INT8, INT8];
    DELETE_DEAD "upkeep" "delete_dead" [INT8, INT8, INT8];
    DELETE_HISTORY "upkeep" "delete_history" [INT8, INT8];
    DELETE_KEYS "upkeep" "delete_keys" [INT8, INT8, INT8];
    DELETE_REST "upkeep" "delete_rest" [INT8, INT8];
    DELETE_SESSIONS "upkeep" "delete_sessions" [INT8, INT8];
    DELETE_TOMBSTONES "upkeep" "delete_tombstones" [INT8, INT8];
    DEPTH_KEPT "upkeep" "depth_kept" [];
    DEPTH_NOW "upkeep" "depth_now" [INT8];
    DEPTH_PUT "upkeep" "depth_put" [INT4_ARRAY, INT2_ARRAY, INT8_ARRAY];
    DOCTOR_HORIZON "upkeep" "doctor_horizon" [];
    DOCTOR_INDEXES "upkeep" "doctor_indexes" [TEXT];
    DOCTOR_SERVER "upkeep" "doctor_server" [];
    DOCTOR_TABLES "upkeep" "doctor_tables" [TEXT];
    DOORBELL_ARM "wakeup" "doorbell_arm" [INT8, INT4_ARRAY, INT8];
    DOORBELL_DISARM "wakeup" "doorbell_disarm" [INT8];
    DOORBELL_RING "wakeup" "doorbell_ring" [INT4_ARRAY, TEXT, INT8];
    DRAW_IDS "enqueue" "draw_ids" [INT8];
    END_WORKER "leases" "end_worker" [INT8];
    ENQUEUE "enqueue" "enqueue" [
        INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT2_ARRAY, BYTEA_ARRAY, TEXT, BOOL, INT8, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT2_ARRAY, TEXT_ARRAY, INT4_ARRAY
    ];
    ENQUEUE_ONE "enqueue" "enqueue_one" [
        INT4, INT4, INT4, INT2, BYTEA, INT8, TEXT, TEXT, TEXT, BOOL, INT8, BOOL, BOOL, INT8, INT8, INT4_ARRAY, INT4_ARRAY,
        INT8_ARRAY, INT4, INT8
    ];
    ENQUEUE_PLAIN "enqueue" "enqueue_plain" [INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT2_ARRAY, BYTEA_ARRAY, TEXT, BOOL, INT8];
    ENQUEUE_TASK "enqueue" "enqueue_task" [TEXT, INT2, BYTEA, TEXT, TEXT, TEXT, INT4, INT8, INT8, TEXT, BOOL, INT4, INT8, TEXT, INT2, INT4, TEXT];
    EXPIRED_WORKERS "leases" "expired_workers" [BOOL, INT8];
    FIND_ENDED "operate" "find_ended" [INT8_ARRAY, INT8];
    FIND_LANES "enqueue" "find_lanes" [TEXT_ARRAY, TEXT_ARRAY];
    FLOOR_HISTORY "operate" "floor_history" [INT8, INT8, INT8];
    FLOOR_TASK "operate" "floor_task" [INT8, INT8];
    FLUSH "enqueue" "flush" [];
    FORGET_PART "upkeep" "forget_part" [TEXT];
    FREED_TAKE "gates" "freed_take" [INT8];
    HELD "leases" "held" [INT8, INT8, INT8, INT8];
    HELD_NAMED "leases" "held_named" [INT8, INT8_ARRAY, INT4_ARRAY];
    HISTORY_SIZE "upkeep" "history_size" [INT8];
    HOLD_TERM "upkeep" "hold_term" [INT8, INT8];
    INFO "operate" "info" [TEXT];
    INSERT_LANES "enqueue" "insert_lanes" [TEXT_ARRAY, TEXT_ARRAY];
    JOB_COUNT "gates" "job_count" [TEXT_ARRAY, BOOL_ARRAY, INT8_ARRAY];
    JOB_DEMOTE "gates" "job_demote" [TEXT_ARRAY, INT8_ARRAY];
    JOB_FORGET "gates" "job_forget" [TEXT_ARRAY];
    JOB_GONE "gates" "job_gone" [TEXT];
    JOB_LIST "gates" "job_list" [TEXT, TEXT, INT8, INT8];
    JOB_LOCK "gates" "job_lock" [TEXT_ARRAY];
    JOB_MAKE "gates" "job_make" [TEXT_ARRAY, INT4];
    JOB_NOTE "gates" "job_note" [TEXT_ARRAY, BOOL_ARRAY, BOOL_ARRAY, INT8_ARRAY];
    JOB_OCCUPANTS "gates" "job_occupants" [TEXT, INT8];
    JOB_OUTRANKED "gates" "job_outranked" [TEXT_ARRAY];
    JOB_PACE "gates" "job_pace" [TEXT, BOOL];
    JOB_PARK "gates" "job_park" [TEXT_ARRAY, INT8];
    JOB_PROMOTE "gates" "job_promote" [TEXT_ARRAY, INT8_ARRAY, BOOL_ARRAY];
    JOB_SET "gates" "job_set" [TEXT, BOOL, INT4, BOOL, INT8, INT2];
    JOB_TASKS "gates" "job_tasks" [TEXT, BOOL, INT8, INT8];
    KEY_HOLDER "enqueue" "key_holder" [TEXT, TEXT];
    KEY_READ "enqueue" "key_read" [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, BYTEA_ARRAY];
    KEY_TAKE "enqueue" "key_take" [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, BYTEA_ARRAY, INT8_ARRAY];
    LANES "enqueue" "lanes" [];
    LANES_MISSED "upkeep" "lanes_missed" [];
    LANES_RETIRE "upkeep" "lanes_retire" [INT4_ARRAY, INT8, INT8];
    LANES_SURPLUS "upkeep" "lanes_surplus" [];
    LANES_USED "upkeep" "lanes_used" [INT8];
    LEAD "upkeep" "lead" [INT8, INT8, INT8, INT8, INT8];
    LIST_DEAD "operate" "list_dead" [INT8, INT8, INT2, TEXT, TEXT, TEXT, TEXT, INT8, INT8, TEXT, TEXT, BOOL];
    LIST_HISTORY "operate" "list_history" [
        INT8, INT8, INT2, TEXT, TEXT, TEXT, TEXT, INT8, INT8, TEXT, TEXT, BOOL, INT8
    ];
    LIST_TASK "operate" "list_task" [INT8, INT8, INT2, TEXT, TEXT, TEXT, TEXT, INT8, INT8, TEXT, TEXT, BOOL];
    LOCK_EXPIRED "leases" "lock_expired" [INT8];
    LOCK_WORKER "leases" "lock_worker" [INT8];
    LOOK "claim" "look" [INT8, INT8, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT4, INT8];
    NEXT_DUE "claim" "next_due" [];
    NOTE_PART "upkeep" "note_part" [TEXT, INT8, INT8];
    NOTIFY "wakeup" "notify" [TEXT, TEXT];
    NOW "claim" "now" [];
    OFFER_LAY "wakeup" "offer_lay" [INT8, INT8, INT8, INT4_ARRAY, TEXT, INT8];
    OFFER_WITHDRAW "wakeup" "offer_withdraw" [INT8, INT8];
    PARK_DEAD "gates" "park_dead" [INT8];
    PARTS "upkeep" "parts" [TEXT];
    PAUSE_QUEUE "operate" "pause_queue" [TEXT];
    PAUSED_QUEUES "operate" "paused_queues" [];
    PROMOTE_DUE "gates" "promote_due" [INT8];
    PUT_PROGRESS "leases" "put_progress" [INT8, INT4, INT8, TEXT];
    RAISE_MIN_CLAIM_NO "leases" "raise_min_claim_no" [INT8, INT8];
    READY_LINES "upkeep" "ready_lines" [INT8];
    REDRIVE "operate" "redrive" [INT8_ARRAY, INT8_ARRAY, BOOL_ARRAY];
    REGISTRATION "leases" "registration" [INT8];
    REGISTER "leases" "register" [TEXT, INT4, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT4, INT8, TEXT];
    REMOVE_DEAD "operate" "remove_dead" [INT8_ARRAY, INT8];
    RENEW "leases" "renew" [
        INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, BOOL_ARRAY, INT8, INT8, FLOAT8_ARRAY, FLOAT8_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY
    ];
    RENEW_MANY "leases" "renew_many" [
        INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, BOOL_ARRAY, INT8, INT8, FLOAT8_ARRAY, FLOAT8_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY
    ];
    RESUME_QUEUE "operate" "resume_queue" [TEXT, TEXT];
    RUN_FIND "operators" "run_find" [INT8];
    RUN_LIST "operators" "run_list" [INT8];
    RUN_RUNNING "operators" "run_running" [];
    RUN_SAVE "operators" "run_save" [INT8, INT8, BOOL, TEXT];
    RUN_START "operators" "run_start" [TEXT, INT8, INT8];
    SCHEDULE_DUE "schedules" "schedule_due" [INT8];
    SCHEDULE_FIND "schedules" "schedule_find" [TEXT];
    SCHEDULE_LIST "schedules" "schedule_list" [];
    SCHEDULE_LOCK "schedules" "schedule_lock" [TEXT, INT8, TEXT];
    SCHEDULE_MOVE "schedules" "schedule_move" [TEXT, INT8, INT8, INT8];
    SCHEDULE_PUT "schedules" "schedule_put" [TEXT, TEXT, BOOL, INT8];
    SCHEDULE_REMOVE "schedules" "schedule_remove" [TEXT];
    SESSION_ADD "tokens" "session_add" [TEXT, TEXT, BYTEA, INT8, INT8];
    SESSION_END "tokens" "session_end" [TEXT];
    SESSION_FIND "tokens" "session_find" [TEXT];
    SESSION_LIST "tokens" "session_list" [TEXT, INT8];
    SESSION_SEE "tokens" "session_see" [TEXT];
    SETTLE_ASKED "settle" "settle_asked" [INT8, INT8_ARRAY, INT4_ARRAY, INT8, BOOL];
    SETTLE_DONE "settle" "settle_done" [INT8, INT4, INT8, INT8_ARRAY, INT4_ARRAY, INT8, BOOL];
    SETTLE_FENCED "settle" "settle_fenced" [INT8, INT4, INT8, INT8_ARRAY];
    SETTLE_LEAVE "settle" "settle_leave" [
        INT8, INT8_ARRAY, INT4_ARRAY, INT2_ARRAY, TEXT_ARRAY, INT2_ARRAY, BYTEA_ARRAY, INT8, BOOL
    ];
    SETTLE_RECEIPT "settle" "settle_receipt" [INT8, INT4, INT8];
    SETTLE_REPLAY "settle" "settle_replay" [INT8, INT4];
    SETTLE_REOPEN "settle" "settle_reopen" [INT8, INT4, INT8];
    SETTLE_STAY "settle" "settle_stay" [INT8, INT8_ARRAY, INT4_ARRAY, INT2_ARRAY, INT8_ARRAY, TEXT_ARRAY];
    SET_WORKER_SLOTS "leases" "set_worker_slots" [INT8, INT4];
    SHOW_TASK "operate" "show_task" [INT8_ARRAY, INT8, BOOL];
    SUSPECT_ASIDE "claim" "suspect_aside" [INT4_ARRAY, INT8_ARRAY];
    SUSPECT_GROUPS "claim" "suspect_groups" [INT4_ARRAY];
    TODO_HELD "gates" "todo_held" [];
    TODO_LATER "gates" "todo_later" [TEXT_ARRAY, INT8_ARRAY];
    TODO_PUT "gates" "todo_put" [INT2_ARRAY, TEXT_ARRAY];
    TODO_ROOM "gates" "todo_room" [];
    TODO_TAKE "gates" "todo_take" [INT8];
    TOKEN_ADD "tokens" "token_add" [TEXT, TEXT, BYTEA, TEXT, INT8, INT8, TEXT];
    TOKEN_FIND "tokens" "token_find" [TEXT];
    TOKEN_LIST "tokens" "token_list" [];
    TOKEN_REMOVE "tokens" "token_remove" [TEXT];
    UNPARK "gates" "unpark" [INT8];
    VACUUM_LOOK "upkeep" "vacuum_look" [TEXT, TEXT_ARRAY];
    WAKE_LANES "enqueue" "wake_lanes" [INT4_ARRAY];
    WORKERS "leases" "workers" [INT8];
    WORKFLOW_BLOCK "gates" "workflow_block" [TEXT_ARRAY, INT8_ARRAY];
    WORKFLOW_FORGET "gates" "workflow_forget" [TEXT_ARRAY];
    WORKFLOW_FREE "gates" "workflow_free" [TEXT_ARRAY, BOOL];
    WORKFLOW_LIST "gates" "workflow_list" [TEXT, BOOL, TEXT, INT8, INT8];
    WORKFLOW_LOCK "gates" "workflow_lock" [TEXT_ARRAY];
    WORKFLOW_MAKE "gates" "workflow_make" [TEXT_ARRAY];
    WORKFLOW_OF "gates" "workflow_of" [INT8_ARRAY];
    WORKFLOW_PASS "gates" "workflow_pass" [TEXT_ARRAY];
    WORKFLOW_PLACE "gates" "workflow_place" [TEXT_ARRAY];
    WORKFLOW_STEPS "gates" "workflow_steps" [TEXT_ARRAY, BOOL, INT8];
}

/// Rules that several statements share.
const SHARED: &[(&str, &str)] = &[
    ("blocks_nothing", include_str!("../sql/parts/blocks_nothing.sql")),
    ("claimed_task", include_str!("../sql/parts/claimed_task.sql")),
    ("history_record", include_str!("../sql/parts/history_record.sql")),
    ("keep_history", include_str!("../sql/parts/keep_history.sql")),
    ("listed", include_str!("../sql/parts/listed.sql")),
    ("live_worker", include_str!("../sql/parts/live_worker.sql")),
    ("may_claim", include_str!("../sql/parts/may_claim.sql")),
    ("new_lease", include_str!("../sql/parts/new_lease.sql")),
    ("remember_keys", include_str!("../sql/parts/remember_keys.sql")),
    ("renew", include_str!("../sql/parts/renew.sql")),
    ("ring", include_str!("../sql/parts/ring.sql")),
    ("suspect_alone", include_str!("../sql/parts/suspect_alone.sql")),
    ("suspects_wait", include_str!("../sql/parts/suspects_wait.sql")),
    ("task_record", include_str!("../sql/parts/task_record.sql")),
    ("wake_lanes", include_str!("../sql/parts/wake_lanes.sql")),
];

/// A statement with its parts inserted, and without its comments.
pub fn whole(text: &str) -> String {
    let bare = |text: &str| {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut text = bare(text);
    while let Some((call, part)) = next_part(&text) {
        text = text.replace(&call, &part);
    }
    text
}

/// The first part that a statement names, and the text that replaces it.
fn next_part(text: &str) -> Option<(String, String)> {
    text.match_indices('{').find_map(|(at, _)| {
        let call = text.get(at..)?.split_inclusive('}').next()?;
        let (name, values) =
            call.trim_matches(['{', '}']).split_once(':').unwrap_or((call.trim_matches(['{', '}']), ""));
        let (_, part) = SHARED.iter().find(|(known, _)| *known == name)?;
        let mut part = part.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
        for (name, value) in values.split(',').filter_map(|value| value.split_once('=')) {
            part = part.replace(&format!(":{}", name.trim()), value.trim());
        }
        Some((call.to_owned(), part))
    })
}

/// The statements as they are sent: for one schema, whole and without their comments.
pub(crate) struct Rendered(HashMap<&'static str, Arc<str>>);

impl Rendered {
    pub(crate) fn new(schema: &Schema, replaced: &[(String, String)]) -> Self {
        let text = |sql: &'static Sql| {
            replaced.iter().find(|(name, _)| name == sql.name).map_or(sql.text, |(_, text)| text)
        };
        Self(ALL.iter().map(|sql| (sql.name, schema.render(text(sql)).into())).collect())
    }

    pub(crate) fn text(&self, sql: &Sql) -> Arc<str> {
        self.0.get(sql.name).cloned().unwrap_or_else(|| Arc::from(sql.text))
    }
}

/// The schema that holds the tables: a plain lower-case name, so that it can be written into a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(String);

/// Longest name of a schema: the name of a channel is made of it, and PostgreSQL cuts names at 63 bytes.
const SCHEMA_MAX_BYTES: usize = 40;

impl Schema {
    /// Checks a name.
    ///
    /// # Errors
    /// A sentence that says which names are allowed.
    pub fn new(name: &str) -> Result<Self, String> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let is_plain = name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
            && name.bytes().next().is_some_and(is_letter);
        if !is_plain || name.len() > SCHEMA_MAX_BYTES || name.starts_with("pg_") {
            return Err(format!(
                "schema {name:?} must be 1 to {SCHEMA_MAX_BYTES} lower-case letters, digits and _, not starting with a digit or pg_"
            ));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Rewrites a statement that was written for the schema `windlass` for this one.
    pub(crate) fn render(&self, sql: &str) -> String {
        let bare = whole(sql).replace("{schema}", &self.0);
        if self.0 == DEFAULT_SCHEMA { bare } else { bare.replace("windlass.", &format!("\"{}\".", self.0)) }
    }

    /// The channel on which its workers are notified.
    pub(crate) fn channel(&self) -> String {
        format!("windlass_{}", self.0)
    }
}

/// The schema that is used unless another is named.
pub const DEFAULT_SCHEMA: &str = "windlass";

impl Default for Schema {
    fn default() -> Self {
        Self(DEFAULT_SCHEMA.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_moved_to_its_schema_and_loses_its_comments() {
        let schema = Schema::new("fleet_2").unwrap();
        let sql = "-- Reads windlass.task.\nSELECT nextval('windlass.seq') FROM windlass.task";
        assert_eq!(schema.render(sql), "SELECT nextval('\"fleet_2\".seq') FROM \"fleet_2\".task");
        assert_eq!(Schema::default().render(sql), "SELECT nextval('windlass.seq') FROM windlass.task");
    }

    #[test]
    fn a_part_is_inserted_with_its_values() {
        let sql = "SELECT 1 WHERE {may_claim: worker = $1, claim_no = $2, lanes = $3, last_chance = $4, isolation_ms = $5, locked = }";
        let whole = whole(sql);
        assert!(whole.contains("w.id = $1") && whole.contains("w.min_claim_no <= $2"), "{whole}");
        assert!(!whole.contains('{') && !whole.contains(" :"), "{whole}");
    }

    #[test]
    fn a_schema_has_a_plain_name() {
        for name in ["", "1a", "A", "a-b", "pg_temp", "a\"b", &"a".repeat(41)] {
            assert!(Schema::new(name).is_err(), "{name}");
        }
        assert_eq!(Schema::new("_a1").unwrap().as_str(), "_a1");
    }
}
