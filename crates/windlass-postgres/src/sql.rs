//! Every statement of the store: one a file, written for the schema `windlass`, moved to another by name.

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::types::Type;

/// A statement with the types of its parameters, so that one round trip is enough even without a prepared form.
pub(crate) struct Sql {
    pub name: &'static str,
    text: &'static str,
    pub types: &'static [Type],
}

impl Sql {
    /// As it was written, for the schema `windlass`.
    pub(crate) fn text(&self) -> &'static str {
        self.text
    }
}

macro_rules! statements {
    ($($constant:ident $file:literal [$($type:ident),*];)*) => {
        $(pub(crate) static $constant: Sql = Sql {
            name: $file,
            text: include_str!(concat!("../sql/", $file, ".sql")),
            types: &[$(Type::$type),*],
        };)*

        /// Every statement.
        pub(crate) static ALL: &[&Sql] = &[$(&$constant),*];
    };
}

statements! {
    ASK_CANCEL "ask_cancel" [INT8_ARRAY, TEXT, TEXT];
    AUDIT "audit" [INT8];
    AWAIT_TASKS "await" [INT8_ARRAY, INT8];
    BEGIN_EPOCH "begin_epoch" [INT8, INT8];
    CANCEL_UNSTARTED "cancel_unstarted" [INT8_ARRAY, TEXT, INT8, BOOL, BOOL];
    CLAIM "claim" [INT8, INT8, INT8, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT4, INT8, BOOL];
    CLAIM_HAND_OVER "claim_hand_over" [INT8_ARRAY, INT8_ARRAY, INT8_ARRAY];
    CLAIM_HELD "claim_held" [INT8];
    CLAIM_LOCK "claim_lock" [INT8_ARRAY, INT8_ARRAY];
    CLAIM_MERGED "claim_merged" [INT8, INT8, INT8, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT4, INT8, BOOL];
    CLAIM_NAMED "claim_named" [INT8, INT8, INT8, INT4_ARRAY];
    CLAIM_QUICK "claim_quick" [INT8, INT8, INT8, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8, BOOL];
    CLAIM_SUSPECT "claim_suspect" [INT8, INT8, INT4_ARRAY, INT8_ARRAY, INT8];
    COPY_ADVANCE "copy_advance" [INT8, INT8];
    COPY_BEGIN "copy_begin" [INT8];
    COPY_COUNTS "copy_counts" [];
    COPY_HISTORY "copy_history" [
        INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY,
        INT4_ARRAY, INT4_ARRAY, INT2_ARRAY, INT2_ARRAY, INT2_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY
    ];
    COPY_JOBS "copy_jobs" [
        TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY, INT2_ARRAY, BOOL_ARRAY,
        BOOL_ARRAY
    ];
    COPY_KEYS "copy_keys" [TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY];
    COPY_LANES "copy_lanes" [TEXT_ARRAY, TEXT_ARRAY];
    COPY_NUMBERS "copy_numbers" [INT8, INT8];
    COPY_PARTS "copy_parts" [];
    COPY_PAUSED "copy_paused" [TEXT_ARRAY, INT8_ARRAY];
    COPY_RESUME "copy_resume" [TEXT_ARRAY];
    COPY_SCHEDULES "copy_schedules" [TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, BOOL_ARRAY, TEXT_ARRAY];
    COPY_STATE "copy_state" [];
    COPY_TASKS "copy_tasks" [
        INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY,
        INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT2_ARRAY,
        INT2_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY
    ];
    COPY_TODO "copy_todo" [];
    COPY_WORKFLOWS "copy_workflows" [TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT2_ARRAY];
    COUNT_CROWD "count_crowd" [INT8];
    COUNT_DEAD "count_dead" [INT8];
    CRASH "crash" [INT8, INT8_ARRAY, INT4_ARRAY, BOOL_ARRAY, INT4_ARRAY];
    DELETE_AWAITED "delete_awaited" [INT8, INT8];
    DELETE_DEAD "delete_dead" [INT8, INT8, INT8];
    DELETE_HISTORY "delete_history" [INT8, INT8];
    DELETE_KEYS "delete_keys" [INT8, INT8, INT8];
    DELETE_REST "delete_rest" [INT8, INT8];
    DELETE_TOMBSTONES "delete_tombstones" [INT8, INT8];
    DEPTH_KEPT "depth_kept" [];
    DEPTH_NOW "depth_now" [INT8];
    DEPTH_PUT "depth_put" [INT4_ARRAY, INT2_ARRAY, INT8_ARRAY];
    DOCTOR_HORIZON "doctor_horizon" [];
    DOCTOR_INDEXES "doctor_indexes" [TEXT];
    DOCTOR_SERVER "doctor_server" [];
    DOCTOR_TABLES "doctor_tables" [TEXT];
    DOORBELL_ARM "doorbell_arm" [INT8, INT4_ARRAY, INT8];
    DOORBELL_DISARM "doorbell_disarm" [INT8];
    DOORBELL_RING "doorbell_ring" [INT4_ARRAY, TEXT, INT8];
    DRAW_IDS "draw_ids" [INT8];
    END_WORKER "end_worker" [INT8];
    ENQUEUE "enqueue" [
        INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT2_ARRAY, BYTEA_ARRAY, TEXT, BOOL, INT8, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT2_ARRAY, TEXT_ARRAY, INT4_ARRAY
    ];
    ENQUEUE_FOR "enqueue_for" [INT4, INT4, INT4, INT2, BYTEA, TEXT, BOOL, INT8, INT8, TEXT, TEXT, INT8, INT8, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, BOOL];
    ENQUEUE_OFFERED "enqueue_offered" [INT4, INT4, INT4, INT2, BYTEA, INT8];
    ENQUEUE_ONE "enqueue_one" [INT4, INT4, INT4, INT2, BYTEA, TEXT, BOOL, INT8, BOOL, BOOL];
    ENQUEUE_PLAIN "enqueue_plain" [INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT2_ARRAY, BYTEA_ARRAY, TEXT, BOOL, INT8];
    ENQUEUE_TASK "enqueue_task" [TEXT, INT2, BYTEA, TEXT, TEXT, TEXT, INT4, INT8, INT8, TEXT, BOOL, INT4, INT8, TEXT, INT2, INT4];
    ENQUEUE_TRACED "enqueue_traced" [TEXT, INT2, BYTEA, TEXT, TEXT, TEXT, INT4, INT8, INT8, TEXT, BOOL, INT4, INT8, TEXT, INT2, INT4, TEXT];
    EXPIRED_WORKERS "expired_workers" [BOOL, INT8];
    FIND_ENDED "find_ended" [INT8_ARRAY, INT8];
    FLOOR_HISTORY "floor_history" [INT8, INT8, INT8];
    FLOOR_TASK "floor_task" [INT8, INT8];
    FLUSH "flush" [];
    FORGET_PART "forget_part" [TEXT];
    FREED_TAKE "freed_take" [INT8];
    HELD "held" [INT8, INT8, INT8, INT8];
    HELD_NAMED "held_named" [INT8, INT8_ARRAY, INT4_ARRAY];
    HISTORY_SIZE "history_size" [INT8];
    HOLD_TERM "hold_term" [INT8, INT8];
    INFO "info" [TEXT];
    INSERT_LANES "insert_lanes" [TEXT_ARRAY, TEXT_ARRAY];
    JOB_COUNT "job_count" [TEXT_ARRAY, BOOL_ARRAY, INT8_ARRAY];
    JOB_DEMOTE "job_demote" [TEXT_ARRAY, INT8_ARRAY];
    JOB_FORGET "job_forget" [TEXT_ARRAY];
    JOB_GONE "job_gone" [TEXT];
    JOB_LIST "job_list" [TEXT, TEXT, INT8, INT8];
    JOB_LOCK "job_lock" [TEXT_ARRAY];
    JOB_MAKE "job_make" [TEXT_ARRAY, INT4];
    JOB_NOTE "job_note" [TEXT_ARRAY, BOOL_ARRAY, BOOL_ARRAY, INT8_ARRAY];
    JOB_OCCUPANTS "job_occupants" [TEXT, INT8];
    JOB_OUTRANKED "job_outranked" [TEXT_ARRAY];
    JOB_PACE "job_pace" [TEXT, BOOL];
    JOB_PARK "job_park" [TEXT_ARRAY, INT8];
    JOB_PROMOTE "job_promote" [TEXT_ARRAY, INT8_ARRAY, BOOL_ARRAY];
    JOB_SET "job_set" [TEXT, BOOL, INT4, BOOL, INT8, INT2];
    JOB_TASKS "job_tasks" [TEXT, BOOL, INT8, INT8];
    KEY_HOLDER "key_holder" [TEXT, TEXT];
    KEY_READ "key_read" [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, BYTEA_ARRAY];
    KEY_TAKE "key_take" [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, BYTEA_ARRAY, INT8_ARRAY];
    LANES "lanes" [];
    LEAD "lead" [INT8, INT8, INT8, INT8, INT8];
    LIST_DEAD "list_dead" [INT8, INT8, INT2, TEXT, TEXT, TEXT, TEXT, INT8];
    LIST_HISTORY "list_history" [INT8, INT8, INT2, TEXT, TEXT, TEXT, TEXT, INT8, INT8];
    LIST_TASK "list_task" [INT8, INT8, INT2, TEXT, TEXT, TEXT, TEXT, INT8];
    LOCK_EXPIRED "lock_expired" [INT8];
    LOCK_WORKER "lock_worker" [INT8];
    LOOK "look" [];
    NEXT_DUE "next_due" [];
    NOTE_PART "note_part" [TEXT, INT8, INT8];
    NOTIFY "notify" [TEXT, TEXT];
    NOW "now" [];
    OFFER_LAY "offer_lay" [INT8, INT8, INT8, INT4_ARRAY, TEXT, INT8];
    OFFER_WITHDRAW "offer_withdraw" [INT8, INT8];
    PARK_DEAD "park_dead" [INT8];
    PARTS "parts" [TEXT];
    PAUSE_QUEUE "pause_queue" [TEXT];
    PAUSED_QUEUES "paused_queues" [];
    PROMOTE_DUE "promote_due" [INT8];
    PUT_PROGRESS "put_progress" [INT8, INT4, INT8, TEXT];
    RAISE_MIN_CLAIM_NO "raise_min_claim_no" [INT8, INT8];
    READY_LINES "ready_lines" [INT8];
    REDRIVE "redrive" [INT8_ARRAY, INT8_ARRAY, BOOL_ARRAY];
    REGISTRATION "registration" [INT8];
    REGISTER "register" [TEXT, INT4, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT4, INT8, TEXT];
    REMOVE_DEAD "remove_dead" [INT8_ARRAY, INT8];
    RENEW "renew" [INT8, INT4, INT4, BOOL, INT8, INT8, FLOAT8, FLOAT8, TEXT];
    RENEW_MANY "renew_many" [
        INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, BOOL_ARRAY, INT8, INT8, FLOAT8_ARRAY, FLOAT8_ARRAY, TEXT_ARRAY
    ];
    RESUME_QUEUE "resume_queue" [TEXT, TEXT];
    SCHEDULE_DUE "schedule_due" [INT8];
    SCHEDULE_FIND "schedule_find" [TEXT];
    SCHEDULE_LIST "schedule_list" [];
    SCHEDULE_LOCK "schedule_lock" [TEXT, INT8, TEXT];
    SCHEDULE_MOVE "schedule_move" [TEXT, INT8, INT8, INT8];
    SCHEDULE_PUT "schedule_put" [TEXT, TEXT, BOOL, INT8];
    SCHEDULE_REMOVE "schedule_remove" [TEXT];
    SETTLE_ASKED "settle_asked" [INT8, INT8_ARRAY, INT4_ARRAY, INT8, BOOL];
    SETTLE_DONE "settle_done" [INT8, INT4, INT8, INT8_ARRAY, INT4_ARRAY, INT8, BOOL];
    SETTLE_DONE_AT "settle_done_at" [INT8, INT4, INT8, INT8_ARRAY, INT4_ARRAY, INT8, BOOL, INT4, TID_ARRAY];
    SETTLE_FENCED "settle_fenced" [INT8, INT4, INT8, INT8_ARRAY];
    SETTLE_LEAVE "settle_leave" [
        INT8, INT8_ARRAY, INT4_ARRAY, INT2_ARRAY, TEXT_ARRAY, INT2_ARRAY, BYTEA_ARRAY, INT8, BOOL
    ];
    SETTLE_RECEIPT "settle_receipt" [INT8, INT4, INT8];
    SETTLE_REPLAY "settle_replay" [INT8, INT4];
    SETTLE_REOPEN "settle_reopen" [INT8, INT4, INT8];
    SETTLE_STAY "settle_stay" [INT8, INT8_ARRAY, INT4_ARRAY, INT2_ARRAY, INT8_ARRAY, TEXT_ARRAY];
    SETTLE_STAY_AT "settle_stay_at" [INT8, INT4, INT8, INT8_ARRAY, INT4_ARRAY, INT2, INT8_ARRAY, TEXT, TID_ARRAY, INT4, TEXT_ARRAY];
    SET_WORKER_SLOTS "set_worker_slots" [INT8, INT4];
    SHOW_TASK "show_task" [INT8_ARRAY, INT8];
    SUSPECT_ASIDE "suspect_aside" [INT4_ARRAY, INT8_ARRAY];
    SUSPECT_GROUPS "suspect_groups" [INT4_ARRAY];
    TODO_HELD "todo_held" [];
    TODO_LATER "todo_later" [TEXT_ARRAY, INT8_ARRAY];
    TODO_PUT "todo_put" [INT2_ARRAY, TEXT_ARRAY];
    TODO_ROOM "todo_room" [];
    TODO_TAKE "todo_take" [INT8];
    TOKEN_ADD "token_add" [TEXT, TEXT, BYTEA, TEXT, INT8, INT8, TEXT];
    TOKEN_FIND "token_find" [TEXT];
    TOKEN_LIST "token_list" [];
    TOKEN_REMOVE "token_remove" [TEXT];
    UNPARK "unpark" [INT8];
    VACUUM_LOOK "vacuum_look" [TEXT, TEXT_ARRAY];
    WORKERS "workers" [INT8];
    WORKFLOW_BLOCK "workflow_block" [TEXT_ARRAY, INT8_ARRAY];
    WORKFLOW_FORGET "workflow_forget" [TEXT_ARRAY];
    WORKFLOW_FREE "workflow_free" [TEXT_ARRAY, BOOL];
    WORKFLOW_LIST "workflow_list" [TEXT, BOOL, TEXT, INT8, INT8];
    WORKFLOW_LOCK "workflow_lock" [TEXT_ARRAY];
    WORKFLOW_MAKE "workflow_make" [TEXT_ARRAY];
    WORKFLOW_OF "workflow_of" [INT8_ARRAY];
    WORKFLOW_PASS "workflow_pass" [TEXT_ARRAY];
    WORKFLOW_PLACE "workflow_place" [TEXT_ARRAY];
    WORKFLOW_STEPS "workflow_steps" [TEXT_ARRAY, BOOL, INT8];
}

