//! How many workers a consumer has, and how many deliveries the broker may send ahead.

use std::thread::available_parallelism;

use crate::Error;

/// Default workers per CPU: handlers mostly wait for I/O.
const WORKERS_PER_CPU: usize = 4;
/// The most workers of one consumer.
pub const WORKERS_MAX: usize = 200;
/// Default prefetch per worker.
const PREFETCH_PER_WORKER: usize = 10;
/// The largest default prefetch.
const PREFETCH_DEFAULT_MAX: usize = 500;
/// The most deliveries that the broker may send ahead.
pub const PREFETCH_MAX: usize = 1000;

/// Workers and prefetch of a consumer, with warnings about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Handlers that run at once.
    pub workers: usize,
    /// Deliveries that the broker may send before it gets an answer.
    pub prefetch: u16,
    /// Lines for the log: what was reduced, and what will be slow.
    pub warnings: Vec<String>,
}

/// Decides both from the settings; 0 means automatic, from the number of CPUs.
///
/// # Errors
/// A negative number.
pub fn sizes(workers: i64, prefetch: i64, cpus: usize) -> Result<Sizes, Error> {
    let asked = |name: &str, value: i64| {
        let wrong = || Error::Declaration(format!("{name} must be 0 (automatic) or more, not {value}"));
        usize::try_from(value).map_err(|_| wrong())
    };
    let (asked_workers, asked_prefetch) = (asked("workers", workers)?, asked("prefetch", prefetch)?);
    let mut warnings = Vec::new();
    let wanted = if asked_workers == 0 { cpus.max(1) * WORKERS_PER_CPU } else { asked_workers };
    let workers = wanted.min(WORKERS_MAX);
    // Warn only about explicit settings: the user did not choose the number of CPUs.
    if asked_workers > WORKERS_MAX {
        warnings.push(format!("workers = {asked_workers} is cut to {WORKERS_MAX}, the most of one consumer"));
    }
    let wanted = match asked_prefetch {
        0 => (workers * PREFETCH_PER_WORKER).min(PREFETCH_DEFAULT_MAX),
        asked => asked,
    };
    let prefetch = wanted.min(PREFETCH_MAX);
    if wanted > PREFETCH_MAX {
        warnings.push(format!("prefetch = {wanted} is cut to {PREFETCH_MAX}, the most of one consumer"));
    }
    if prefetch < workers {
        warnings.push(format!(
            "prefetch = {prefetch} is less than workers = {workers}: {} of them never have anything to do",
            workers - prefetch
        ));
    }
    Ok(Sizes { workers, prefetch: prefetch as u16, warnings })
}

/// Connections of a shared pool for other users than handlers: the application's own requests, migrations,
/// checks.
const POOL_SPARE: usize = 10;

/// The size of a pool that the handlers of all consumers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPool {
    /// Most connections.
    pub max: usize,
    /// Connections that may stay open unused.
    pub idle: usize,
}

/// The size of a pool, such as of database connections, that the handlers of `workers` workers share: one
/// connection for each and ten more, half of them idle.
pub fn shared_pool(workers: usize) -> SharedPool {
    let max = workers + POOL_SPARE;
    SharedPool { max, idle: max / 2 }
}

/// CPUs that this process may use: limited by its affinity and by the quota of its control group, not the
/// CPUs of the host.
pub fn cpus() -> usize {
    available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn decided(workers: i64, prefetch: i64, cpus: usize) -> (usize, u16, usize) {
        let sizes = sizes(workers, prefetch, cpus).unwrap();
        (sizes.workers, sizes.prefetch, sizes.warnings.len())
    }

    #[test]
    fn automatic_sizes_follow_the_cpus_up_to_the_caps() {
        let table = [(1, 4, 40), (2, 8, 80), (4, 16, 160), (8, 32, 320), (32, 128, 500), (64, 200, 500)];
        for (cpus, workers, prefetch) in table {
            assert_eq!(decided(0, 0, cpus), (workers, prefetch, 0), "{cpus} CPUs");
        }
    }

    #[test]
    fn explicit_sizes_are_honoured() {
        assert_eq!(decided(100, 500, 8), (100, 500, 0));
        assert_eq!(decided(1, 0, 8), (1, 10, 0));
    }

    #[test]
    fn sizes_above_the_limits_are_cut_with_a_warning() {
        let sizes = sizes(500, 5000, 8).unwrap();
        assert_eq!((sizes.workers, sizes.prefetch), (200, 1000));
        let text = sizes.warnings.join("\n");
        for number in ["500", "200", "5000", "1000"] {
            assert!(text.contains(number), "{text}");
        }
    }

    #[test]
    fn prefetch_below_the_workers_gets_a_warning() {
        assert_eq!(decided(32, 8, 8), (32, 8, 1));
    }

    #[test]
    fn shared_pool_has_ten_connections_more_than_workers() {
        assert_eq!(shared_pool(160), SharedPool { max: 170, idle: 85 });
    }

    #[test]
    fn negative_sizes_are_refused() {
        assert!(sizes(-1, 0, 8).unwrap_err().to_string().contains("workers must be"));
        assert!(sizes(0, -1, 8).unwrap_err().to_string().contains("prefetch must be"));
    }
}
