//! What a consuming process reports to a monitor and to a service manager (LIVENESS-TRUTH).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use windlass::{
    admission::Controller,
    telemetry::{self, Exposition, OutcomeTimes},
    trace::Tracer,
};
use windlass_amqp::{ConsumerFigures, Handle, Running, State};
use windlass_core::store::SharedStore;
use windlass_server::Vitals;

use crate::{
    config::{Settings, table},
    engine::DRAINING,
    version,
};

/// The metrics of this process, unless they are off.
pub fn exposition(
    settings: &Settings,
    running: &Running,
    store: Option<SharedStore>,
    (http, tracer): (Arc<OutcomeTimes>, Option<Tracer>),
) -> Option<Exposition> {
    let admission: Controller = running.admission().clone();
    let options = telemetry::Options {
        http: Some(http),
        // No audit here: workers run on the store, and they audit it.
        audit_every: None,
        consumers: Some(running.handle().source()),
        admission: Some(admission),
        tracer,
    };
    (settings.text(&table::METRICS) != "off").then(|| Exposition::without_worker(store, options))
}

/// Ready means: the process does not drain, every consumer is subscribed, and the store answers if there
/// is one.
pub fn vitals(
    handle: Handle,
    store: Option<SharedStore>,
    exposition: Option<Exposition>,
    draining: Arc<AtomicBool>,
) -> Vitals {
    let probe = move || readiness(draining.load(Ordering::Relaxed), &handle.figures());
    Vitals::new(store).version(version::VERSION).metrics(exposition).ready_if("consumers", probe)
}

fn readiness(is_draining: bool, consumers: &[ConsumerFigures]) -> Result<(), String> {
    if is_draining {
        return Err(DRAINING.to_owned());
    }
    let away: Vec<&str> = consumers
        .iter()
        .filter(|consumer| consumer.state != State::Consuming)
        .map(|consumer| consumer.queue.as_str())
        .collect();
    if away.is_empty() {
        return Ok(());
    }
    Err(format!("without deliveries until the broker is back: {}", away.join(", ")))
}
