//! Opening: the server, its schema, the threads that drive connections, and what runs in the background.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use crate::{
    connection::{
        conn::{Commits, Server},
        driver::Driver,
        error::OpenError,
        options::{Location, Notify, Options},
    },
    enqueue::group_commit::{self, Gather, Sort},
    gates::admit,
    leases::renew::{self, Renewals},
    operate::info::Origin,
    shared::{Shared, Weakly},
    store::PostgresStore,
    upkeep::{
        migrate::{self, Migration},
        vacuum,
    },
    wakeup::{
        listener,
        offer::{self, Offers},
    },
};

/// Opens a store whose schema is made by these steps.
pub async fn open(
    location: &Location,
    options: Options,
    migrations: &'static [Migration],
) -> Result<Arc<PostgresStore>, OpenError> {
    let unreachable = |reason: String| OpenError::Unreachable { location: location.to_string(), reason };
    let start = |name| Driver::start(name).map(Arc::new).map_err(|error| unreachable(error.to_string()));
    // Renewals have a thread of their own, so that large answers on the other thread do not delay them.
    let (driver, renewal_driver) = (start("windlass-postgres")?, start("windlass-renew")?);
    let server = Arc::new(Server::new(location, &options).map_err(OpenError::Invalid)?);
    let listen_at = match &options.notify {
        Notify::On if options.pooled => None,
        Notify::On => Some(Arc::clone(&server)),
        Notify::At(url) => {
            let direct = Location::parse(url).map_err(|error| OpenError::Invalid(error.to_string()))?;
            Some(Arc::new(Server::new(&direct, &options).map_err(OpenError::Invalid)?))
        }
        Notify::Off => None,
    };
    let origin = prepare(location, &options, &server, &driver, migrations).await?;
    let (offers, chores) = Offers::new();
    let shared = Arc::new(Shared::new(options, &server, &driver, &renewal_driver, listener_number(), offers));
    let lanes = async { shared.lanes.load(&mut shared.pool.session().await?).await };
    lanes.await.map_err(|error| unreachable(error.to_string()))?;
    let (plain, keyed) = (Arc::new(Gather::new(Sort::Plain)), Arc::new(Gather::new(Sort::Keyed)));
    for gather in [&plain, &keyed] {
        driver.handle().spawn(group_commit::run(Arc::clone(gather), Weakly::new(&shared)));
    }
    let renewals = Arc::new(Renewals::new());
    renewal_driver.handle().spawn(renew::run(Arc::clone(&renewals), Weakly::new(&shared)));
    driver.handle().spawn(admit::run(Arc::clone(&shared.admission), Weakly::new(&shared)));
    driver.handle().spawn(vacuum::run(Arc::clone(&shared.vacuum), Weakly::new(&shared)));
    driver.handle().spawn(offer::run(chores, Weakly::new(&shared)));
    if let Some(server) = listen_at {
        driver.handle().spawn(listener::listen(Weakly::new(&shared), server, Arc::clone(&driver)));
    }
    Ok(Arc::new(PostgresStore::new(shared, plain, keyed, renewals, origin)))
}

/// Reads the server's version and its schema. Makes the schema or brings it forward if the options say so.
async fn prepare(
    location: &Location,
    options: &Options,
    server: &Arc<Server>,
    driver: &Driver,
    migrations: &'static [Migration],
) -> Result<Origin, OpenError> {
    let unreachable = |reason: String| OpenError::Unreachable { location: location.to_string(), reason };
    let conn = server
        .connect(driver, "open", &server.patience(), Commits::Safe)
        .await
        .map_err(|refusal| unreachable(refusal.text))?;
    if options.migrate {
        let migrated = migrate::apply(&conn, location, &options.schema, migrations).await?;
        return Ok(Origin { schema_version: migrated.version, created: migrated.created });
    }
    migrate::check_server(&conn, location).await?;
    let (shown, schema) = (location.to_string(), options.schema.as_str().to_owned());
    let needed = migrate::newest(migrations);
    match migrate::check(&conn, location, &options.schema, migrations).await? {
        None => Err(OpenError::NoSchema { location: shown, schema }),
        Some(found) if found.version < needed => {
            Err(OpenError::OlderSchema { location: shown, schema, found: found.version, needed })
        }
        Some(found) => Ok(Origin { schema_version: found.version, created: false }),
    }
}

/// The number of this process among the listeners and leaders: random, because host names and process numbers
/// repeat.
fn listener_number() -> i64 {
    let number = RandomState::new().hash_one(std::process::id()) >> 1;
    (number as i64).max(1)
}
