//! Every statement, one a file in `sql/`.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $file, ".sql"));)*

        /// Every statement with the name of its file.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

statements! {
    AUDIT = "audit";
    ASK_CANCEL = "ask_cancel";
    CLAIM_KEYS = "claim_keys";
    CLAIM_READ = "claim_read";
    CLAIM_SUSPECT = "claim_suspect";
    CLAIM_TAKE = "claim_take";
    CLAIM_TAKE_ONE = "claim_take_one";
    COUNT_DEAD = "count_dead";
    DELETE_DEAD = "delete_dead";
    DELETE_DONE = "delete_done";
    DELETE_HISTORY_RANGE = "delete_history_range";
    DELETE_KEY = "delete_key";
    DELETE_RECEIPTS = "delete_receipts";
    DELETE_RUNNING = "delete_running";
    DELETE_UNSTARTED = "delete_unstarted";
    DELETE_WORKER = "delete_worker";
    END_WORKER = "end_worker";
    ENDED_WORKERS = "ended_workers";
    EXPIRE_KEY = "expire_key";
    FIND_DUE = "find_due";
    FIND_ENDED = "find_ended";
    FIND_KEY = "find_key";
    FIND_RECEIPT = "find_receipt";
    FIND_TASK = "find_task";
    FLOOR_HISTORY = "floor_history";
    FLOOR_TASK = "floor_task";
    INSERT_LANE = "insert_lane";
    INSERT_PLAIN_TASK = "insert_plain_task";
    INSERT_TASK = "insert_task";
    INSERT_WORKER = "insert_worker";
    IS_ENDED = "is_ended";
    KEEP_CANCELLED = "keep_cancelled";
    KEEP_DONE = "keep_done";
    KEEP_ENDED = "keep_ended";
    LIST_DEAD = "list_dead";
    LIST_HISTORY = "list_history";
    LIST_TASK = "list_task";
    LOAD_FIGURES = "load_figures";
    LOAD_LANES = "load_lanes";
    LOAD_PAUSED = "load_paused";
    LOAD_TASKS = "load_tasks";
    LOAD_WORKERS = "load_workers";
    NEXT_DUE = "next_due";
    OLD_DEAD = "old_dead";
    OLD_HISTORY = "old_history";
    OLD_KEYS = "old_keys";
    OLD_WORKERS = "old_workers";
    PAUSE_QUEUE = "pause_queue";
    PROLONG_KEY = "prolong_key";
    PROMOTE = "promote";
    PUT_KEY = "put_key";
    PUT_PROGRESS = "put_progress";
    PUT_RECEIPT = "put_receipt";
    RAISE_MIN_CLAIM_NO = "raise_min_claim_no";
    READ_LOG = "read_log";
    REDRIVE = "redrive";
    RESUME_QUEUE = "resume_queue";
    SETTLE_DEAD = "settle_dead";
    SETTLE_READY = "settle_ready";
    SETTLE_RETRY = "settle_retry";
    SHOW_HISTORY = "show_history";
    SHOW_TASK = "show_task";
    WRITE_FIGURES = "write_figures";
}
