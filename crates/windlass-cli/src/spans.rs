//! Sends spans of tasks to an OpenTelemetry collector, if the settings name one.

use std::{sync::Arc, time::Duration};

use windlass_otlp::{Endpoint, EndpointError, Exporter, Service};

use crate::{
    config::{Settings, table},
    failure::Failure,
    version,
};

/// How long sending the last spans may take at the end of the process.
const FLUSH_MAX: Duration = Duration::from_secs(3);

/// The exporter that the settings ask for.
pub fn exporter(settings: &Settings) -> anyhow::Result<Option<Arc<Exporter>>> {
    let text = settings.text(&table::OTLP_ENDPOINT);
    if text.is_empty() {
        return Ok(None);
    }
    // The text of the address is not shown: it may contain a password.
    let endpoint: Endpoint =
        text.parse().map_err(|error: EndpointError| Failure::usage(format!("otlp_endpoint {error}")))?;
    let name = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
    let service =
        Service { name: name.unwrap_or_else(|| "windlass".to_owned()), version: version::VERSION.to_owned() };
    Ok(Some(Exporter::start(endpoint, service)?))
}

/// Sends the waiting spans, for a short time, and logs how many were lost.
pub async fn flush(exporter: Option<&Exporter>) {
    let Some(exporter) = exporter else { return };
    let stats = exporter.shutdown(FLUSH_MAX).await;
    if stats.dropped > 0 {
        tracing::warn!(exported = stats.exported, dropped = stats.dropped, "spans were lost; tasks were not");
    } else {
        tracing::info!(exported = stats.exported, "spans exported");
    }
}
