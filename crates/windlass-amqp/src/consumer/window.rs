//! How many deliveries the broker may send ahead without taking too much memory. Pure: sizes come in,
//! prefetches come out.
//!
//! The broker reads the prefetch only when a consumer subscribes, so a change costs a new subscription. Hence
//! the gap between lowering and raising: messages of about one size change nothing.

use windlass::admission::ahead;

/// After this many deliveries, older ones count half: the size of messages may change.
const MEMORY: u64 = 1_000;

/// The sizes of deliveries, and the prefetch in use.
#[derive(Debug)]
pub struct Window {
    configured: u16,
    current: u16,
    deliveries: u64,
    bytes: u64,
}

/// A prefetch that no longer fits the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit {
    /// The prefetch that fits.
    pub prefetch: u16,
    /// The prefetch in use.
    pub current: u16,
    /// The mean size of the deliveries.
    pub mean_bytes: u64,
}

impl Misfit {
    /// Whether messages sent ahead take too much memory.
    pub fn is_excess(&self) -> bool {
        self.prefetch < self.current
    }
}

impl Window {
    /// Starts with the configured prefetch.
    pub fn new(configured: u16) -> Self {
        Self { configured, current: configured, deliveries: 0, bytes: 0 }
    }

    /// Notes the size of a delivery.
    pub fn note(&mut self, bytes: usize) {
        if self.deliveries >= MEMORY {
            self.deliveries /= 2;
            self.bytes /= 2;
        }
        self.deliveries += 1;
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// The prefetch to use with this much memory, if it is another one.
    pub fn misfit(&self, memory_limit: u64) -> Option<Misfit> {
        let mean_bytes = self.bytes.checked_div(self.deliveries)?;
        let fitting = ahead(self.configured, mean_bytes, memory_limit);
        // Leave some room, so that a mean that rises a little does not lower it again.
        let prefetch = if fitting == self.configured { fitting } else { (fitting - fitting / 4).max(1) };
        let is_wrong = fitting < self.current || fitting / 2 >= self.current;
        let misfit = Misfit { prefetch, current: self.current, mean_bytes };
        (is_wrong && prefetch != self.current).then_some(misfit)
    }

    /// Sets the prefetch in use.
    pub fn set(&mut self, prefetch: u16) {
        self.current = prefetch;
    }

    /// The prefetch in use.
    pub fn current(&self) -> u16 {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1_000_000;
    const LIMIT: u64 = 1_000 * MB as u64;

    fn seen(configured: u16, sizes: &[usize]) -> Window {
        let mut window = Window::new(configured);
        for bytes in sizes {
            window.note(*bytes);
        }
        window
    }

    #[test]
    fn prefetch_within_a_tenth_of_the_memory_stays() {
        assert_eq!(Window::new(500).misfit(LIMIT), None, "nothing is known yet");
        assert_eq!(seen(500, &[1_000, 200_000]).misfit(LIMIT), None);
        assert_eq!(seen(1, &[900 * MB]).misfit(LIMIT), None, "less than one is none at all");
    }

    #[test]
    fn prefetch_above_a_tenth_of_the_memory_is_lowered() {
        let misfit = seen(500, &[2 * MB, MB, 3 * MB]).misfit(LIMIT);
        let wanted = Misfit { prefetch: 38, current: 500, mean_bytes: 2 * MB as u64 };
        assert_eq!(misfit, Some(wanted), "50 of two megabytes are a tenth");
        assert!(wanted.is_excess());
    }

    #[test]
    fn small_changes_of_message_size_keep_the_prefetch() {
        let mut window = seen(500, &[2 * MB; 10]);
        window.set(38);
        assert_eq!(window.misfit(LIMIT), None);
        (0..5).for_each(|_| window.note(3 * MB));
        assert_eq!(window.misfit(LIMIT), None);
        (0..50).for_each(|_| window.note(3 * MB));
        assert_eq!(window.misfit(LIMIT).map(|misfit| misfit.prefetch), Some(27));
    }

    #[test]
    fn smaller_messages_raise_the_prefetch_up_to_the_configured_one() {
        let mut window = seen(500, &[2 * MB; 10]);
        window.set(38);
        for _ in 0..20_000 {
            window.note(1_000);
        }
        let raised = window.misfit(LIMIT);
        assert_eq!(raised.map(|misfit| (misfit.prefetch, misfit.is_excess())), Some((500, false)));
    }
}
