//! Orders as workflows: reserve, charge, ship, one after another. Orders run in parallel. A failed payment
//! blocks only its own order until an operator decides.
//!
//! `cargo run --example order_pipeline`

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    Client, Name, Outcome, State, Task, Worker,
    gate::{WorkflowAction, WorkflowRecord},
    store::SharedStore,
};

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Reserve {
    order: u32,
}

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Charge {
    order: u32,
}

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Ship {
    order: u32,
}

/// Stands in for the warehouse, the payment service and the carrier.
#[derive(Default)]
struct Shop {
    declined: Mutex<BTreeSet<u32>>,
    log: Mutex<Vec<String>>,
}

impl Shop {
    fn note(&self, line: String) {
        println!("{line}");
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn declined(&self) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
        self.declined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn reserve(Reserve { order }: Reserve, State(shop): State<Arc<Shop>>) {
    shop.note(format!("order {order}: reserved"));
}

async fn charge(Charge { order }: Charge, State(shop): State<Arc<Shop>>) -> Outcome {
    if shop.declined().contains(&order) {
        shop.note(format!("order {order}: card declined"));
        // A second attempt would not help, so this step ends dead, and its workflow is blocked.
        return Outcome::dead("card declined");
    }
    shop.note(format!("order {order}: charged"));
    Outcome::Done(None)
}

async fn ship(Ship { order }: Ship, State(shop): State<Arc<Shop>>) {
    shop.note(format!("order {order}: shipped"));
}

/// Enqueues all steps of an order in one commit: the store has all of them or none.
async fn place(client: &Client, order: u32) -> anyhow::Result<()> {
    let workflow = Name::new("workflow", format!("order-{order}"))?;
    let mut steps =
        vec![Reserve { order }.new_task()?, Charge { order }.new_task()?, Ship { order }.new_task()?];
    for step in &mut steps {
        step.workflow = Some(workflow.clone());
    }
    client.enqueue_all_raw(steps).await?;
    Ok(())
}

/// Waits until no order can continue, and returns the blocked ones.
async fn settled(store: &SharedStore) -> anyhow::Result<Vec<WorkflowRecord>> {
    loop {
        // Finished workflows are no longer listed.
        let open = store.gates().workflows(false, None, 100).await?;
        if open.iter().all(|workflow| workflow.blocked_by.is_some()) {
            return Ok(open);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Three orders, one of them with a card that is declined at first. Returns what happened, in order.
pub async fn run() -> anyhow::Result<Vec<String>> {
    let store = windlass::open("sqlite::memory:").await?;
    let client = Client::new(store.clone());
    let shop = Arc::new(Shop::default());
    shop.declined().insert(2);
    for order in 1..=3 {
        place(&client, order).await?;
    }
    let worker = Worker::builder(store.clone())
        .state(shop.clone())
        .handle(reserve)
        .handle(charge)
        .handle(ship)
        .build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));

    // `windlass workflows ls --blocked` shows the same.
    for workflow in settled(&store).await? {
        let reason = match workflow.blocked_by {
            Some(step) => client.task(step).await?.and_then(|task| task.error),
            None => None,
        };
        shop.note(format!("{} is blocked: {}", workflow.name, reason.unwrap_or_default()));
        // The customer gives another card: try the payment again. `Skip` would ship without it, `Cancel`
        // would end the order.
        shop.declined().clear();
        store.gates().change_workflow(&workflow.name, WorkflowAction::Retry).await?;
    }
    let blocked = settled(&store).await?;
    anyhow::ensure!(blocked.is_empty(), "still blocked: {blocked:?}");

    handle.drain();
    running.await??;
    let log = shop.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(log)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run().await?;
    Ok(())
}