/// The statements as they are sent: for one schema, without their comments.
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

/// The schema that holds the tables: a plain lower-case name, so that it can stand in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(String);

/// Longest name of a schema: the name of a channel is made of it, and PostgreSQL cuts names at 63 bytes.
const SCHEMA_MAX_BYTES: usize = 40;

impl Schema {
    /// Checks a name.
    ///
    /// # Errors
    /// A sentence that says what a name looks like.
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

    /// A statement that was written for the schema `windlass`, for this one.
    pub(crate) fn render(&self, sql: &str) -> String {
        let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
        let bare = lines.collect::<Vec<_>>().join("\n");
        let bare = bare.replace("{schema}", &self.0);
        if self.0 == DEFAULT_SCHEMA { bare } else { bare.replace("windlass.", &format!("\"{}\".", self.0)) }
    }

    /// The channel on which its workers are rung.
    pub(crate) fn channel(&self) -> String {
        format!("windlass_{}", self.0)
    }
}

/// The schema unless another is named.
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
    fn a_schema_has_a_plain_name() {
        for name in ["", "1a", "A", "a-b", "pg_temp", "a\"b", &"a".repeat(41)] {
            assert!(Schema::new(name).is_err(), "{name}");
        }
        assert_eq!(Schema::new("_a1").unwrap().as_str(), "_a1");
    }
}
