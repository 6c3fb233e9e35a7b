//! One cluster for all tests of a run.

use std::{env, sync::OnceLock};

use crate::{Cluster, ClusterOptions, Error};

/// The variable with the URL of the shared cluster of a test run.
pub const SHARED_URL_VARIABLE: &str = "WINDLASS_TEST_POSTGRES";

/// The URL, as role `windlass`, of a server that tests share: each test creates its own schema there.
///
/// In a whole test run `WINDLASS_TEST_POSTGRES` names it; without it this process starts a server of its own,
/// which ends with the process.
pub fn shared_url() -> Result<String, Error> {
    static OWN: OnceLock<Result<Cluster, String>> = OnceLock::new();
    if let Some(url) = env::var(SHARED_URL_VARIABLE).ok().filter(|url| !url.is_empty()) {
        return Ok(url);
    }
    let options = ClusterOptions::new().without_fsync().max_connections(300).set("shared_buffers", "64MB");
    match OWN.get_or_init(|| Cluster::start(&options).map_err(|error| error.to_string())) {
        Ok(cluster) => Ok(cluster.url()),
        Err(reason) => Err(Error::Start { server: "the shared PostgreSQL", reason: reason.clone() }),
    }
}
