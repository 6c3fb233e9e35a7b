//! The store on PostgreSQL, with the options from the settings.

use windlass_postgres::{History, Notify, OpenError, Options, Schema};

use crate::{
    config::{Settings, table},
    failure::{Exit, Failure},
};

/// The store's options from the settings.
pub fn options(settings: &Settings) -> Result<Options, Failure> {
    let history = match settings.text(&table::HISTORY).as_str() {
        "off" => History::Off,
        _ => History::Kept,
    };
    let notify = match settings.text(&table::NOTIFY).as_str() {
        "on" => Notify::On,
        "off" => Notify::Off,
        url if windlass_postgres::is_postgres(url) => Notify::At(url.to_owned()),
        _ => return Err(Failure::usage("notify must be on, off or a direct postgres:// address")),
    };
    Ok(Options {
        rules: settings.rules(),
        schema: Schema::new(&settings.text(&table::SCHEMA)).map_err(Failure::usage)?,
        history,
        notify,
        durable_claims: settings.text(&table::CLAIMS) == "durable",
        pooled: settings.text(&table::POOLER) == "transaction",
        pool_size: settings.number(&table::STORE_CONNECTIONS) as usize,
        vacuum: settings.text(&table::VACUUM) == "on",
        ..Options::default()
    })
}

/// What the user sees when a store cannot be opened.
pub fn failure(error: &OpenError) -> Failure {
    let shown = error.to_string();
    // For most errors the hint already stands in the text, after the semicolon.
    match error {
        OpenError::Unreachable { .. } => Failure::new(Exit::Unreachable, shown)
            .hint("check that the server runs and that the address, the user and the database are right"),
        OpenError::Invalid(_) => Failure::usage(shown),
        OpenError::NoSchema { .. }
        | OpenError::OlderSchema { .. }
        | OpenError::NewerSchema { .. }
        | OpenError::ForeignSchema { .. }
        | OpenError::ReadOnly { .. } => split(Exit::Refused, &shown),
        _ => Failure::new(Exit::Failed, shown),
    }
}

fn split(exit: Exit, shown: &str) -> Failure {
    match shown.rsplit_once("; ") {
        Some((message, hint)) => Failure::new(exit, message).hint(hint),
        None => Failure::new(exit, shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_error_is_split_into_message_and_hint() {
        let error = OpenError::NoSchema { location: "postgres://db/app".into(), schema: "windlass".into() };
        let failure = failure(&error);
        assert_eq!(failure.exit, Exit::Refused);
        assert_eq!(failure.message, "postgres://db/app has no schema \"windlass\" of Windlass");
    }
}
