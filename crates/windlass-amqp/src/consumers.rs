//! All that a process declares, consumes and publishes with one broker.

use std::{collections::BTreeSet, fmt, process, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle};
use windlass::{
    Pool,
    admission::{AdmissionConfig, Controller, Sampler},
    pool::StopReport,
    telemetry::ConsumerSource,
    trace::Tracer,
};

use crate::{
    Binding, Consumer, ConsumerFigures, Error, Exchange, Publisher, PublisherOptions, Queue, Topology,
    connection::Link,
    consumer::{
        Plan,
        sizing::{SharedPool, shared_pool},
        supervisor::Supervisor,
    },
    meters::{Meters, State},
    session::Session,
};

/// Declarations and consumers of one broker, not yet started.
#[must_use = "call start"]
pub struct Consumers {
    url: String,
    name: String,
    topology: Topology,
    wanted: Vec<Consumer>,
    shared_pools: Vec<(String, usize)>,
    admission: Option<Controller>,
    tracer: Option<Tracer>,
}

impl Consumers {
    /// For the broker at this address, such as `amqp://user:password@host:5672/vhost`. Does not connect yet.
    pub fn connect(url: impl Into<String>) -> Self {
        let name = format!("windlass-{}", process::id());
        Self {
            url: url.into(),
            name,
            topology: Topology::new(),
            wanted: Vec::new(),
            shared_pools: Vec::new(),
            admission: None,
            tracer: None,
        }
    }

    /// The controller that says how many of the workers may be used: give the same one to every worker, pool
    /// and set of consumers of a process. The default is a controller for this set alone. Deliveries that may
    /// not start wait at the broker.
    pub fn admission(mut self, controller: Controller) -> Self {
        self.admission = Some(controller);
        self
    }

    /// Sends every delivery and every message as spans of a trace.
    pub fn tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// The name that the broker shows for the connections; automatic consumer tags end with it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Declares an exchange.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.topology.exchange(exchange);
        self
    }

    /// Declares a queue.
    pub fn queue(mut self, queue: Queue) -> Self {
        self.topology.queue(queue);
        self
    }

    /// Declares a binding.
    pub fn bind(mut self, binding: Binding) -> Self {
        self.topology.bind(binding);
        self
    }

    /// Adds a consumer.
    pub fn consume(mut self, consumer: Consumer) -> Self {
        self.wanted.push(consumer);
        self
    }

    /// Names a pool, such as of database connections, that all handlers share and that has `max` places. The
    /// start warns if the pool is too small: then handlers wait for each other.
    pub fn shared_pool(mut self, name: impl Into<String>, max: usize) -> Self {
        self.shared_pools.push((name.into(), max));
        self
    }

    /// Checks all declarations, sends them, and starts the consumers. Needs a tokio runtime, on which they
    /// then run.
    ///
    /// # Errors
    /// [`Error::Declaration`] before anything is sent. [`Error::Unreachable`] and [`Error::Refused`] if the
    /// broker is not there or has something else under one of the names; then no consumer is left running.
    pub async fn start(self) -> Result<Running, Error> {
        let Self { url, name, mut topology, wanted, shared_pools, admission, tracer } = self;
        let plans = wanted.into_iter().map(|consumer| {
            let plan = consumer.planned(&mut topology, &name)?;
            Ok(Plan { tracer: tracer.clone(), ..plan })
        });
        let plans: Vec<Plan> = plans.collect::<Result<_, Error>>()?;
        let mut tags = BTreeSet::new();
        if let Some(plan) = plans.iter().find(|plan| !tags.insert(&plan.tag)) {
            let reason =
                format!("two consumers have the tag {:?}: name one of them with Consumer::tag", plan.tag);
            return Err(Error::Declaration(reason));
        }
        let declarations = topology.validated()?;
        for warning in pool_warnings(&shared_pools, &plans) {
            tracing::warn!("{warning}");
        }
        let consuming = Arc::new(Link::new(&url, format!("{name} consuming"), declarations.clone())?);
        let publishing = Arc::new(Link::new(&url, format!("{name} publishing"), declarations)?);
        let (told, stop) = watch::channel(None);
        let mut ready = Vec::new();
        for plan in plans {
            // Open every session before any of them runs, so that a failed start leaves nothing behind.
            let session = Session::open(&consuming, &plan, plan.sizes.prefetch).await?;
            ready.push((plan, session));
        }
        if ready.is_empty() {
            // Open a publishing channel now: otherwise a conflict of the declarations would not show until
            // the first message.
            drop(publishing.channel().await?);
        }
        let admission = match admission {
            Some(controller) => controller,
            None => Controller::new(AdmissionConfig::default()).map_err(declaration)?,
        };
        // Sample only if there are consumers. A worker that shares the controller samples too; neither sample
        // counts twice.
        let sampler =
            if ready.is_empty() { None } else { Some(admission.start_sampling().map_err(declaration)?) };
        let consumers = Vec::new();
        let mut running =
            Running { consuming, publishing, told, consumers, admission, tracer, _sampler: sampler };
        for (plan, session) in ready {
            let link = Arc::clone(&running.consuming);
            running.consumers.push(started(plan, session, (link, &running.admission), stop.clone())?);
        }
        Ok(running)
    }
}

/// The warnings about pools that are too small.
fn pool_warnings(pools: &[(String, usize)], plans: &[Plan]) -> Vec<String> {
    let workers = plans.iter().map(|plan| plan.sizes.workers).sum();
    let wanted = shared_pool(workers);
    let small = pools.iter().filter(|(_, max)| *max < wanted.max);
    small
        .map(|(name, max)| {
            let SharedPool { max: needed, idle } = wanted;
            format!(
                "pool {name:?} has {max} places for {workers} workers: give it {needed}, {idle} of them idle"
            )
        })
        .collect()
}

