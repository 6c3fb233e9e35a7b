//! Searches for tasks that break a promise.

use windlass_core::{Result, store::Finding};

use crate::{connection::values::Cells, shared::Shared, sql};

/// Findings in one answer.
const FINDINGS_MAX: i64 = 1_000;

/// Reads the whole store: for operators and tests.
pub(crate) async fn audit(shared: &Shared) -> Result<Vec<Finding>> {
    let rows = shared.pool.query(&sql::AUDIT, &[&FINDINGS_MAX]).await?;
    let finding = |row: &tokio_postgres::Row| Finding {
        task: Some(row.task(0)),
        promise: row.get(1),
        detail: row.get(2),
    };
    Ok(rows.iter().map(finding).collect())
}
