//! `SELECT … FROM windlass.enqueue(…)`, as any language does it; here from psql.

use std::time::Duration;

use windlass_conformance::{
    Harness,
    cases::rig::{Rig, keyed, name},
};
use windlass_core::{Payload, State, TaskId, text::is_unsafe};

use crate::{
    desk::{number, rows, schema},
    support::{PostgresHarness, url},
};

/// Runs statements through psql; `windlass.` is replaced by the schema.
pub async fn psql(rig: &Rig<'_>, sql: &str) -> Result<String, String> {
    let sql = sql.replace("windlass.", &format!("{}.", schema(rig)));
    let run = tokio::task::spawn_blocking(move || windlass_scratch::psql(&url(), &sql));
    run.await.unwrap().map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_task_of_psql_has_all_that_it_was_given() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let answer = psql(
        &rig,
        "SELECT * FROM windlass.enqueue(kind => 'a', payload => '{ \"to\":\"a@b.c\" }', queue => 'mail', job => 'tenant-7',
           priority => 5, key => 'k', max_attempts => 3, timeout => '90 s');",
    )
    .await
    .unwrap();
    let (id, existing) = answer.split_once('|').unwrap();
    let claimed = rig.worker().await.claim_one().await;
    assert_eq!((id, existing), (claimed.id.to_string().as_str(), "f"));
    assert_eq!(
        claimed.payload,
        Payload::json_text("{ \"to\":\"a@b.c\" }").unwrap(),
        "kept as it was written"
    );
    assert_eq!((claimed.lane.queue.as_str(), claimed.priority, claimed.max_attempts), ("mail", 5, 3));
    assert_eq!((claimed.timeout, claimed.job), (Some(Duration::from_secs(90)), Some(name("tenant-7"))));
    assert_eq!(rig.task(claimed.id).await.key.as_deref(), Some("k"));
    // The numbers at both ends have the same text too.
    for raw in [0, 1, i64::MAX] {
        let text = psql(&rig, &format!("SELECT windlass.id_text({raw});")).await.unwrap();
        assert_eq!(text, TaskId::from_raw(raw).to_string());
    }
}

#[tokio::test]
async fn what_is_left_out_or_null_has_its_default() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let all_null =
        "queue => NULL, job => NULL, workflow => NULL, priority => NULL, run_at => NULL, key => NULL,
        max_attempts => NULL, timeout => NULL, ignore_conflict => NULL";
    for arguments in ["", &format!(", {all_null}")] {
        psql(&rig, &format!("SELECT windlass.enqueue('a'{arguments});")).await.unwrap();
        let claimed = rig.worker().await.claim_one().await;
        assert_eq!(claimed.payload, Payload::json(&()).unwrap());
        assert_eq!((claimed.lane.queue.as_str(), claimed.priority, claimed.max_attempts), ("default", 0, 10));
        assert_eq!((claimed.timeout, claimed.job, claimed.retry), (None, None, None));
    }
}

#[tokio::test]
async fn a_transaction_of_psql_commits_or_leaves_nothing() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    psql(&rig, "BEGIN; SELECT windlass.enqueue('a', key => 'k'); ROLLBACK;").await.unwrap();
    assert_eq!(rows(&rig).await, 0);
    let answers = psql(
        &rig,
        "BEGIN; SELECT windlass.enqueue('a', key => 'k'); SELECT windlass.enqueue('a', key => 'k'); COMMIT;",
    )
    .await
    .unwrap();
    let id = rig.worker().await.claim_one().await.id;
    assert_eq!(answers, format!("({id},f)\n({id},t)"));
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_key_stands_for_the_same_task_in_rust_and_in_sql() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut task = keyed("k");
    task.payload = Payload::json_text("{\"n\":1}").unwrap();
    let id = rig.add(task).await;
    let same = "SELECT windlass.enqueue('a', '{\"n\":1}', key => 'k');";
    assert_eq!(psql(&rig, same).await.unwrap(), format!("({id},t)"));
    let other = psql(&rig, "SELECT windlass.enqueue('a', '{\"n\":2}', key => 'k');").await.unwrap_err();
    assert!(other.contains(&format!("already belongs to task {id}")), "{other}");
    for option in ["ignore_key_conflict", "ignore_conflict"] {
        let ignored = format!("SELECT windlass.enqueue('a', '{{\"n\":2}}', key => 'k', {option} => true);");
        assert_eq!(psql(&rig, &ignored).await.unwrap(), format!("({id},t)"), "{option}");
    }
}

