//! Which handler runs which kind, and the layers around every run.

use std::{collections::BTreeMap, fmt, sync::Arc};

use windlass_core::{Error, Name, Result};

use crate::{
    handler::{RawHandler, layer::Layer},
    trace::Tracer,
};

/// The handlers of a worker by kind. A worker claims the kinds in here and no others.
#[derive(Default)]
pub struct Registry {
    handlers: BTreeMap<Name, Arc<dyn RawHandler>>,
    layers: Vec<Arc<dyn Layer>>,
    tracer: Option<Tracer>,
}

impl Registry {
    /// A registry without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handler of a kind.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the kind already has one: the order of the calls must not decide which of the
    /// two runs.
    pub fn insert(&mut self, kind: Name, handler: Arc<dyn RawHandler>) -> Result<()> {
        if self.handlers.contains_key(&kind) {
            return Err(Error::invalid(format!("kind {kind:?} has two handlers; keep one of them")));
        }
        self.handlers.insert(kind, handler);
        Ok(())
    }

    /// The handler of a kind.
    pub fn get(&self, kind: &str) -> Option<&Arc<dyn RawHandler>> {
        self.handlers.get(kind)
    }

    /// Adds a layer around every run, inside the layers added before.
    pub fn add_layer(&mut self, layer: Arc<dyn Layer>) {
        self.layers.push(layer);
    }

    /// Records every attempt as spans of a trace.
    pub fn set_tracer(&mut self, tracer: Tracer) {
        self.tracer = Some(tracer);
    }

    pub(crate) fn layers(&self) -> &[Arc<dyn Layer>] {
        &self.layers
    }

    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_ref()
    }

    /// Every kind that has a handler, sorted.
    pub fn kinds(&self) -> Vec<Name> {
        self.handlers.keys().cloned().collect()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.handlers.keys()).finish()
    }
}
