//! Which workers a caller may act for, and which tasks it may have. Only this file reads worker ids from
//! messages.
//!
//! A worker belongs to the caller that registered it: the same token or the same client certificate. Any
//! other caller gets the answer for a worker whose lease has expired; a worker whose token was replaced
//! therefore registers again without help.
//! A caller with the scope `admin`, and any caller of a server that asks for no token, may act for every
//! worker.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tonic::{Request, Status};
use windlass_core::{
    Demand, Error, LaneId, Name, NewWorker, WorkerId, store::SharedStore, worker::Registration,
};
use windlass_proto::convert::worker_id;

use super::{Api, status};
use crate::access::{self, Caller};

/// Most registrations in the cache. A registration never changes, so each is looked up once.
const KNOWN_MAX: usize = 10_000;

/// Highest claim number that a caller may send. Stores use signed numbers, and every later claim needs a
/// higher number.
const CLAIM_NO_MAX: u64 = 1 << 62;

/// A cache of registrations.
#[derive(Default)]
pub(super) struct Registrations(Mutex<HashMap<WorkerId, Arc<Registration>>>);

impl Registrations {
    fn put(&self, worker: WorkerId, registration: Registration) -> Arc<Registration> {
        let registration = Arc::new(registration);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(worker, Arc::clone(&registration));
        registration
    }

    async fn of(&self, store: &SharedStore, worker: WorkerId) -> Result<Option<Arc<Registration>>, Error> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&worker).cloned();
        if known.is_some() {
            return Ok(known);
        }
        Ok(store.registration(worker).await?.map(|found| self.put(worker, found)))
    }
}

/// The caller of one call, and the API that it calls.
#[derive(Clone)]
pub(super) struct Speaker {
    api: Api,
    pub(super) caller: Arc<Caller>,
}

impl Api {
    /// The caller of a request. The access check adds it to every request that it admits.
    pub(super) fn speaker<T>(&self, request: &Request<T>) -> Result<Speaker, Status> {
        let caller = request.extensions().get::<Arc<Caller>>().cloned();
        let caller = caller.ok_or_else(|| Status::unauthenticated("this call has passed no access check"))?;
        Ok(Speaker { api: self.clone(), caller })
    }
}

impl Speaker {
    /// Whether the caller's token is bound to queues or kinds.
    pub(super) fn is_bound(&self) -> bool {
        !self.caller.bound().is_open()
    }

    /// The worker of a message, if the caller may act for it.
    pub(super) async fn worker(&self, text: &str) -> Result<WorkerId, Status> {
        let worker = worker_id(text).map_err(status)?;
        self.speaks_for(worker).await?;
        Ok(worker)
    }

    /// Refuses a worker that another caller registered.
    pub(super) async fn speaks_for(&self, worker: WorkerId) -> Result<(), Status> {
        if self.caller.is_admin() {
            return Ok(());
        }
        let found = self.registration(worker).await?;
        if found.is_some_and(|found| found.owner.is_some() && found.owner == self.caller.owner()) {
            return Ok(());
        }
        access::audit_foreign_worker(&self.caller, worker);
        Err(status(Error::WorkerExpired))
    }

    async fn registration(&self, worker: WorkerId) -> Result<Option<Arc<Registration>>, Status> {
        self.api.registrations.of(self.api.store(), worker).await.map_err(status)
    }

    /// Registers a worker for the caller.
    pub(super) async fn register(&self, mut worker: NewWorker) -> Result<WorkerId, Status> {
        (worker.kinds, worker.queues) = self.within(worker.kinds, worker.queues)?;
        let owner = self.caller.owner();
        let registration =
            Registration { owner: owner.clone(), kinds: worker.kinds.clone(), queues: worker.queues.clone() };
        let id = self.api.store().register_remote(worker, owner.as_deref()).await.map_err(status)?;
        self.api.registrations.put(id, registration);
        Ok(id)
    }

    /// The kinds and queues of a request, restricted to those that the caller's token names. A kind or queue
    /// that the token does not name is refused. A request for all queues means all queues that the token
    /// names.
    pub(super) fn within(
        &self,
        kinds: Vec<Name>,
        queues: Vec<Name>,
    ) -> Result<(Vec<Name>, Vec<Name>), Status> {
        let bound = self.caller.bound();
        if let Some(kind) = kinds.iter().find(|kind| !bound.has_kind(kind)) {
            return Err(status(access::out_of_bounds(&self.caller, &format!("kind {kind}"))));
        }
        if let Some(queue) = queues.iter().find(|queue| !bound.has_queue(queue)) {
            return Err(status(access::out_of_bounds(&self.caller, &format!("queue {queue}"))));
        }
        let queues = if queues.is_empty() { bound.queues.clone() } else { queues };
        Ok((kinds, queues))
    }

    /// Checks that a claim is for a worker of the caller, and drops the lanes that the caller may not have.
    pub(super) async fn demand(&self, demand: Demand) -> Result<Demand, Status> {
        self.speaks_for(demand.worker).await?;
        check_claim_no(demand.claim_no).map_err(status)?;
        let bound = self.caller.bound();
        if bound.is_open() {
            return Ok(demand);
        }
        let Some(registration) = self.registration(demand.worker).await? else {
            return Err(status(Error::WorkerExpired));
        };
        let kinds: Vec<_> = registration.kinds.iter().filter(|kind| bound.has_kind(kind)).cloned().collect();
        let allowed = self.api.store().lanes(&kinds, &bound.queues).await.map_err(status)?;
        let is_allowed = |lane: &LaneId| allowed.iter().any(|allowed| allowed.id == *lane);
        let lanes = demand.lanes.iter().copied().filter(is_allowed).collect();
        Ok(Demand { lanes, ..demand })
    }
}

/// Refuses a claim number that leaves no room for a higher one.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn check_claim_no(claim_no: u64) -> Result<u64, Error> {
    if claim_no > CLAIM_NO_MAX {
        return Err(Error::invalid(format!("claim_no must be at most {CLAIM_NO_MAX}")));
    }
    Ok(claim_no)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn remembered_registrations_are_bounded() {
        let known = Registrations::default();
        let of = || Registration { owner: None, kinds: Vec::new(), queues: Vec::new() };
        for id in 0..3 * KNOWN_MAX {
            known.put(WorkerId(id as i64), of());
        }
        assert!(known.0.lock().unwrap().len() <= KNOWN_MAX);
    }

    #[test]
    fn no_other_file_of_the_api_reads_a_worker_from_a_message() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/grpc");
        let entries = |folder: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let mut open = entries(Path::new(folder));
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(entries(&path));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let reads = text.contains("worker_id(&") || text.contains("convert::worker_id");
            assert!(!reads || path.ends_with("speaker.rs"), "{}", path.display());
        }
    }
}
