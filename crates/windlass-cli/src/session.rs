//! What every command has at hand: the settings in force, how to speak, and whom to talk to.

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
    /// How to speak.
    pub out: Output,
}

impl Session {
    /// Reads the settings, says what is odd about them, and starts logging.
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

    /// Whom a command asks that only looks. A server that the caller did not choose is named.
    pub async fn backend(&self) -> anyhow::Result<Box<dyn Backend>> {
        let Found { backend, is_expected } = backend::connect(&self.settings).await?;
        if !is_expected {
            self.name_target(&*backend).await;
        }
        Ok(backend)
    }

    /// Whom a command asks that changes something. Where the change goes is said first.
    pub async fn backend_to_change(&self) -> anyhow::Result<Box<dyn Backend>> {
        let Found { backend, .. } = backend::connect(&self.settings).await?;
        self.name_target(&*backend).await;
        Ok(backend)
    }

    /// To stderr, also with --json: what is on stdout stays as it is.
    async fn name_target(&self, backend: &dyn Backend) {
        if !self.out.is_quiet() {
            self.out.note(format!("target: {}", text::clean(&backend.target().await)));
        }
    }
}
