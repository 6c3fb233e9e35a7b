//! What `doctor` reports about a PostgreSQL server, with advice.

use std::time::Duration;

use windlass_core::why::human;
use windlass_postgres::{Examination, Horizon, Location, TableHealth};

use super::{Level, Report};
use crate::{config::Settings, output::text, store};

/// So many dead rows are normal.
const DEAD_ROWS_FEW: u64 = 50_000;
/// A snapshot that is held for longer makes the tables grow.
const HORIZON_LONG: Duration = Duration::from_mins(5);
/// Above this share of its connections a server counts as nearly full.
const CONNECTIONS_FULL: f64 = 0.8;
/// Above this share of PostgreSQL's notification queue, some session listens without reading.
const NOTIFICATIONS_FULL: f64 = 0.5;

pub(super) async fn checks(
    report: &mut Report,
    settings: &Settings,
    location: &Location,
    live_workers: usize,
) -> anyhow::Result<()> {
    let options = store::postgres::options(settings)?;
    let found = windlass_postgres::examine(location, &options)
        .await
        .map_err(|error| store::postgres::failure(&error))?;
    connections(report, &found);
    for table in found.tables.iter().filter(|table| table.name == "task") {
        dead_rows(report, &found, table);
        clean_up(report, options.vacuum, table);
    }
    horizon(report, &found);
    indexes(report, &found);
    history(report, &found, live_workers);
    if found.notifications > NOTIFICATIONS_FULL {
        let share = found.notifications * 100.0;
        let detail = format!(
            "the queue of notifications is {share:.0} % full: a session listens without reading; end it"
        );
        report.add("notify", Level::Wrong, detail);
    }
    if !found.durable {
        let detail = "fsync or synchronous_commit is off: a crash of the server may lose acknowledged tasks";
        report.add("durability", Level::Note, detail);
    }
    Ok(())
}

fn connections(report: &mut Report, found: &Examination) {
    let Examination { connections_used: used, connections_max: max, connections_ours: ours, .. } = found;
    let is_full = *used as f64 > *max as f64 * CONNECTIONS_FULL;
    let advice =
        if is_full { "; raise max_connections, run fewer processes, or put a pooler in between" } else { "" };
    let level = if is_full { Level::Wrong } else { Level::Ok };
    report.add("connections", level, format!("{used} of {max} in use, {ours} by Windlass{advice}"));
}

fn dead_rows(report: &mut Report, found: &Examination, table: &TableHealth) {
    let (dead, live) = (text::count(table.dead_rows), text::count(table.live_rows));
    let cleaned =
        table.cleaned_at.map_or_else(|| "never cleaned up".to_owned(), |at| format!("cleaned up at {at}"));
    let detail =
        format!("{live} rows, {dead} wait to be cleaned up, {}, {cleaned}", text::bytes(table.bytes));
    let is_many = table.dead_rows > DEAD_ROWS_FEW && table.dead_rows > table.live_rows;
    if !found.autovacuum || table.is_left_alone {
        report.add("dead rows", Level::Wrong, format!("{detail}; autovacuum is off: turn it on"));
    } else if is_many {
        let advice = "see who holds the horizon below; else give autovacuum more workers";
        report.add("dead rows", Level::Note, format!("{detail}; {advice}"));
    } else {
        report.add("dead rows", Level::Ok, detail);
    }
}

/// Notes it if only autovacuum removes dead rows: it runs once a minute.
fn clean_up(report: &mut Report, is_wanted: bool, table: &TableHealth) {
    if !is_wanted {
        report.add("clean-up", Level::Note, "left to autovacuum: `vacuum` is off");
    } else if !table.is_ours {
        let detail =
            "left to autovacuum: this user does not own the tables, so that workers cannot clean them up";
        report.add("clean-up", Level::Note, detail);
    }
}

fn horizon(report: &mut Report, found: &Examination) {
    let blind =
        if found.sees_all_sessions { "" } else { " (only own sessions seen: GRANT pg_monitor to see all)" };
    match &found.horizon {
        Some(Horizon { holder, age_transactions, open_for }) => {
            let open =
                open_for.map_or_else(String::new, |open_for| format!(", open for {}", human(open_for)));
            let age = text::count(*age_transactions);
            let detail =
                format!("{} holds a snapshot from {age} transactions ago{open}", text::clean(holder));
            if open_for.is_none_or(|open_for| open_for > HORIZON_LONG) {
                let advice = "nothing that ended since can be cleaned up: end it, or set idle_in_transaction_session_timeout";
                report.add("horizon", Level::Wrong, format!("{detail}; {advice}{blind}"));
            } else {
                report.add("horizon", Level::Ok, format!("{detail}{blind}"));
            }
        }
        None => report.add("horizon", Level::Ok, format!("no session holds an old snapshot{blind}")),
    }
}

fn indexes(report: &mut Report, found: &Examination) {
    let sizes: Vec<String> =
        found.indexes.iter().map(|(name, bytes)| format!("{name} {}", text::bytes(*bytes))).collect();
    report.add("indexes", Level::Ok, sizes.join(", "));
}

/// Whether a leader holds the lease for the duties that one worker does for all. A worker asks for it
/// every few seconds, so just after the start there may be none.
fn leader(found: &Examination, live_workers: usize) -> String {
    match live_workers {
        _ if found.has_leader => format!("led in term {}", found.leader_term),
        0 => "without a leader: no worker runs".to_owned(),
        1 => "without a leader at this moment: the live worker leads within seconds".to_owned(),
        live => format!("without a leader at this moment: one of {live} live workers leads within seconds"),
    }
}

fn history(report: &mut Report, found: &Examination, live_workers: usize) {
    let leader = leader(found, live_workers);
    let parts = format!("{} parts, {leader}", found.history_parts);
    match found.history_ahead {
        Some(ahead) if !ahead.is_zero() => {
            report.add("history", Level::Ok, format!("{parts}, made for the next {}", human(ahead)));
        }
        _ => report.add(
            "history",
            Level::Note,
            format!("{parts}, none made ahead: a worker makes them within seconds"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_workers_without_a_leader_are_not_called_absent() {
        let found = |has_leader| Examination { has_leader, leader_term: 7, ..Examination::default() };
        assert_eq!(leader(&found(true), 0), "led in term 7");
        assert!(leader(&found(false), 0).ends_with("no worker runs"));
        for live in [1, 2] {
            let said = leader(&found(false), live);
            assert!(said.ends_with("within seconds") && !said.contains("no worker"), "{said}");
        }
        assert!(leader(&found(false), 2).contains("one of 2 live workers"));
    }
}