/// An error of the settings or the machine, not of the broker.
fn declaration(error: impl fmt::Display) -> Error {
    Error::Declaration(error.to_string())
}

fn started(
    plan: Plan,
    session: Session,
    (link, admission): (Arc<Link>, &Controller),
    stop: watch::Receiver<Option<Duration>>,
) -> Result<RunningConsumer, Error> {
    let workers = plan.sizes.workers;
    // The session has its own buffer, from which it can hand deliveries back; the pool's buffer is for tasks
    // that an earlier session left.
    let pool = Pool::builder().size(workers).buffer(workers).admission(admission.clone());
    let pool = pool.build().map_err(declaration)?;
    let (queue, event_type, prefetch) = (&plan.queue, &plan.event_type, plan.sizes.prefetch);
    for warning in &plan.sizes.warnings {
        tracing::warn!(%queue, %event_type, "{warning}");
    }
    tracing::info!(%queue, %event_type, workers, prefetch, tag = plan.tag, "consuming");
    let meters = Arc::new(Meters::new(&plan, admission));
    let plan = Arc::new(plan);
    let supervisor = Supervisor {
        plan: Arc::clone(&plan),
        link,
        pool: pool.clone(),
        admission: admission.clone(),
        meters: Arc::clone(&meters),
        stop,
    };
    let task = tokio::spawn(supervisor.keep(session));
    Ok(RunningConsumer { plan, meters, pool, task })
}

impl fmt::Debug for Consumers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the address: it may contain a password.
        f.debug_struct("Consumers").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

struct RunningConsumer {
    plan: Arc<Plan>,
    meters: Arc<Meters>,
    pool: Pool,
    task: JoinHandle<StopReport>,
}

/// Running consumers. Dropping it hands their deliveries back at once.
pub struct Running {
    consuming: Arc<Link>,
    publishing: Arc<Link>,
    told: watch::Sender<Option<Duration>>,
    consumers: Vec<RunningConsumer>,
    admission: Controller,
    tracer: Option<Tracer>,
    _sampler: Option<Sampler>,
}

impl Running {
    /// A publisher to the same broker, on a connection that the consumers do not use. The hazard: a broker
    /// that blocks publishers blocks their whole connection, and acks would wait too.
    pub fn publisher(&self, options: PublisherOptions) -> Publisher {
        Publisher::new(Arc::clone(&self.publishing), options, self.tracer.clone())
    }

    /// The counters of each consumer.
    pub fn figures(&self) -> Vec<ConsumerFigures> {
        self.handle().figures()
    }

    /// The controller of these consumers.
    pub fn admission(&self) -> &Controller {
        &self.admission
    }

    /// Whether every consumer gets deliveries.
    pub fn is_consuming(&self) -> bool {
        self.consumers.iter().all(|consumer| consumer.meters.state() == State::Consuming)
    }

    /// A handle that outlives this value and still works while the consumers stop.
    pub fn handle(&self) -> Handle {
        let one = |consumer: &RunningConsumer| {
            (Arc::clone(&consumer.plan), Arc::clone(&consumer.meters), consumer.pool.clone())
        };
        Handle { consumers: self.consumers.iter().map(one).collect() }
    }

    /// Stops within the deadline: takes no new deliveries, hands back at once those that have not started,
    /// lets handlers finish, and hands back those that the deadline interrupts. Reports how the running
    /// handlers ended.
    pub async fn stop(mut self, deadline: Duration) -> StopReport {
        self.told.send_replace(Some(deadline));
        let mut sum = StopReport::default();
        for consumer in self.consumers.drain(..) {
            // A supervisor does not panic. If it did, the broker has every delivery back.
            let report = consumer.task.await.unwrap_or_default();
            sum.drained += report.drained;
            sum.cancelled += report.cancelled;
            sum.aborted += report.aborted;
        }
        self.consuming.close().await;
        self.publishing.close().await;
        sum
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("consumers", &self.figures()).finish_non_exhaustive()
    }
}

/// Reads the counters of running consumers, and can speed up their stop. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    consumers: Vec<(Arc<Plan>, Arc<Meters>, Pool)>,
}

impl Handle {
    /// The counters of each consumer.
    pub fn figures(&self) -> Vec<ConsumerFigures> {
        self.consumers.iter().map(|(plan, meters, pool)| meters.read(plan, pool)).collect()
    }

    /// The same for [`Options::consumers`](windlass::telemetry::Options::consumers), for `/metrics`.
    pub fn source(&self) -> ConsumerSource {
        let consumers = self.consumers.clone();
        ConsumerSource::new(move || {
            consumers.iter().map(|(plan, meters, pool)| meters.reading(plan, pool)).collect()
        })
    }

    /// Interrupts the handlers that a stop still waits for, and hands their messages back.
    pub async fn hurry(&self) {
        for (_, _, pool) in &self.consumers {
            pool.stop(Duration::ZERO).await;
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("consumers", &self.figures()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_too_small_shared_pool_gets_a_warning() {
        let plans = [4, 6].map(|workers| {
            let consumer = Consumer::raw("q", |_: crate::Delivery| async {}).workers(workers);
            consumer.planned(&mut Topology::new(), "p")
        });
        let plans: Vec<Plan> = plans.into_iter().flatten().collect();
        let pools = [("db".to_owned(), 19), ("cache".to_owned(), 20)];
        let warnings = pool_warnings(&pools, &plans);
        assert_eq!(warnings, ["pool \"db\" has 19 places for 10 workers: give it 20, 10 of them idle"]);
    }
}
