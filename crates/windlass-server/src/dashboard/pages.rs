//! Every page: its address, its place in the menu, and who draws it.

use maud::{Markup, html};

use super::{
    parts,
    recent::Sheet,
    viewer::{Ask, Viewer},
};
use crate::{
    api::{ErrorCode, ErrorDetail},
    operations::Result,
};

mod access;
mod consumers;
mod dead;
mod jobs;
mod overview;
mod queues;
mod runs;
mod schedules;
mod store;
mod task;
mod tasks;
mod workers;
mod workflows;

/// A page of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Overview,
    Queues,
    Queue,
    Tasks,
    Task,
    Dead,
    Runs,
    Jobs,
    Job,
    Workflows,
    Workflow,
    Schedules,
    Schedule,
    Workers,
    Consumers,
    Access,
    Store,
}

/// Every page.
pub(crate) const PAGES: [Page; 17] = [
    Page::Overview,
    Page::Queues,
    Page::Queue,
    Page::Tasks,
    Page::Task,
    Page::Dead,
    Page::Runs,
    Page::Jobs,
    Page::Job,
    Page::Workflows,
    Page::Workflow,
    Page::Schedules,
    Page::Schedule,
    Page::Workers,
    Page::Consumers,
    Page::Access,
    Page::Store,
];

impl Page {
    /// The pages of the menu, in its order.
    pub(super) const MENU: [Self; 12] = [
        Self::Overview,
        Self::Queues,
        Self::Tasks,
        Self::Dead,
        Self::Runs,
        Self::Jobs,
        Self::Workflows,
        Self::Schedules,
        Self::Workers,
        Self::Consumers,
        Self::Access,
        Self::Store,
    ];

    /// The address, as a route.
    pub(crate) fn route(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Queues => "/queues",
            Self::Queue => "/queues/{name}",
            Self::Tasks => "/tasks",
            Self::Task => "/tasks/{id}",
            Self::Dead => "/dead",
            Self::Runs => "/runs",
            Self::Jobs => "/jobs",
            Self::Job => "/jobs/{name}",
            Self::Workflows => "/workflows",
            Self::Workflow => "/workflows/{name}",
            Self::Schedules => "/schedules",
            Self::Schedule => "/schedules/{name}",
            Self::Workers => "/workers",
            Self::Consumers => "/consumers",
            Self::Access => "/access",
            Self::Store => "/store",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Queues | Self::Queue => "Queues",
            Self::Tasks | Self::Task => "Tasks",
            Self::Dead => "Dead",
            Self::Runs => "Bulk runs",
            Self::Jobs | Self::Job => "Jobs",
            Self::Workflows | Self::Workflow => "Workflows",
            Self::Schedules | Self::Schedule => "Schedules",
            Self::Workers => "Workers",
            Self::Consumers => "Consumers",
            Self::Access => "Access",
            Self::Store => "Store",
        }
    }

    /// The entry of the menu that a page belongs to.
    pub(super) fn section(self) -> Self {
        match self {
            Self::Queue => Self::Queues,
            Self::Job => Self::Jobs,
            Self::Task => Self::Tasks,
            Self::Schedule => Self::Schedules,
            Self::Workflow => Self::Workflows,
            other => other,
        }
    }

    pub(super) async fn draw(self, ask: &Ask) -> Result<Sheet> {
        match self {
            Self::Overview => overview::overview(ask).await,
            Self::Queues => queues::queues(ask).await,
            Self::Queue => queues::queue(ask).await,
            Self::Tasks => tasks::tasks(ask).await,
            Self::Task => task::task(ask).await,
            Self::Dead => dead::dead(ask).await,
            Self::Runs => runs::runs(ask).await,
            Self::Jobs => jobs::jobs(ask).await,
            Self::Job => jobs::job(ask).await,
            Self::Workflows => workflows::workflows(ask).await,
            Self::Workflow => workflows::workflow(ask).await,
            Self::Schedules => schedules::schedules(ask).await,
            Self::Schedule => schedules::schedule(ask).await,
            Self::Workers => workers::workers(ask).await,
            Self::Consumers => consumers::consumers(ask).await,
            Self::Access => access::access(ask).await,
            Self::Store => store::store(ask).await,
        }
    }
}

/// The page of a failure.
pub(super) fn error(viewer: &Viewer, error: &ErrorDetail) -> Sheet {
    let title = if error.code == ErrorCode::NotFound { "Not found" } else { "This did not work" };
    Sheet::new(
        title,
        html! {
            (parts::top(&html! { (title) }, &html! {}))
            (error_text(error))
            p { a href=(viewer.link("/")) { "To the overview" } }
        },
    )
}

pub(super) fn error_text(error: &ErrorDetail) -> Markup {
    html! {
        div.why.bad role="alert" {
            p { strong { (error.message) } }
            @if let Some(hint) = &error.hint { p { (hint) } }
        }
    }
}

/// A panel for a part of a page whose look-up failed, so that the rest is still shown.
fn part_failed(what: &str, error: &ErrorDetail) -> Markup {
    html! { div.why.warn { p { strong { (what) " cannot be shown: " } (error.message) } } }
}
