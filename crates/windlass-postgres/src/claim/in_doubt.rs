//! Claims whose end is not known.

use crate::shared::Shared;

/// A claim that failed or was dropped on its way may have taken tasks and handed them back: these are behind
/// the read positions. So the next claim reads from the heads.
pub(crate) struct InDoubt<'a> {
    pub shared: &'a Shared,
    pub is_over: bool,
}

impl Drop for InDoubt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.read_positions().forget();
        }
    }
}
