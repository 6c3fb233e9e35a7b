//! The components of a process: initialised and started in the order of their dependencies, stopped in the
//! reverse.
//!
//! ```
//! # use std::time::Duration;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use windlass::lifecycle::{Component, Failure, Lifecycle};
//!
//! struct Database;
//! #[async_trait::async_trait]
//! impl Component for Database {
//!     async fn start(&mut self) -> Result<(), Failure> {
//!         Ok(()) // connect
//!     }
//! }
//! struct Intake;
//! impl Component for Intake {}
//!
//! let mut process = Lifecycle::builder()
//!     .component("intake", &["database"], Intake)
//!     .component("database", &[], Database)
//!     .build()?;
//! process.start().await?;
//! let report = process.stop().await; // the intake first: what it feeds is still there
//! assert_eq!(report.to_string(), "intake stopped, database stopped");
//! # Ok(())
//! # }
//! ```

mod hook;
mod order;
pub(crate) mod shutdown;

use std::{fmt, time::Duration};

use async_trait::async_trait;

use self::hook::guarded;
pub use self::{
    hook::HookError,
    shutdown::{Shutdown, Signals, shutdown_signal},
};

/// How long a component may take to stop by default.
pub const DEFAULT_STOP_DEADLINE: Duration = Duration::from_secs(10);
/// How long a component may take to initialise, and again to start, by default.
pub const DEFAULT_START_DEADLINE: Duration = Duration::from_mins(1);

/// The error of a component.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A part of a process that starts and stops. Every hook does nothing by default.
///
/// A hook that panics has failed. A hook that still runs at its deadline is dropped and has failed.
#[async_trait]
pub trait Component: Send {
    /// Checks and prepares, before anything is started.
    async fn init(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Starts to work. All its dependencies have started.
    async fn start(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Stops its work. All components that depend on it have stopped. Called only after a successful start.
    async fn stop(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// How long `init`, and again `start`, may take.
    fn start_deadline(&self) -> Duration {
        DEFAULT_START_DEADLINE
    }

    /// How long `stop` may take.
    fn stop_deadline(&self) -> Duration {
        DEFAULT_STOP_DEADLINE
    }
}

/// Components in the order of their dependencies.
pub struct Lifecycle {
    /// In the order in which they start.
    parts: Vec<Part>,
    stop_deadline: Duration,
}

struct Part {
    name: String,
    component: Box<dyn Component>,
    started: bool,
}

/// Components that are not in order yet.
#[derive(Default)]
pub struct LifecycleBuilder {
    parts: Vec<Declared>,
    stop_deadline: Option<Duration>,
}

struct Declared {
    name: String,
    after: Vec<String>,
    component: Box<dyn Component>,
}

/// Why components cannot be ordered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifecycleError {
    /// Two components have one name.
    #[error("there are two components named {0:?}: give each its own name")]
    Duplicate(String),
    /// A component depends on one that does not exist.
    #[error(
        "component {component:?} depends on {dependency:?}, which does not exist: declare it or drop the dependency"
    )]
    Unknown {
        /// The component with the dependency.
        component: String,
        /// The missing dependency.
        dependency: String,
    },
    /// Components depend on each other in a circle.
    #[error("components depend on each other in a circle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// The deadline for stopping all is shorter than the sum of the components' deadlines.
    #[error(
        "{whole:?} to stop everything is less than the {parts:?} that the components may take together: raise it"
    )]
    DeadlineTooShort {
        /// The deadline for all.
        whole: Duration,
        /// The sum of the components' deadlines.
        parts: Duration,
    },
}

/// A start that failed. The components that had started were stopped again.
#[derive(Debug, thiserror::Error)]
#[error("component {component:?} could not {hook}: {error}")]
pub struct StartError {
    /// The component that failed.
    pub component: String,
    /// The hook that failed: `initialise` or `start`.
    pub hook: &'static str,
    /// Why.
    pub error: HookError,
    /// How the components that had started were stopped.
    pub stopped: StopReports,
}

/// How each component stopped, in the order of the stops.
#[derive(Debug, Default)]
pub struct StopReports {
    /// One report per component that had started.
    pub components: Vec<ComponentReport>,
}

/// How one component stopped.
#[derive(Debug)]
pub struct ComponentReport {
    /// Its name.
    pub component: String,
    /// Whether it stopped, or why not.
    pub result: Result<(), HookError>,
}