/// A program that enqueues inside its own transaction must not fail because an operator has cancelled a job.
#[tokio::test]
async fn an_enqueue_to_a_cancelled_job_gets_a_notice() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.set_job_state("j", windlass_core::JobState::Cancelled).await;
    // psql shows its notices only for a run that fails.
    let said = async |sql: &str| psql(&rig, &format!("{sql} SELECT 1 / 0;")).await.unwrap_err();
    let told = said("SELECT windlass.enqueue('a', job => 'j', key => 'k');").await;
    assert!(told.contains("NOTICE: job \"j\" is cancelled, and the task with it"), "{told}");
    assert_eq!(rig.all().await.len(), 1, "it was added all the same");
    for other in ["job => 'i'", "queue => 'q'", "job => 'j', key => 'k'"] {
        let told = said(&format!("SELECT windlass.enqueue('a', {other});")).await;
        assert!(!told.contains("NOTICE"), "{other}: {told}");
    }
}

#[tokio::test]
async fn a_job_that_sql_makes_has_the_limit_that_it_gives() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    let enqueue = "SELECT windlass.enqueue('a', job => 'j', job_concurrency =>";
    psql(&rig, &format!("BEGIN; {enqueue} 2); {enqueue} 2); {enqueue} 2); COMMIT;")).await.unwrap();
    assert_eq!(worker.claim(10).await.len(), 2);
    psql(&rig, &format!("{enqueue} 9);")).await.unwrap();
    assert_eq!(worker.claim(10).await.len(), 0);
    assert_eq!(rig.job("j").await.concurrency, Some(2), "a job that is there keeps its limit");
    rig.assert_sound().await;
}

#[tokio::test]
async fn scheduled_starts_are_times_of_any_sort() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let due = "SELECT id FROM windlass.enqueue('a', run_at => to_timestamp(1763000060));";
    let id: TaskId = psql(&rig, due).await.unwrap().parse().unwrap();
    assert_eq!(rig.task(id).await.due_at, Some(harness.now().await.after(Duration::from_mins(1))));
    for (when, state) in
        [("infinity", State::Scheduled), ("-infinity", State::Ready), ("1999-01-01", State::Ready)]
    {
        let text = format!("SELECT id FROM windlass.enqueue('a', run_at => '{when}');");
        let id: TaskId = psql(&rig, &text).await.unwrap().parse().unwrap();
        assert_eq!(rig.state(id).await, state, "{when}");
    }
    rig.assert_sound().await;
}

#[tokio::test]
async fn bad_input_is_refused_with_a_sentence_that_names_it() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let long = "x".repeat(129);
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let cases = [
        ("''".to_owned(), "kind must not be empty"),
        ("NULL".to_owned(), "kind must not be empty"),
        ("' a'".to_owned(), "kind \" a\" has control characters or spaces at its ends"),
        ("E'a\\nb'".to_owned(), "kind \"a\\nb\" has control characters"),
        ("U&'a\\00a0'".to_owned(), "spaces at its ends"),
        ("U&'a\\0085b'".to_owned(), "control characters"),
        (format!("'{long}'"), "is 129 bytes long; at most 128 are allowed"),
        ("'a', queue => ''".to_owned(), "queue must not be empty"),
        ("'a', job => 'x '".to_owned(), "job \"x \" has control characters or spaces"),
        ("'a', workflow => ''".to_owned(), "workflow must not be empty"),
        ("'a', workflow => 'w', on_failure => 'stop'".to_owned(), "on_failure must be block, skip or cancel"),
        ("'a', on_failure => 'skip'".to_owned(), "name the workflow"),
        ("'a', job_concurrency => 3".to_owned(), "job_concurrency is the limit of a job; name the job"),
        ("'a', job => 'j', job_concurrency => 0".to_owned(), "job_concurrency must be 1 or more"),
        ("'a', key => ''".to_owned(), "key must have 1 to 256 bytes"),
        (format!("'a', key => '{}'", "k".repeat(257)), "key must have 1 to 256 bytes"),
        ("'a', NULL".to_owned(), "payload must not be null"),
        ("'a', '{'".to_owned(), "invalid input syntax for type json"),
        (format!("'a', '{deep}'"), "payload is nested deeper than 128 levels"),
        (format!("'a', to_json(repeat('x', {}))", 1 << 20), "payload_max_bytes"),
        ("'a', max_attempts => 0".to_owned(), "max_attempts must be 1 to 1000000"),
        ("'a', max_attempts => 1000001".to_owned(), "max_attempts must be 1 to 1000000"),
        ("'a', timeout => '0'".to_owned(), "timeout must be longer than zero"),
        ("'a', timeout => '-1 s'".to_owned(), "timeout must be longer than zero"),
    ];
    for (arguments, reason) in cases {
        let error = psql(&rig, &format!("SELECT windlass.enqueue({arguments});")).await.unwrap_err();
        assert!(error.contains(reason), "{arguments}: {error}");
    }
    assert_eq!(rows(&rig).await, 0);
}

