//! The overview: what goes on, and what needs attention.

use maud::{Markup, html};
use windlass_core::{Depth, State};

use super::{
    super::{
        parts::{count, state, top},
        recent::Sheet,
        viewer::Ask,
    },
    part_failed,
};
use crate::operations::Result;

pub(in super::super) async fn overview(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let queues = ask.operations().queues().await?.queues;
    let mut whole = Depth::default();
    for kind in queues.iter().flat_map(|queue| &queue.kinds) {
        whole.add(&kind.depth);
    }
    let states = [State::Ready, State::Running, State::Scheduled, State::Waiting, State::Held, State::Dead];
    let body = html! {
        (top(&html! { "Overview" }, &html! {}))
        div.grid {
            @for of in states {
                a.card href=(viewer.link(&format!("/tasks?state={}", of.as_str()))) { b { (count(whole.count(of).n)) } (state(of)) }
            }
        }
        (workers(ask).await)
    };
    Ok(Sheet::new("Overview", body))
}

async fn workers(ask: &Ask) -> Markup {
    match ask.operations().workers().await {
        Ok(workers) => {
            let live = workers.workers.iter().filter(|worker| worker.live);
            let (slots, busy) = live.clone().fold((0, 0), |(slots, busy), worker| {
                (slots + u64::from(worker.max_capacity), busy + u64::from(worker.in_flight))
            });
            html! { p { a href=(ask.viewer.link("/workers")) { (count(live.count() as u64)) " live workers" } ", " (count(busy)) " of " (count(slots)) " slots busy" } }
        }
        Err(error) => part_failed("Workers", &error),
    }
}
