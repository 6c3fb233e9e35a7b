//! What a command shows to a server, and which certificate authorities it trusts.

use std::{fmt, os::unix::fs::PermissionsExt as _, path::PathBuf};

use crate::{
    config::{Origin, Settings, table},
    failure::Failure,
};

/// A token and the authorities that must have issued a server's certificate.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The token.
    pub token: Option<String>,
    /// Authorities in PEM. Without them: those of the system.
    pub ca: Option<PathBuf>,
}

impl fmt::Debug for Credentials {
    /// Leaves out the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("ca", &self.ca).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the files that the settings name. `--token-file` wins over WINDLASS_TOKEN; WINDLASS_TOKEN
    /// wins over a `token_file` from any other source.
    pub fn from_settings(settings: &Settings) -> Result<Self, Failure> {
        let path = |setting| {
            let text = settings.text(setting);
            (!text.is_empty()).then(|| PathBuf::from(text))
        };
        let by_flag = matches!(settings.origin(&table::TOKEN_FILE), Origin::Flag(_));
        let token = match (&settings.token, path(&table::TOKEN_FILE)) {
            (Some(token), _) if !by_flag => Some(token.0.clone()),
            (_, Some(file)) => Some(read(&file)?),
            (_, None) => None,
        };
        Ok(Self { token, ca: path(&table::CA) })
    }
}

fn read(file: &PathBuf) -> Result<String, Failure> {
    let shown = file.display();
    let cannot =
        |error: &std::io::Error| Failure::usage(format!("cannot read the token file {shown}: {error}"));
    let text = std::fs::read_to_string(file).map_err(|error| cannot(&error))?;
    let mode = std::fs::metadata(file).map_err(|error| cannot(&error))?.permissions().mode();
    if mode & 0o004 != 0 {
        tracing::warn!(file = %shown, "every user of this machine can read the token in this file; `chmod 600` it");
    }
    let token = text.trim();
    if token.is_empty() || token.chars().any(|letter| letter.is_control() || letter == ' ') {
        return Err(
            Failure::usage(format!("{shown} does not hold a token")).hint("it must hold one line: the token")
        );
    }
    Ok(token.to_owned())
}
