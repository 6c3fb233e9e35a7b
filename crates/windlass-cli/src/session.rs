//! What every command has at hand: the settings in force, how to speak, and whom to talk to.

use crate::{
    args::Global,
    backend::{self, Backend},
    config::{self, Setting, Settings, Sources, setting::Raw},
    logging,
    output::{Form, Output},
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

    /// The running server, else the store itself.
    pub async fn backend(&self) -> anyhow::Result<Box<dyn Backend>> {
        backend::connect(&self.settings).await
    }
}