impl LifecycleBuilder {
    /// Adds a component that starts after its dependencies and stops before them.
    #[must_use]
    pub fn component(
        mut self,
        name: impl Into<String>,
        after: &[&str],
        component: impl Component + 'static,
    ) -> Self {
        let after = after.iter().map(|&name| name.to_owned()).collect();
        self.parts.push(Declared { name: name.into(), after, component: Box::new(component) });
        self
    }

    /// How long stopping all may take, at least the sum of the components' deadlines. Default: that sum.
    #[must_use]
    pub fn stop_deadline(mut self, deadline: Duration) -> Self {
        self.stop_deadline = Some(deadline);
        self
    }

    /// Orders the components: dependencies first, otherwise as they were added.
    ///
    /// # Errors
    /// [`LifecycleError`], which names the components.
    pub fn build(self) -> Result<Lifecycle, LifecycleError> {
        let names: Vec<_> =
            self.parts.iter().map(|part| (part.name.as_str(), part.after.as_slice())).collect();
        let order = order::order(&names)?;
        let sum = self
            .parts
            .iter()
            .fold(Duration::ZERO, |sum, part| sum.saturating_add(part.component.stop_deadline()));
        let stop_deadline = self.stop_deadline.unwrap_or(sum);
        if stop_deadline < sum {
            return Err(LifecycleError::DeadlineTooShort { whole: stop_deadline, parts: sum });
        }
        let mut declared: Vec<_> = self.parts.into_iter().map(Some).collect();
        let parts = order
            .into_iter()
            .filter_map(|place| declared.get_mut(place)?.take())
            .map(|part| Part { name: part.name, component: part.component, started: false })
            .collect();
        Ok(Lifecycle { parts, stop_deadline })
    }
}

impl Lifecycle {
    /// No components yet.
    pub fn builder() -> LifecycleBuilder {
        LifecycleBuilder::default()
    }

    /// The names in the order in which they start.
    pub fn order(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.name.as_str())
    }

    /// How long [`stop`](Self::stop) takes at most.
    pub fn stop_deadline(&self) -> Duration {
        self.stop_deadline
    }

    /// Initialises all, then starts all. If one fails, those that had started are stopped again.
    ///
    /// # Errors
    /// [`StartError`] with the component that failed and how the others stopped.
    pub async fn start(&mut self) -> Result<(), StartError> {
        let Err((component, hook, error)) = self.try_start().await else { return Ok(()) };
        Err(StartError { component, hook, error, stopped: self.stop().await })
    }

    async fn try_start(&mut self) -> Result<(), (String, &'static str, HookError)> {
        for Part { name, component, .. } in &mut self.parts {
            let deadline = component.start_deadline();
            guarded(component.init(), deadline).await.map_err(|error| (name.clone(), "initialise", error))?;
        }
        for Part { name, component, started } in self.parts.iter_mut().filter(|part| !part.started) {
            let deadline = component.start_deadline();
            guarded(component.start(), deadline).await.map_err(|error| (name.clone(), "start", error))?;
            *started = true;
        }
        Ok(())
    }

    /// Stops the started components, the last first. One that fails or takes too long does not keep the
    /// others from stopping. A second stop does nothing.
    pub async fn stop(&mut self) -> StopReports {
        let mut components = Vec::new();
        for Part { name, component, started } in self.parts.iter_mut().rev().filter(|part| part.started) {
            *started = false;
            let deadline = component.stop_deadline();
            let result = guarded(component.stop(), deadline).await;
            if let Err(error) = &result {
                tracing::warn!(component = %name, %error, "a component did not stop as it should");
            }
            components.push(ComponentReport { component: name.clone(), result });
        }
        StopReports { components }
    }
}

impl StopReports {
    /// Whether every component stopped.
    pub fn is_clean(&self) -> bool {
        self.components.iter().all(|report| report.result.is_ok())
    }
}

impl fmt::Display for StopReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, ComponentReport { component, result }) in self.components.iter().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            match result {
                Ok(()) => write!(f, "{separator}{component} stopped")?,
                Err(error) => write!(f, "{separator}{component} failed: {error}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifecycle")
            .field("order", &self.order().collect::<Vec<_>>())
            .field("stop_deadline", &self.stop_deadline)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LifecycleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.parts.iter().map(|part| &part.name).collect();
        f.debug_struct("LifecycleBuilder").field("components", &names).finish_non_exhaustive()
    }
}
