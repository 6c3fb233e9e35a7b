//! Enqueue from Python with psycopg, in a process of its own.

use std::process::Command;

use windlass_conformance::cases::rig::Rig;
use windlass_core::{Payload, TaskId};

use crate::{
    desk::schema,
    support::{PostgresHarness, url},
};

const SCRIPT: &str = r#"
import datetime, sys
import psycopg
from psycopg.types.json import Json

url, schema = sys.argv[1:]
ENQUEUE = f"SELECT id, existing FROM {schema}.enqueue(kind => %s, payload => %s, key => %s)"

with psycopg.connect(url) as db:
    with db.transaction():
        first = db.execute(ENQUEUE, ("a", Json({"to": "a@b.c"}), "k1")).fetchone()
        db.execute(ENQUEUE, ("a", '{"n": 2}', None))
    try:
        with db.transaction():
            db.execute(ENQUEUE, ("a", Json("gone"), "k2"))
            raise RuntimeError("changed my mind")
    except RuntimeError:
        pass
    with db.transaction():
        again = db.execute(ENQUEUE, ("a", Json({"to": "a@b.c"}), "k1")).fetchone()
    assert first[1] is False and again == (first[0], True), (first, again)

    try:
        with db.transaction():
            db.execute(ENQUEUE, ("a", Json("other"), "k1"))
        raise AssertionError("a conflict was not refused")
    except psycopg.errors.UniqueViolation as error:
        assert error.diag.message_detail == first[0], error.diag.message_detail
    try:
        with db.transaction():
            db.execute(ENQUEUE, (" a", Json(1), None))
        raise AssertionError("a bad name was not refused")
    except psycopg.errors.InvalidParameterValue as error:
        assert "spaces at its ends" in str(error), error

    with db.transaction():
        later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=365)
        db.execute(
            f"SELECT {schema}.enqueue(kind => 'a', run_at => %s, timeout => %s, priority => %s)",
            (later, datetime.timedelta(seconds=30), 9),
        )
print(first[0])
"#;

#[tokio::test]
async fn a_process_of_python_enqueues_inside_its_transactions() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let schema = schema(&rig);
    let run = tokio::task::spawn_blocking(move || {
        let python = windlass_scratch::python_with_psycopg().unwrap();
        Command::new(python).args(["-c", SCRIPT, &url(), &schema]).output().unwrap()
    });
    let output = run.await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let first: TaskId = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();

    let claimed = rig.worker().await.claim(10).await;
    assert_eq!(claimed.len(), 2, "one was rolled back, one is scheduled");
    assert_eq!(
        (claimed[0].id, &claimed[0].payload),
        (first, &Payload::json_text("{\"to\": \"a@b.c\"}").unwrap())
    );
    assert_eq!(claimed[1].payload, Payload::json_text("{\"n\": 2}").unwrap());
    rig.assert_sound().await;
}
