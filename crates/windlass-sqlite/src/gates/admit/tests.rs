//! When the log reports that a job has reached its limit.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use windlass_core::{
    Demand, LaneId, NewTask, NewWorker, Payload, Rules, SettleBatch, SettleItem, Settlement, WorkerId,
};

use crate::{
    claim,
    connection::{
        open,
        options::{Location, Options},
        writer::Writer,
    },
    enqueue,
    leases::hand_back,
    settle,
    upkeep::migrate,
};

/// Every line that was logged, with its fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn add(writer: &mut Writer, n: usize) {
    let job = windlass_core::Name::new("job", "j").ok();
    let task = NewTask { job, ..NewTask::new("a", Payload::bytes("x")).unwrap() };
    writer.in_one(|tx| enqueue::enqueue(tx, &vec![task; n])).unwrap().unwrap();
}

/// Claims and settles one task.
fn finish_one(writer: &mut Writer, worker: WorkerId, number: u64) {
    let demand = Demand::new(worker, number, Arc::new([LaneId(1)]), 1);
    let claimed = writer.in_one(|tx| claim::claim(tx, &[demand])).unwrap().unwrap().tasks;
    let done = Settlement::Done { output: None, note: None };
    let items = claimed.iter().map(|task| SettleItem::new(task, done.clone())).collect();
    let batch = SettleBatch { worker, settler_no: 1, batch_no: number, items };
    writer.in_one(|tx| settle::settle(tx, &batch)).unwrap().unwrap();
}

#[test]
fn reaching_and_leaving_a_job_limit_is_logged_once_each() {
    let rules = Rules { job_default_concurrency: Some(2), ..Rules::default() };
    let options = Options::default().rules(rules);
    let mut writer = open::open(&Location::Memory, options, migrate::MIGRATIONS).unwrap().writer;
    let lines = Lines::default();
    let told = || lines.0.lock().unwrap().clone();
    tracing::subscriber::with_default(lines.clone(), || {
        let worker = NewWorker {
            host: "here".into(),
            pid: 1,
            version: "1".into(),
            kinds: vec![windlass_core::Name::new("kind", "a").unwrap()],
            queues: Vec::new(),
            slots: 10,
            lease_ttl: Duration::from_mins(1),
        };
        let worker =
            writer.in_one(|tx| hand_back::register(tx, &worker, hand_back::Home::Here)).unwrap().unwrap();
        add(&mut writer, 2);
        assert_eq!(told(), [""; 0], "it is full, but nothing is left over");
        add(&mut writer, 3);
        add(&mut writer, 1);
        (1..=3).for_each(|number| finish_one(&mut writer, worker, number));
        assert_eq!(told().len(), 1, "one line, not one per turn");
        assert!(told()[0].contains("job=j") && told()[0].contains("limit=2"), "{}", told()[0]);
        finish_one(&mut writer, worker, 4);
        finish_one(&mut writer, worker, 5);
        assert_eq!(told().len(), 2);
        assert!(told()[1].contains("job left its limit"), "{}", told()[1]);
    });
}
