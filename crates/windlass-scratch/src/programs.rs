//! Finds the programs of the servers.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Error;

/// Folders in which packages put one folder per version of the server.
const VERSION_FOLDERS: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"];

/// The folder with the newest PostgreSQL server on this machine.
pub fn postgres_folder() -> Result<PathBuf, Error> {
    let mut folders: Vec<PathBuf> = search_path().collect();
    folders
        .extend(VERSION_FOLDERS.iter().flat_map(|folder| children(Path::new(folder))).map(|v| v.join("bin")));
    folders
        .extend(children(Path::new("/usr")).filter(|path| is_named(path, "pgsql-")).map(|v| v.join("bin")));
    folders.extend(configured_folder());
    folders
        .iter()
        // A link in the search path leads to the folder of the other programs.
        .filter_map(|folder| fs::canonicalize(folder.join("initdb")).ok()?.parent().map(Path::to_owned))
        .filter_map(|folder| Some((version(&folder)?, folder)))
        .max_by(|one, other| one.0.cmp(&other.0))
        .map(|(_, folder)| folder)
        .ok_or(Error::Missing {
            what: "the PostgreSQL server (initdb, postgres)",
            install: "it (Debian: apt-get install postgresql)",
        })
}

/// The program `pgbouncer`.
pub fn pgbouncer() -> Result<PathBuf, Error> {
    in_search_path("pgbouncer")
        .ok_or(Error::Missing { what: "pgbouncer", install: "it (Debian: apt-get install pgbouncer)" })
}

/// The program `prometheus`.
pub fn prometheus() -> Result<PathBuf, Error> {
    in_search_path("prometheus").ok_or(PROMETHEUS_MISSING)
}

/// The program `promtool`.
pub fn promtool() -> Result<PathBuf, Error> {
    in_search_path("promtool").ok_or(PROMETHEUS_MISSING)
}

const PROMETHEUS_MISSING: Error = Error::Missing {
    what: "Prometheus (prometheus, promtool)",
    install: "it (Debian: apt-get install prometheus)",
};

/// RabbitMQ's own scripts. Those in the search path of a Debian system require the user of its service.
const RABBITMQ_FOLDERS: [&str; 2] = ["/usr/lib/rabbitmq/bin", "/usr/local/sbin"];

/// The script that starts a RabbitMQ node.
pub fn rabbitmq_server() -> Result<PathBuf, Error> {
    rabbitmq("rabbitmq-server")
}

/// The script that controls a RabbitMQ node.
pub fn rabbitmqctl() -> Result<PathBuf, Error> {
    rabbitmq("rabbitmqctl")
}

/// Erlang's name server.
pub fn epmd() -> Result<PathBuf, Error> {
    in_search_path("epmd").ok_or(RABBITMQ_MISSING)
}

fn rabbitmq(name: &str) -> Result<PathBuf, Error> {
    let own = RABBITMQ_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    own.or_else(|| in_search_path(name)).ok_or(RABBITMQ_MISSING)
}

const RABBITMQ_MISSING: Error = Error::Missing {
    what: "RabbitMQ (rabbitmq-server, rabbitmqctl, epmd)",
    install: "it (Debian: apt-get install rabbitmq-server)",
};

/// The program `psql`: the one of the server if possible, because a wrapper would choose a version.
pub fn psql() -> Result<PathBuf, Error> {
    let beside = postgres_folder().ok().map(|folder| folder.join("psql")).filter(|path| path.is_file());
    beside.or_else(|| in_search_path("psql")).ok_or(Error::Missing {
        what: "psql",
        install: "the PostgreSQL client (Debian: apt-get install postgresql-client)",
    })
}

/// A program by its name, also from the folders of system programs that only root has in its path.
pub fn in_search_path(name: &str) -> Option<PathBuf> {
    search_path().map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    folders.into_iter().chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
}

fn children(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path())
}

fn is_named(path: &Path, prefix: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}

fn configured_folder() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Major and minor version from `postgres (PostgreSQL) 15.6 (Debian …)`; `None` if it does not run.
fn version(folder: &Path) -> Option<(u32, u32)> {
    let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    parse_version(&text)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let number =
        text.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))?;
    let mut parts = number.split(|letter: char| !letter.is_ascii_digit());
    let major = parts.next()?.parse().ok()?;
    Some((major, parts.next().and_then(|minor| minor.parse().ok()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn versions_of_releases_and_betas_are_read() {
        assert_eq!(parse_version("postgres (PostgreSQL) 15.6 (Debian 15.6-0+deb12u1)"), Some((15, 6)));
        assert_eq!(parse_version("postgres (PostgreSQL) 18beta1"), Some((18, 0)));
        assert_eq!(parse_version("bash: postgres: not found"), None);
    }
}
