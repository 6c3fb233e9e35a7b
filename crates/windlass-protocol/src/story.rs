//! Prints a counterexample in words.

use stateright::{Model, Path};

use crate::{
    model::{Action, Checked},
    state::{ADMISSIONS, GHOST, LEADER, OPERATOR, SWEEP, State, Statement},
};

/// The actions of a path, one line each.
pub fn story(model: &Checked, path: Path<State, Action>) -> String {
    let mut lines = Vec::new();
    for (before, action) in path.into_vec() {
        let Some(action) = action else { break };
        let after = model.next_state(&before, action);
        let who = match action {
            Action::Step(who) | Action::Admit(who) => Some(who),
            Action::Operate => Some(OPERATOR),
            Action::LookAtLanes => Some(LEADER),
            Action::Sweep(_) => Some(SWEEP),
            Action::Claim { worker, .. }
            | Action::Settle { worker, .. }
            | Action::SettleAgain(worker)
            | Action::Unclaim(worker) => Some(worker),
            Action::ArriveLate { .. } => Some(GHOST),
            _ => None,
        };
        let waits =
            who.and_then(|who| after?.txns[who].waits_for).map(|(row, _)| format!(", waits for {row:?}"));
        let waits = waits.unwrap_or_default();
        lines.push(match action {
            Action::Step(who) => format!("{}: {}{waits}", name(who), statement(&before, who)),
            Action::Admit(who) => format!("{}: TodoTake", name(who)),
            action => format!("{action:?}{waits}"),
        });
    }
    lines.join("\n")
}

fn statement(before: &State, who: usize) -> String {
    let (statement, again) = (before.txns[who].next, before.txns[who].snapshot.is_some());
    match statement {
        Statement::Commit => "commit".to_owned(),
        statement if again => format!("{statement:?} goes on"),
        statement => format!("{statement:?}"),
    }
}

fn name(who: usize) -> String {
    match who {
        GHOST => "lost request".to_owned(),
        SWEEP => "sweep".to_owned(),
        OPERATOR => "operator".to_owned(),
        LEADER => "leader".to_owned(),
        who if who == ADMISSIONS[0] => "admission A".to_owned(),
        who if who == ADMISSIONS[1] => "admission B".to_owned(),
        worker => format!("worker {worker}"),
    }
}