#[tokio::test]
async fn an_error_of_enqueue_has_a_short_context() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    psql(&rig, "SELECT windlass.enqueue('a', key => 'k');").await.unwrap();
    for (arguments, levels) in [
        ("''", 4),
        ("'a', job => ' '", 4),
        ("'a', max_attempts => 0", 2),
        ("'a', on_failure => 'skip'", 2),
        ("'b', key => 'k'", 2),
        ("'a', job_concurrency => 3", 4),
    ] {
        let error = psql(&rig, &format!("SELECT windlass.enqueue({arguments});")).await.unwrap_err();
        let (_, context) = error.split_once("CONTEXT:").unwrap_or_else(|| panic!("{error}"));
        // The second is also the end of "PL/pgSQL function".
        let found = ["SQL statement ", "SQL function "].map(|level| context.matches(level).count());
        assert_eq!(found.iter().sum::<usize>(), levels, "{arguments}: {error}");
        assert!(!context.contains("coalesce"), "the text of a statement of ours is shown: {error}");
    }
}

#[tokio::test]
async fn sql_refuses_the_same_characters_in_names() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    // Every code point in ranges with unsafe ones, and some of the others.
    let refused = "CREATE FUNCTION pg_temp.is_refused(letter text) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM windlass.check_name('kind', 'a' || letter || 'b');
          RETURN false;
        EXCEPTION WHEN invalid_parameter_value THEN RETURN true;
        END $$;
        SELECT string_agg(n::text, ',' ORDER BY n) FROM generate_series(1, 1114111) AS n
        WHERE (n NOT BETWEEN 55296 AND 57343) AND (n < 70000 OR n BETWEEN 110000 AND 120000 OR n BETWEEN 915000 AND 925000 OR n % 997 = 0)
          AND pg_temp.is_refused(chr(n));";
    let refused = psql(&rig, refused).await.unwrap();
    let refused: Vec<u32> = refused.lines().last().unwrap().split(',').map(|n| n.parse().unwrap()).collect();
    let known: Vec<u32> = ('\u{1}'..=char::MAX).filter(|letter| is_unsafe(*letter)).map(u32::from).collect();
    assert_eq!(refused, known);
}

#[tokio::test]
async fn payloads_that_only_look_deep_are_taken() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let brackets_in_text = format!("[\"{}\\\"{}\"]", "[".repeat(300), "{".repeat(300));
    let wide = format!("[{}[]]", "{\"a\":[]},".repeat(300));
    let deepest = format!("{}{}", "[".repeat(128), "]".repeat(128));
    for payload in [brackets_in_text, wide, deepest] {
        assert!(Payload::json_text(payload.clone()).is_ok());
        psql(&rig, &format!("SELECT windlass.enqueue('a', '{payload}');")).await.unwrap();
    }
    assert_eq!(rig.worker().await.claim_ids(10).await.len(), 3);
}

#[tokio::test]
async fn the_limit_of_payloads_is_a_row_that_an_operator_changes() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    psql(&rig, "UPDATE windlass.meta SET value = 10 WHERE name = 'payload_max_bytes';").await.unwrap();
    let error = psql(&rig, "SELECT windlass.enqueue('a', '\"123456789\"');").await.unwrap_err();
    assert!(error.contains("payload is 11 bytes; payload_max_bytes in"), "{error}");
    psql(&rig, "SELECT windlass.enqueue('a', '\"12345678\"');").await.unwrap();
    assert_eq!(number(&rig, "SELECT count(*) FROM {s}.task").await, 1);
}
