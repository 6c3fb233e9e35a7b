//! Everything that is declared, consumed and published with one broker.

use std::{collections::BTreeSet, fmt, process, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle};
use windlass::{
    AdmissionConfig, Controller, Pool, StopReport, Tracer, admission::Sampler, telemetry::ConsumerSource,
};

use crate::{
    Binding, Consumer, ConsumerFigures, Error, Exchange, Publisher, PublisherOptions, Queue, Topology,
    connection::Link,
    consumer::Plan,
    meters::{Meters, State},
    session::Session,
    sizing::{SharedPool, shared_pool},
    supervisor::Supervisor,
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
    /// For the broker at this address, such as `amqp://user:password@host:5672/vhost`. Connects to nothing yet.
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

    /// The controller that says how many of the workers may be used: hand the same one to every worker, pool and set of
    /// consumers of a process. Without one they have a controller of their own. What may not start waits with the broker.
    pub fn admission(mut self, controller: Controller) -> Self {
        self.admission = Some(controller);
        self
    }

    /// Tells of every delivery and every message as spans of a trace.
    pub fn tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// The name that the broker shows for the connections, and that automatic consumer tags end with.
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

    /// Names a pool of so many places that all handlers share, such as of database connections. The start warns if it is too small
    /// for them: every place less is a worker that waits for another.
    pub fn shared_pool(mut self, name: impl Into<String>, max: usize) -> Self {
        self.shared_pools.push((name.into(), max));
        self
    }

    /// Checks everything, declares it, and starts the consumers. Needs a tokio runtime, on which they then run.
    ///
    /// # Errors
    /// [`Error::Declaration`] before anything is sent; [`Error::Unreachable`] and [`Error::Refused`] if the broker is not there or
    /// has something else under one of the names. Nothing is left running then.
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
            // Before any of them runs, so that a start that fails leaves nothing behind.
            let session = Session::open(&consuming, &plan, plan.sizes.prefetch).await?;
            ready.push((plan, session));
        }
        if ready.is_empty() {
            // Nobody else would find out about a conflict.
            drop(publishing.channel().await?);
        }
        let admission = match admission {
            Some(controller) => controller,
            None => Controller::new(AdmissionConfig::default()).map_err(declaration)?,
        };
        // A worker that shares the controller samples as well, and neither counts twice. Whoever only publishes needs none.
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

/// What has to be said of pools that are too small.
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

/// What is wrong with the settings or the machine, not with the broker.
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
    // The session has a buffer of its own, from which it can hand back; the pool's is for tasks that an earlier session left.
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
        // Not the address: it may hold a password.
        f.debug_struct("Consumers").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

struct RunningConsumer {
    plan: Arc<Plan>,
    meters: Arc<Meters>,
    pool: Pool,
    task: JoinHandle<StopReport>,
}

/// Consumers at work. Dropping it hands back at once what they have.
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
    /// A publisher to the same broker, on a connection that consumers do not use: a broker that blocks publishers must not keep
    /// them from acknowledging.
    pub fn publisher(&self, options: PublisherOptions) -> Publisher {
        Publisher::new(Arc::clone(&self.publishing), options, self.tracer.clone())
    }

    /// What each consumer has done so far.
    pub fn figures(&self) -> Vec<ConsumerFigures> {
        self.handle().figures()
    }

    /// The controller that they obey.
    pub fn admission(&self) -> &Controller {
        &self.admission
    }

    /// Whether every consumer gets deliveries.
    pub fn is_consuming(&self) -> bool {
        self.consumers.iter().all(|consumer| consumer.meters.state() == State::Consuming)
    }

    /// A handle that outlives this: it still counts while the consumers stop.
    pub fn handle(&self) -> Handle {
        let one = |consumer: &RunningConsumer| {
            (Arc::clone(&consumer.plan), Arc::clone(&consumer.meters), consumer.pool.clone())
        };
        Handle { consumers: self.consumers.iter().map(one).collect() }
    }

    /// Stops within the deadline: no intake, what has not started goes back at once, what runs may end, and what the deadline
    /// cuts off goes back. Says what became of the handlers that ran.
    pub async fn stop(mut self, deadline: Duration) -> StopReport {
        self.told.send_replace(Some(deadline));
        let mut sum = StopReport::default();
        for consumer in self.consumers.drain(..) {
            // A supervisor does not panic; if it did, the broker has everything back.
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

/// What can be seen of consumers, and done to their stop, from beside it. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    consumers: Vec<(Arc<Plan>, Arc<Meters>, Pool)>,
}

impl Handle {
    /// What each consumer has done so far.
    pub fn figures(&self) -> Vec<ConsumerFigures> {
        self.consumers.iter().map(|(plan, meters, pool)| meters.read(plan, pool)).collect()
    }

    /// The same for [`Options::consumers`](windlass::telemetry::Options::consumers), to be shown at `/metrics`.
    pub fn source(&self) -> ConsumerSource {
        let consumers = self.consumers.clone();
        ConsumerSource::new(move || {
            consumers.iter().map(|(plan, meters, pool)| meters.reading(plan, pool)).collect()
        })
    }

    /// Cuts off the handlers that a stop still waits for; their messages go back.
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
    fn pool_that_is_smaller_than_the_workers_and_ten_is_warned_about() {
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
