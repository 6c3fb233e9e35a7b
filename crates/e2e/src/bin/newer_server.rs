//! A server of the next version: it has one more additive migration, and applies it before it serves.
//!
//! `newer_server STORE SCHEMA LISTEN` prints its address and serves until SIGTERM.

use std::io::Write as _;

use anyhow::Context as _;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use windlass_core::Store as _;
use windlass_postgres::{
    Location, Options, Schema,
    inside::{self, Migration},
};
use windlass_server::{Operations, http};

/// Takes a lock that conflicts with every claim, settlement and enqueue, for as long as a real migration
/// would.
const NEXT: &str = "ALTER TABLE windlass.task ADD COLUMN colour text;
CREATE TABLE windlass.shade (colour text PRIMARY KEY);";

/// The migrations of this program, and the next one.
fn steps() -> anyhow::Result<&'static [Migration]> {
    let known = inside::steps();
    let last = known.last().context("there are steps")?;
    let next = Migration {
        version: last.version + 1,
        oldest_writer: last.oldest_writer,
        locks: "table task, for a moment",
        sql: NEXT,
    };
    Ok(known.iter().copied().chain([next]).collect::<Vec<_>>().leak())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |what| arguments.next().with_context(|| format!("{what} is missing"));
    let (url, schema, listen) = (argument("STORE")?, argument("SCHEMA")?, argument("LISTEN")?);
    let schema = Schema::new(&schema).map_err(anyhow::Error::msg)?;
    let options = Options { schema, migrate: true, ..Options::default() };
    let store = inside::open(&Location::parse(&url)?, options, steps()?).await?;
    let mut stop = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(&listen).await?;
    let version = store.info().await?.schema_version;
    let mut out = std::io::stdout();
    writeln!(out, "schema version {version}, listening on http://{}", listener.local_addr()?)?;
    out.flush()?;
    http::serve(listener, Operations::new(store.clone()), http::Options::default(), async {
        stop.recv().await;
    })
    .await?;
    store.close().await?;
    Ok(())
}
