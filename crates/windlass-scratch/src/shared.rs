//! One cluster for all tests of a run.

use std::{env, sync::OnceLock};

use crate::{Cluster, ClusterOptions, Error};

/// The variable that says where the shared cluster of a test run is.
pub const SHARED_URL_VARIABLE: &str = "WINDLASS_TEST_POSTGRES";

/// The URL, as role `windlass`, of a server that tests share: each makes a schema of its own there.
///
/// `WINDLASS_TEST_POSTGRES` names it in a whole test run; without it this process starts one for itself, which is
/// gone when the process is.
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
