//! The size of a pool: from the caller, the environment, or the machine.

use std::thread::available_parallelism;

use tokio::runtime;

use super::Pool;
use crate::admission::Controller;

/// Default number of tasks that may wait for a slot.
const DEFAULT_BUFFER: usize = 100;
/// Default number of slots per CPU: tasks mostly wait for I/O.
const SLOTS_PER_CPU: usize = 4;
/// The most slots, and the largest buffer. Unused slots cost nothing, so this only rejects senseless values.
const MAX_PLACES: usize = 1 << 24;

/// The setting behind [`PoolBuilder::size`], and its name in the environment.
const SIZE: Setting = Setting { name: "WORKER_POOL_SIZE", own_name: "WINDLASS_POOL_SIZE" };
/// The setting behind [`PoolBuilder::buffer`].
const BUFFER: Setting = Setting { name: "WORKER_BUFFER_SIZE", own_name: "WINDLASS_POOL_BUFFER_SIZE" };

/// Settings of a [`Pool`] that is not built yet.
#[derive(Debug, Clone, Default)]
pub struct PoolBuilder {
    size: Option<Value>,
    buffer: Option<Value>,
    runtime: Option<runtime::Handle>,
    admission: Option<Controller>,
}

/// Why a pool was not built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// A size out of bounds. A pool of size 0 would accept work that never runs.
    #[error("{setting} must be at least 1 and at most {max}, not {value}")]
    OutOfBounds {
        /// The name of the setting.
        setting: &'static str,
        /// Its value.
        value: usize,
        /// The largest allowed value.
        max: usize,
    },
    /// A setting in the environment that is not a whole number.
    #[error("{setting} must be a whole number from 1 on, not {value:?}")]
    NotANumber {
        /// The name of the setting.
        setting: &'static str,
        /// Its value.
        value: String,
    },
    /// There is no tokio runtime for the tasks.
    #[error("no tokio runtime here: build the pool inside of one, or name one with PoolBuilder::runtime")]
    NoRuntime,
}

impl PoolBuilder {
    /// Settings from the environment: `WORKER_POOL_SIZE` and `WORKER_BUFFER_SIZE`, or with precedence
    /// `WINDLASS_POOL_SIZE` and `WINDLASS_POOL_BUFFER_SIZE`. Missing variables keep the defaults.
    ///
    /// # Errors
    /// [`PoolError::NotANumber`] with the name of the setting.
    pub fn from_env() -> Result<Self, PoolError> {
        Self::from_vars(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// As [`from_env`](Self::from_env), from variables that the caller looks up.
    ///
    /// # Errors
    /// [`PoolError::NotANumber`] with the name of the setting.
    pub fn from_vars(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, PoolError> {
        Ok(Self { size: SIZE.read(&lookup)?, buffer: BUFFER.read(&lookup)?, ..Self::default() })
    }

    /// How many tasks run at once at most. Default: four per CPU that this process may use.
    #[must_use]
    pub fn size(mut self, size: usize) -> Self {
        self.size = Some(Value { setting: SIZE.name, value: size });
        self
    }

    /// How many accepted tasks may wait for a slot. Default: 100.
    #[must_use]
    pub fn buffer(mut self, buffer: usize) -> Self {
        self.buffer = Some(Value { setting: BUFFER.name, value: buffer });
        self
    }

    /// The runtime that runs the tasks. Default: the one that `build` is called in.
    #[must_use]
    pub fn runtime(mut self, runtime: runtime::Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// The controller that sets how many of the slots may be used: give the same one to every pool and worker
    /// of a process. Tasks that may not start wait in the buffer. The thread of a worker takes the samples;
    /// without a worker, keep the result of [`Controller::start_sampling`]. Default: none, every slot may be
    /// used.
    #[must_use]
    pub fn admission(mut self, controller: Controller) -> Self {
        self.admission = Some(controller);
        self
    }

    /// Builds the pool. It costs nothing yet: consumers are spawned with the first tasks.
    ///
    /// # Errors
    /// [`PoolError::OutOfBounds`] with the name of the setting, [`PoolError::NoRuntime`] outside of a
    /// runtime.
    pub fn build(self) -> Result<Pool, PoolError> {
        let cpus = available_parallelism().map_or(1, usize::from);
        let size = self.size.map_or(Ok(cpus * SLOTS_PER_CPU), Value::checked)?;
        let buffer = self.buffer.map_or(Ok(DEFAULT_BUFFER), Value::checked)?;
        let runtime = match self.runtime {
            Some(runtime) => runtime,
            None => runtime::Handle::try_current().map_err(|_| PoolError::NoRuntime)?,
        };
        let pool = Pool::new(size, buffer, runtime);
        if let Some(controller) = self.admission {
            pool.obey(&controller);
        }
        Ok(pool)
    }
}

struct Setting {
    name: &'static str,
    own_name: &'static str,
}

impl Setting {
    fn read(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Value>, PoolError> {
        let found = [self.own_name, self.name].into_iter().find_map(|name| Some((name, lookup(name)?)));
        let Some((setting, text)) = found else { return Ok(None) };
        match text.trim().parse() {
            Ok(value) => Ok(Some(Value { setting, value })),
            Err(_) => Err(PoolError::NotANumber { setting, value: text }),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Value {
    setting: &'static str,
    value: usize,
}

impl Value {
    fn checked(self) -> Result<usize, PoolError> {
        let Self { setting, value } = self;
        if (1..=MAX_PLACES).contains(&value) {
            Ok(value)
        } else {
            Err(PoolError::OutOfBounds { setting, value, max: MAX_PLACES })
        }
    }
}
