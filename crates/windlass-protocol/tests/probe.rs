use stateright::{Checker, Model, HasDiscoveries};
use windlass_protocol::{model::Checked, protocol::*};
fn go(name: &str, protocol: Protocol, scenario: Scenario) {
    let t = std::time::Instant::now();
    let c = Checked{protocol, scenario}.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).timeout(std::time::Duration::from_secs(60)).spawn_bfs().join();
    println!("{name}: {} unique, {} depth, done {} {:?} {:?}", c.unique_state_count(), c.max_depth(), c.is_done(), t.elapsed(), c.discoveries().keys().collect::<Vec<_>>());
    for (k, p) in c.discoveries() { println!("  {k}: {:?}", p.into_actions()); }
}
fn job(j: usize) -> Spec { Spec{job: Some(j), ..Spec::default()} }
fn step(j: Option<usize>) -> Spec { Spec{job: j, is_step: true, ..Spec::default()} }
fn late(s: Spec) -> Spec { Spec{is_late: true, ..s} }
#[test]
fn probe() {
    let p = Protocol::default();

    let one = Scenario{ tasks: vec![late(job(0)), job(0)], limits: [Some(1), None], ..Scenario::default()};
    let exp = Scenario{ expires: true, ..one.clone() };
    let lim = Scenario{ tasks: vec![job(0), job(0)], limits: [Some(2), None], operation: Some(Operation::SetLimit(0, 1)), ..Scenario::default()};
    let wf = Scenario{ tasks: vec![late(step(None)), step(None)], ..Scenario::default()};
    go("V no worker lock", Protocol{locks_worker: false, ..p}, exp.clone());
    go("V count before lock", Protocol{counts_after_lock: false, ..p}, one.clone());
    go("V by id", Protocol{places_steps: false, ..p}, wf.clone());
    go("V no guard", Protocol{guards_updates: false, ..p}, lim.clone());
    go("V demote skips", Protocol{demotion_waits: false, ..p}, lim.clone());
    let make = Scenario{ tasks: vec![late(job(0)), late(job(1)), job(0), job(1)], operation: Some(Operation::SetLimit(1, 2)), ..Scenario::default()};
    go("F make", p, make.clone());
    go("F make fixed", Protocol{makes_jobs_first: true, ..p}, Scenario{is_coarse: false, ..make.clone()});
    let hi = Spec{priority: 1, ..job(0)};
    let cancel = Scenario{ tasks: vec![job(0), hi], limits: [Some(2), None], operation: Some(Operation::Cancel(3)), ..Scenario::default()};
    go("F cancel", p, cancel.clone());
    go("F cancel fixed", Protocol{promotes_by_id: true, ..p}, cancel.clone());
    let lanes = Scenario{ tasks: vec![job(0)], limits: [Some(1), None], serves: [0, 1], comes_later: [false, true], ..Scenario::default()};
    go("F lane came", p, lanes.clone());
    go("F lane came fixed", Protocol{looks_at_lanes_again: true, ..p}, lanes.clone());
    let lanes = Scenario{ tasks: vec![job(0), Spec{lane: 1, ..job(0)}], limits: [Some(1), None], serves: [1, 2], expires: true, ..Scenario::default()};
    go("F lane went", p, lanes.clone());
    go("F lane went fixed", Protocol{looks_at_lanes_again: true, ..p}, lanes.clone());
    let all = Scenario{ tasks: vec![late(job(0)), late(step(None)), job(0), step(Some(1)), job(1)], limits: [Some(1), Some(2)], operation: Some(Operation::SetLimit(1, 1)), is_coarse: true, ..Scenario::default()};
    go("all", p, all.clone());
    go("limit falls, expires", p, Scenario{expires: true, ..lim.clone()});
    go("limit falls, losses", p, Scenario{losses: 1, ..lim.clone()});
    go("all exp", p, Scenario{expires: true, ..all.clone()});
}
