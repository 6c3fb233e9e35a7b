//! Idempotency keys: the same (queue, key) gives one task (ENQ-IDEMPOTENT).

use std::collections::HashMap;

use rusqlite::OptionalExtension;
use windlass_core::{Error, Name, NewTask, TaskId, task::Key};

use crate::{
    connection::tx::{Step, Tx},
    sql,
};

/// What a key stands for: kind, encoding and payload, in 128 bits.
pub(crate) type Digest = [u8; 16];

/// FNV-1a over all that must be equal. It tells two payloads apart and does not resist attackers.
pub(crate) fn digest(task: &NewTask) -> Digest {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let kind = task.kind.as_str().as_bytes();
    let encoding = [0, task.payload.encoding().code() as u8];
    let bytes = kind.iter().chain(&encoding).chain(task.payload.as_bytes());
    bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME)).to_le_bytes()
}

/// The result for one task of a batch.
pub(crate) enum Admitted {
    /// It is new; its key is stored with this digest.
    New(Option<Digest>),
    /// Its key belongs to an existing task.
    Existing(TaskId),
    /// Its key belongs to an earlier task of the same batch.
    SameAs(usize),
}

/// Looks up the keys of a whole batch before the first write, so that a conflict refuses the whole batch. The
/// batch itself has been checked.
pub(crate) fn admit(tx: &Tx<'_>, tasks: &[NewTask]) -> Step<Vec<Admitted>> {
    let mut seen: HashMap<(&Name, &str), usize> = HashMap::new();
    let mut admitted = Vec::with_capacity(tasks.len());
    for (place, task) in tasks.iter().enumerate() {
        let Some(key) = &task.key else {
            admitted.push(Admitted::New(None));
            continue;
        };
        if let Some(first) = seen.get(&(&task.queue, key.text.as_str())) {
            admitted.push(Admitted::SameAs(*first));
            continue;
        }
        let digest = digest(task);
        if let Some(id) = existing(tx, task, key, &digest)? {
            admitted.push(Admitted::Existing(id));
        } else {
            seen.insert((&task.queue, &key.text), place);
            admitted.push(Admitted::New(Some(digest)));
        }
    }
    Ok(admitted)
}

/// The task of a key, if the new task has the same contents.
fn existing(tx: &Tx<'_>, task: &NewTask, key: &Key, digest: &Digest) -> Step<Option<TaskId>> {
    match find(tx, &task.queue, &key.text)? {
        Some((existing, known)) if known != digest && !key.ignore_conflict => {
            Err(Error::KeyConflict { key: key.text.clone(), existing }.into())
        }
        found => Ok(found.map(|(existing, _)| existing)),
    }
}

/// The task of a key that has not expired.
pub(crate) fn holder(tx: &Tx<'_>, queue: &Name, key: &str) -> Step<Option<TaskId>> {
    Ok(find(tx, queue, key)?.map(|(id, _)| id))
}

/// The task of a key and its digest, if the key has not expired.
fn find(tx: &Tx<'_>, queue: &Name, key: &str) -> Step<Option<(TaskId, Vec<u8>)>> {
    let found = tx.sql(sql::FIND_KEY)?.query_row((queue.as_str(), key), |row| {
        let expires_at: Option<i64> = row.get(2)?;
        let is_kept: bool = row.get(3)?;
        let is_over = !is_kept && expires_at.is_some_and(|expires_at| expires_at <= tx.now.as_ms());
        Ok((TaskId::from_raw(row.get(0)?), row.get_ref(1)?.as_bytes().unwrap_or_default().to_vec(), is_over))
    });
    Ok(found.optional()?.filter(|(.., is_over)| !is_over).map(|(id, digest, _)| (id, digest)))
}

/// Gives a key to a new task.
pub(crate) fn put(tx: &Tx<'_>, task: &NewTask, id: TaskId, digest: &Digest) -> Step<()> {
    if let Some(key) = &task.key {
        tx.sql(sql::PUT_KEY)?.execute((task.queue.as_str(), &key.text, id.raw(), digest))?;
    }
    Ok(())
}

/// The task ends, so its key gets an expiry time. Must run before the row is removed.
pub(crate) fn expire(tx: &Tx<'_>, id: TaskId) -> Step<()> {
    let until = tx.now.after(tx.options.rules.idempotency_ttl);
    tx.sql(sql::EXPIRE_KEY)?.execute((id.raw(), until.as_ms()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use windlass_core::Payload;

    use super::*;

    #[test]
    fn a_digest_distinguishes_kind_encoding_and_payload() {
        let task = |kind, payload| digest(&NewTask::new(kind, payload).unwrap());
        let one = task("a", Payload::json(&1).unwrap());
        assert_eq!(one, task("a", Payload::json(&1).unwrap()));
        assert_ne!(one, task("b", Payload::json(&1).unwrap()));
        assert_ne!(one, task("a", Payload::json(&2).unwrap()));
        assert_ne!(one, task("a", Payload::bytes("1")));
    }
}
