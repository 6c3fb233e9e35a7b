//! A message to publish.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, RandomState},
};

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, LongString},
};
use serde::Serialize;
use windlass::trace::{TRACEPARENT, TRACESTATE, TraceContext};

use crate::{Error, connection::short};

/// Delivery modes of the protocol.
const TRANSIENT: u8 = 1;
const PERSISTENT: u8 = 2;

/// A message: persistent, with an id, unless set otherwise.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    body: Vec<u8>,
    content_type: &'static str,
    id: String,
    event_type: Option<String>,
    correlation_id: Option<String>,
    headers: BTreeMap<String, String>,
    is_persistent: bool,
}

impl Message {
    /// A value as JSON.
    ///
    /// # Errors
    /// [`Error::Encode`] if the value cannot be written as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(value).map_err(|error| Error::Encode(error.to_string()))?;
        Ok(Self::new(body, "application/json"))
    }

    /// Raw bytes.
    pub fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self::new(body.into(), "application/octet-stream")
    }

    fn new(body: Vec<u8>, content_type: &'static str) -> Self {
        let (one, other) = (RandomState::new().hash_one(0), RandomState::new().hash_one(1));
        Self {
            body,
            content_type,
            id: format!("{one:016x}{other:016x}"),
            event_type: None,
            correlation_id: None,
            headers: BTreeMap::new(),
            is_persistent: true,
        }
    }

    /// The id by which consumers recognise a repeated message; the default is random.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// The event type of the message.
    #[must_use]
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// The id that links it to another message.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// A header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Where the publisher stands in a trace, so that the message and its handling belong to that trace.
    /// Travels as the header `traceparent`.
    #[must_use]
    pub fn trace(self, trace: impl Into<Option<TraceContext>>) -> Self {
        match trace.into() {
            Some(trace) => self.header(TRACEPARENT, trace.to_string()),
            None => self,
        }
    }

    /// The data of tracing systems that belongs to it. Travels as the header `tracestate`.
    #[must_use]
    pub fn trace_state(self, state: impl Into<String>) -> Self {
        self.header(TRACESTATE, state)
    }

    /// Where it stands in a trace, if it was set.
    pub(super) fn parent(&self) -> Option<TraceContext> {
        TraceContext::from_stored(self.headers.get(TRACEPARENT).map(String::as_str))
    }

    pub(super) fn known_id(&self) -> &str {
        &self.id
    }

    /// Lost when the broker restarts.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.is_persistent = false;
        self
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The message's properties with this place in a trace.
    pub(super) fn properties(&self, trace: Option<TraceContext>) -> Result<BasicProperties, Error> {
        let mut headers = FieldTable::default();
        for (name, value) in &self.headers {
            headers.insert(short(name)?, AMQPValue::LongString(LongString::from(value.as_str())));
        }
        if let Some(trace) = trace {
            headers.insert(short(TRACEPARENT)?, AMQPValue::LongString(LongString::from(trace.to_string())));
        }
        let mut properties = BasicProperties::default()
            .with_content_type(self.content_type.into())
            .with_delivery_mode(if self.is_persistent { PERSISTENT } else { TRANSIENT })
            .with_message_id(short(&self.id)?)
            .with_headers(headers);
        if let Some(event_type) = &self.event_type {
            properties = properties.with_type(short(event_type)?);
        }
        if let Some(id) = &self.correlation_id {
            properties = properties.with_correlation_id(short(id)?);
        }
        Ok(properties)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the body nor the headers: they may contain secrets.
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
