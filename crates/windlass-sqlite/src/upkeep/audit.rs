//! Finds tasks that break a promise.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row};
use windlass_core::{Name, Result, TaskId, store::Finding};

use crate::{
    connection::{
        call::{Class, Sync},
        reader::read_error,
        tx::{Step, Tx},
    },
    gates::job::optional_name,
    sql,
    store::SqliteStore,
};

/// Most findings: more would tell nothing new.
const FINDINGS_MAX: i64 = 1_000;

/// Jobs and workflows with a pending turn: tasks that wait for them are not stranded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    jobs: BTreeSet<Name>,
    workflows: BTreeSet<Name>,
}

impl Pending {
    /// The gates that are pending now.
    pub(crate) fn now(tx: &Tx<'_>) -> Self {
        let rooms = &tx.memory.rooms;
        Self { jobs: rooms.pending_jobs().clone(), workflows: rooms.pending_workflows().clone() }
    }

    /// The gates that were pending at one of two moments.
    pub(crate) fn or(mut self, other: Self) -> Self {
        self.jobs.extend(other.jobs);
        self.workflows.extend(other.workflows);
        self
    }

    fn explains(&self, found: &Found) -> bool {
        found.job.as_ref().is_some_and(|job| self.jobs.contains(job))
            || found.workflow.as_ref().is_some_and(|workflow| self.workflows.contains(workflow))
    }
}

/// A finding, with the gates whose turn would explain it.
#[derive(Debug)]
pub(crate) struct Found {
    finding: Finding,
    job: Option<Name>,
    workflow: Option<Name>,
}

/// Everything that looks wrong, and that no pending turn explains.
pub(crate) async fn explained(store: &SqliteStore) -> Result<Vec<Finding>> {
    let pending = |tx: &mut Tx<'_>| -> Step<Pending> { Ok(Pending::now(tx)) };
    let before = store.write(Class::Client, Sync::Read, pending).await?;
    let found = store.read(audit).await?;
    let after = store.write(Class::Client, Sync::Read, pending).await?;
    Ok(unexplained(found, &before.or(after)))
}

/// The findings that no pending turn explains.
fn unexplained(found: Vec<Found>, pending: &Pending) -> Vec<Finding> {
    found.into_iter().filter(|found| !pending.explains(found)).map(|found| found.finding).collect()
}

/// Everything that looks wrong in the file.
fn audit(conn: &Connection) -> Result<Vec<Found>> {
    let find = || -> rusqlite::Result<Vec<Found>> {
        let mut tasks = conn.prepare(sql::AUDIT)?;
        let tasks = tasks.query_map([FINDINGS_MAX], |row| {
            Ok(Found { finding: finding(row)?, job: None, workflow: None })
        })?;
        let mut gates = conn.prepare(sql::AUDIT_GATES)?;
        let gates = gates.query_map([FINDINGS_MAX], |row| {
            let (job, workflow) = (optional_name(row, 3)?, optional_name(row, 4)?);
            Ok(Found { finding: finding(row)?, job, workflow })
        })?;
        tasks.chain(gates).collect()
    };
    find().map_err(|error| read_error(&error))
}

fn finding(row: &Row<'_>) -> rusqlite::Result<Finding> {
    let task = row.get::<_, Option<i64>>(0)?.map(TaskId::from_raw);
    Ok(Finding { task, promise: row.get(1)?, detail: row.get(2)? })
}
