//! The user that runs the server, and the server's folder.

use std::{
    env,
    fs::Permissions,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::Error;

/// The path of a Unix socket is limited to about a hundred bytes; the names of the socket and of the folder
/// need half of them.
const FOLDER_PATH_MAX: usize = 60;

/// The user that a server runs as: the current user, or for root the user of the PostgreSQL package, because
/// neither PostgreSQL nor PgBouncer can run as root.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// The user and group to change to; `None` keeps the current ones.
    other: Option<(u32, u32)>,
}

impl Owner {
    pub fn find() -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { other: None });
        }
        let id = |flag: &str| -> Option<u32> {
            let output = Command::new("id").args([flag, "postgres"]).output().ok()?;
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        };
        let other = id("-u").zip(id("-g")).ok_or(Error::Missing {
            what: "the user postgres, which the server runs as when started by root,",
            install: "the PostgreSQL server (Debian: apt-get install postgresql) or run as another user",
        })?;
        Ok(Self { other: Some(other) })
    }

    /// The user of this process, even root.
    pub fn oneself() -> Self {
        Self { other: None }
    }

    /// A command that runs as this user, without the PostgreSQL variables of the caller's environment.
    pub fn command(self, program: impl AsRef<Path>) -> Command {
        let mut command = bare_command(program.as_ref());
        if let Some((user, group)) = self.other {
            command.uid(user).gid(group);
        }
        // The other user may have no access to the caller's working folder.
        command.current_dir("/");
        command
    }

    /// A new private folder of this user.
    pub fn folder(self, parent: Option<&Path>) -> Result<TempDir, Error> {
        let parent = parent.map_or_else(|| self.default_parent(), Path::to_owned);
        let private = Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix("windlass-scratch-").permissions(private).tempdir_in(parent)?;
        self.give(folder.path())?;
        Ok(folder)
    }

    /// Makes this user the owner of a file or folder.
    pub fn give(self, path: &Path) -> Result<(), Error> {
        if let Some((user, group)) = self.other {
            chown(path, Some(user), Some(group))?;
        }
        Ok(())
    }

    fn default_parent(self) -> PathBuf {
        let usual = env::temp_dir();
        let is_open = |folder: &Path| folder.metadata().is_ok_and(|found| found.mode() & 0o001 != 0);
        let is_usable = usual.is_absolute()
            && usual.as_os_str().len() <= FOLDER_PATH_MAX
            && (self.other.is_none() || usual.ancestors().all(is_open));
        if is_usable { usual } else { PathBuf::from("/tmp") }
    }
}

/// A command without the variables that would lead PostgreSQL's programs to another server.
pub fn bare_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
}
