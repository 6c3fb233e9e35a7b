//! The thread that claims and settles, apart from the threads that run handlers. A handler that blocks its
//! thread delays itself, and neither the claims nor the settlements of others. A source with its own thread
//! for connections runs the engine on that thread.

pub(crate) mod coordinator;
pub(crate) mod duties;
pub(crate) mod executor;
pub(crate) mod heartbeat;
pub(crate) mod log_line;
pub(crate) mod settler;
mod supervisor;

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::JoinSet};
use windlass_core::Error;

use self::settler::Sort;
use crate::{
    inside::home::Part,
    schedule,
    worker::{
        shared::{Phase, Shared},
        status::WorkerError,
    },
};

/// How long the parts may take to end after the worker has stopped.
const END_GRACE: Duration = Duration::from_secs(1);

/// The running thread.
pub(crate) struct Engine {
    pub(crate) part: Part,
    /// Resolves when claiming ends: in success when the worker drains, with an error when the coordinator
    /// died too often.
    claiming: Option<oneshot::Receiver<Result<(), WorkerError>>>,
}

/// Starts the thread. It ends when the worker has stopped.
///
/// # Errors
/// If the thread or its timer cannot be created.
pub(crate) fn spawn(shared: &Arc<Shared>) -> std::io::Result<Engine> {
    let (ended, claiming) = oneshot::channel();
    let engine = run(shared.clone(), ended);
    let part = shared.config.home.start_beside(&*shared.source, "windlass-engine", engine)?;
    Ok(Engine { part, claiming: Some(claiming) })
}

async fn run(shared: Arc<Shared>, ended: oneshot::Sender<Result<(), WorkerError>>) {
    let mut parts = JoinSet::new();
    parts.spawn(settler::run(shared.clone(), Sort::Plain));
    parts.spawn(settler::run(shared.clone(), Sort::Steps));
    parts.spawn(duties::listen(shared.clone()));
    parts.spawn(duties::sweep(shared.clone()));
    parts.spawn(duties::retain(shared.clone()));
    parts.spawn(schedule::duty::run(shared.clone()));
    let claiming = async {
        // If the worker was dropped, the receiver is gone; that does not matter.
        let _ = ended.send(supervisor::supervise(shared.clone()).await);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = claiming => {}
        () = shared.phase_reached(Phase::Stopped) => {}
        () = watch(&mut parts, &shared) => {}
    }
    let _ = tokio::time::timeout(END_GRACE, async { while parts.join_next().await.is_some() {} }).await;
    parts.shutdown().await;
}

/// A part that dies ends the worker: without its settler or its sweeps it would only look alive.
async fn watch(parts: &mut JoinSet<()>, shared: &Shared) {
    while let Some(ended) = parts.join_next().await {
        if let Err(death) = ended {
            shared.set_fatal(Error::Fatal(format!("a part of the worker died: {death}")));
        }
    }
    shared.phase_reached(Phase::Stopped).await;
}

impl Engine {
    /// Waits for the end of claiming. Cancel safe; a second call pends for ever.
    pub(crate) async fn claiming_ended(&mut self) -> Result<(), WorkerError> {
        let Some(claiming) = &mut self.claiming else { return std::future::pending().await };
        let ended = claiming.await;
        self.claiming = None;
        ended.unwrap_or(Ok(()))
    }

    /// Whether claiming has not ended yet, as of the last call of `claiming_ended`.
    pub(crate) fn is_claiming(&self) -> bool {
        self.claiming.is_some()
    }
}
