//! Lease numbers that a crash of the store cannot repeat.
//!
//! Claims are committed without waiting for the disk, so a crash can forget one while its worker runs on. If
//! the next claim of that task took the number after the one that the store remembers, two attempts would run
//! under the same number. So an *epoch* begins, in a durable commit, before the next claim after a crash, and
//! wherever a store cannot rule a crash out. Its numbers start above all that earlier epochs can have given.
//!
//! ```text
//!   epoch 0: 1 2 3 … │ crash │ epoch 1024: 1024 1025 … │ a task was claimed 512 times │ epoch 2048: …
//! ```

/// The distance between the first numbers of two epochs. A task that is claimed half as often in one epoch
/// begins the next epoch early. The other half is far more than the claims of one task that one crash can
/// forget.
pub const EPOCH_STEP: u32 = 1_024;

/// An epoch of leases, named by the lowest number that a claim gives in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The number of the next lease of a task whose last lease had the number `last`; zero if it had none.
    pub fn next_lease(self, last: u32) -> u32 {
        last.saturating_add(1).max(self.0)
    }

    /// The epoch that comes `steps` epochs later.
    #[must_use]
    pub fn after(self, steps: u32) -> Self {
        Self(self.0.saturating_add(EPOCH_STEP.saturating_mul(steps)))
    }

    /// Whether a lease with this number was given so late in the epoch that the next epoch must begin.
    pub fn is_used_up_by(self, lease: u32) -> bool {
        lease >= self.0.saturating_add(EPOCH_STEP / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_epoch_counts_from_one() {
        let epoch = Epoch::default();
        assert_eq!((epoch.next_lease(0), epoch.next_lease(1), epoch.next_lease(7)), (1, 2, 8));
    }

    #[test]
    fn next_epoch_is_above_all_that_was_given() {
        let mut epoch = Epoch::default();
        let mut given = 0;
        for _ in 0..5_000 {
            given = epoch.next_lease(given);
            if epoch.is_used_up_by(given) {
                epoch = epoch.after(1);
            }
            // The crash forgets this claim and every one before it.
            assert!(epoch.after(1).next_lease(0) > given);
        }
    }

    #[test]
    fn numbers_never_wrap() {
        let last = Epoch(u32::MAX - 1).after(3);
        assert_eq!(last.next_lease(u32::MAX), u32::MAX);
    }
}
