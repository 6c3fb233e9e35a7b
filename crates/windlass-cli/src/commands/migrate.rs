//! `windlass migrate`.

use clap::Args;
use serde_json::json;
use windlass_core::Store as _;

use crate::{
    failure::Exit,
    session::Session,
    store::{self, Missing},
};

/// Arguments of `migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Only say what would be done
    #[arg(long)]
    plan: bool,
}

/// Runs it.
pub async fn run(session: &Session, args: &MigrateArgs) -> anyhow::Result<Exit> {
    let _ = args;
    let store = store::open(&session.settings, Missing::Create).await?;
    let info = store.info().await?;
    store.close().await?;
    if session.out.is_json() {
        session.out.json(
            &json!({"store": info.location, "schema_version": info.schema_version, "created": info.created}),
        )?;
    } else {
        let made = if info.created { "made with" } else { "is at" };
        session.out.note(format!("{} {made} schema version {}", info.location, info.schema_version));
    }
    Ok(Exit::Done)
}
