//! Claims whose end is not known.

use crate::shared::Shared;

/// A claim that failed or was dropped on its way: what it took and gave back lies behind the places that were noted.
pub(crate) struct Doubt<'a> {
    pub shared: &'a Shared,
    pub is_over: bool,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.forget_cursors();
        }
    }
}
