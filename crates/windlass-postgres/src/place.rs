//! Where the row of a task lies: what its claim says, so that its settlement need not look for it.
//!
//! Only a hint. A row that was changed since lies elsewhere; it is looked for by its id then, under the same fence.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use windlass_core::{LeaseRef, TaskId};

/// Places that are remembered; beyond that all are forgotten. Many times what one process runs.
const KNOWN_MAX: usize = 1 << 18;

/// A page and the number of a row in it; in the server's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    page: u32,
    number: u16,
}

impl<'a> FromSql<'a> for Place {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let (page, number) = raw.split_at_checked(4).ok_or("a place without a page")?;
        Ok(Self {
            page: u32::from_be_bytes(page.try_into()?),
            number: u16::from_be_bytes(number.try_into()?),
        })
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TID
    }
}

impl ToSql for Place {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_u32(self.page);
        out.put_u16(self.number);
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TID
    }

    to_sql_checked!();
}

/// The places of what this process holds.
#[derive(Debug, Default)]
pub(crate) struct Places {
    known: Mutex<HashMap<TaskId, (u32, Place)>>,
}

impl Places {
    /// Leases were taken, and their rows lie there.
    pub(crate) fn note(&self, leases: impl Iterator<Item = (LeaseRef, Place)>) {
        let mut known = self.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.extend(leases.map(|(lease, place)| (lease.id, (lease.lease, place))));
    }

    /// Where the rows of all these leases lie, if that is known of each. Forgotten with that: they end.
    pub(crate) fn take(&self, leases: impl Iterator<Item = LeaseRef>) -> Option<Vec<Place>> {
        let mut known = self.lock();
        let mut places = Vec::with_capacity(leases.size_hint().0);
        let mut all_known = true;
        for lease in leases {
            match known.remove(&lease.id) {
                Some((number, place)) if number == lease.lease => places.push(place),
                _ => all_known = false,
            }
        }
        all_known.then_some(places)
    }

    /// The row of a task lies elsewhere by now.
    pub(crate) fn forget(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, (u32, Place)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(id: i64, lease: u32) -> LeaseRef {
        LeaseRef { id: TaskId::from_raw(id), lease }
    }

    fn at(number: u16) -> Place {
        Place { page: 70_000, number }
    }

    #[test]
    fn a_place_is_sent_as_it_came() {
        let mut sent = BytesMut::new();
        at(7).to_sql(&Type::TID, &mut sent).unwrap();
        assert_eq!(&sent[..], [0, 1, 0x11, 0x70, 0, 7]);
        assert_eq!(Place::from_sql(&Type::TID, &sent).unwrap(), at(7));
        assert!(Place::from_sql(&Type::TID, &sent[..5]).is_err());
        assert!(Place::from_sql(&Type::TID, &[]).is_err());
    }

    #[test]
    fn places_are_known_for_all_leases_or_for_none() {
        let places = Places::default();
        places.note([(lease(1, 1), at(1)), (lease(2, 5), at(2))].into_iter());
        assert_eq!(places.take([lease(2, 5), lease(1, 1)].into_iter()), Some(vec![at(2), at(1)]));
        assert_eq!(places.take([lease(1, 1)].into_iter()), None, "they have ended");
        places.note([(lease(1, 1), at(1)), (lease(2, 5), at(2))].into_iter());
        assert_eq!(places.take([lease(1, 1), lease(2, 6)].into_iter()), None, "another lease");
        places.note([(lease(1, 1), at(1))].into_iter());
        places.forget(TaskId::from_raw(1));
        assert_eq!(places.take([lease(1, 1)].into_iter()), None, "it lies elsewhere");
    }
}
