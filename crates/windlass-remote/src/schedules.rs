//! Recurring tasks, over gRPC.

use async_trait::async_trait;
use windlass_core::{Enqueued, Fire, Name, Result, ScheduleRow, Schedules, schedule::DueSchedules};
use windlass_proto::{convert::task_id, v1};

use crate::store::{RemoteStore, all};

#[async_trait]
impl Schedules for RemoteStore {
    async fn put(&self, row: &ScheduleRow) -> Result<()> {
        let request = v1::Schedule::from(row.clone());
        self.change(|wire| async move { wire.store().put_schedule(request).await }).await.map(|_| ())
    }

    async fn list(&self) -> Result<Vec<ScheduleRow>> {
        let request = v1::ListSchedulesRequest {};
        all(self.look(|wire| async move { wire.store().list_schedules(request).await }).await?.schedules)
    }

    async fn remove(&self, name: &Name) -> Result<bool> {
        let request = v1::RemoveScheduleRequest { name: name.to_string() };
        Ok(self.change(|wire| async move { wire.store().remove_schedule(request).await }).await?.removed)
    }

    async fn due(&self, limit: u32) -> Result<DueSchedules> {
        let request = v1::DueSchedulesRequest { limit };
        self.look(|wire| async move { wire.store().due_schedules(request).await }).await?.try_into()
    }

    async fn fire(&self, fire: Fire) -> Result<Option<Enqueued>> {
        let request = v1::FireScheduleRequest::from(fire);
        let answer = self.change(|wire| async move { wire.store().fire_schedule(request).await }).await?;
        if !answer.fired {
            return Ok(None);
        }
        Ok(Some(Enqueued { existing: answer.existing, ..Enqueued::new(task_id(&answer.task_id)?) }))
    }
}
