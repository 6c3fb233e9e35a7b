//! The largest memory use of a consumer, to be measured with a counting allocator. Not for applications.

use std::{collections::VecDeque, sync::Arc};

use lapin::types::ShortString;
use tokio::{sync::mpsc::unbounded_channel, time::Instant};
use windlass::{
    Pool,
    admission::{AdmissionConfig, Controller},
};

use crate::{
    Consumer, Delivery, Error, Topology,
    consumer::Plan,
    meters::Meters,
    session::{
        BUFFERED_PER_WORKER, Waiting,
        ledger::Ledger,
        work::{Ended, Report, start},
    },
};

/// The memory of a session without its channel: every worker has an empty delivery, and the buffer is full of
/// them.
pub struct Footprint {
    /// Holds the memory until it is dropped.
    _held: Box<dyn Send>,
}

impl Footprint {
    /// Builds and fills the parts that a session uses. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Declaration`] if the consumer is invalid.
    pub fn fill(consumer: Consumer) -> Result<Self, Error> {
        let plan: Plan = consumer.planned(&mut Topology::new(), "footprint")?;
        let workers = plan.sizes.workers;
        let pool = Pool::builder().size(workers).buffer(workers).build();
        let pool = pool.map_err(|error| Error::Declaration(error.to_string()))?;
        let admission = Controller::new(AdmissionConfig { is_on: false, ..AdmissionConfig::default() });
        let admission = admission.map_err(|error| Error::Declaration(error.to_string()))?;
        let meters = Arc::new(Meters::new(&plan, &admission));
        let (reporter, reports) = unbounded_channel::<Ended>();
        let (mut ledger, mut buffer) = (Ledger::default(), VecDeque::new());
        let idle: Vec<usize> = (0..workers).rev().collect();
        let in_all = workers + workers * BUFFERED_PER_WORKER;
        for (place, tag) in (1..=in_all as u64).enumerate() {
            ledger.take(tag);
            if place < workers {
                let report = Report::new(reporter.clone(), Arc::clone(&meters), (tag, 0), place);
                start(&pool, &plan, empty(tag), report);
            } else {
                buffer.push_back(Waiting { tag, delivery: empty(tag), since: Instant::now(), span: None });
            }
        }
        Ok(Self { _held: Box::new((plan, pool, meters, ledger, buffer, idle, reporter, reports)) })
    }
}

fn empty(tag: u64) -> Delivery {
    let none = ShortString::default;
    Delivery::new(lapin::message::Delivery::mock(tag, none(), none(), false, Vec::new()))
}
