//! What every command needs: the settings in force, the output, and the server or store to use.

use crate::{
    args::Global,
    backend::{self, Backend, connect::Found},
    config::{self, Setting, Settings, Sources, setting::Raw},
    logging,
    output::{Form, Output, text},
};

/// One run of the program.
#[derive(Debug)]
pub struct Session {
    /// The settings in force.
    pub settings: Settings,
    /// How to print.
    pub out: Output,
}

impl Session {
    /// Reads the settings, prints their warnings, and starts logging.
    pub fn start(global: &Global, flags: Vec<(&'static Setting, Raw)>) -> anyhow::Result<Self> {
        let form = if global.json { Form::Json } else { Form::Text };
        let out = Output::new(form, global.quiet);
        let mut all = global.flags();
        all.extend(flags);
        let settings = config::load(&Sources::of_process(global.config.clone(), all))?;
        for warning in &settings.warnings {
            out.warn(warning);
        }
        logging::start(&settings);
        Ok(Self { settings, out })
    }

    /// The server or store for a command that only reads. If the caller did not choose it, its name is
    /// printed.
    pub async fn backend(&self) -> anyhow::Result<Box<dyn Backend>> {
        let Found { backend, is_expected } = backend::connect(&self.settings).await?;
        if !is_expected {
            self.name_target(&*backend).await;
        }
        Ok(backend)
    }

    /// The server or store for a command that changes something. Its name is always printed first.
    pub async fn backend_to_change(&self) -> anyhow::Result<Box<dyn Backend>> {
        let Found { backend, .. } = backend::connect(&self.settings).await?;
        self.name_target(&*backend).await;
        Ok(backend)
    }

    /// Prints the name to stderr, also with --json: stdout is for data.
    async fn name_target(&self, backend: &dyn Backend) {
        if !self.out.is_quiet() {
            self.out.note(format!("target: {}", text::clean(&backend.target().await)));
        }
    }
}
