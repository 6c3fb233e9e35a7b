//! Single judgements, and simulations of processes that die.

use std::collections::BTreeMap;

use super::*;

fn victim(id: i64, crashes: u32, group: i64) -> Victim {
    Victim { id: TaskId::from_raw(id), crashes, group: Group::from_stored(group) }
}

fn suspect(place: usize, alone: bool) -> Fate {
    Fate::Suspect { place, alone }
}

#[test]
fn after_one_crash_tasks_run_again_like_any_others() {
    let fates = judge(&[victim(1, 0, 0), victim(2, 0, 0)], false, &Rules::default());
    assert_eq!(fates, [Fate::Again; 2]);
    assert_eq!(judge(&[victim(1, 0, 0)], true, &Rules::default()), [Fate::Again]);
}

#[test]
fn the_tasks_of_a_second_crash_are_split_in_two() {
    let victims: Vec<_> = (1..=5).map(|id| victim(id, 1, 0)).collect();
    let fates = judge(&victims, false, &Rules::default());
    assert_eq!(
        fates,
        [suspect(0, false), suspect(0, false), suspect(0, false), suspect(1, false), suspect(1, false)]
    );
    assert_eq!(groups(&fates), 2);
}

#[test]
fn a_group_is_split_apart_from_new_suspects_and_neighbours() {
    let victims = [
        victim(1, 0, 0),
        victim(2, 1, 0),
        victim(3, 4, 9),
        victim(4, 1, 0),
        victim(5, 4, 9),
        victim(6, 2, -8),
    ];
    let fates = judge(&victims, false, &Rules::default());
    assert_eq!(
        fates,
        // The new ones first, then by the stored numbers: -8 before 9.
        [
            Fate::Again,
            suspect(0, true),
            suspect(3, true),
            suspect(1, true),
            suspect(4, true),
            suspect(2, true)
        ]
    );
}

#[test]
fn only_a_crash_alone_is_a_proof() {
    let rules = Rules { max_crashes: 3, ..Rules::default() };
    assert_eq!(judge(&[victim(1, 2, -7)], true, &rules), [Fate::Dead]);
    assert_eq!(judge(&[victim(1, 20, -7)], false, &rules), [suspect(0, true)], "it had company");
    assert_eq!(judge(&[victim(1, 1, 0)], true, &rules), [suspect(0, true)]);
    let rules = Rules { max_crashes: 1, ..Rules::default() };
    assert_eq!(judge(&[victim(1, 0, 0)], true, &rules), [Fate::Dead]);
    assert_eq!(judge(&[victim(1, 0, 0), victim(2, 0, 0)], false, &rules), [Fate::Again; 2]);
}

#[test]
fn a_worker_runs_one_group_until_its_time_has_passed() {
    let rules = Rules::default();
    let held = |group, until| HeldGroup {
        group: Group::from_stored(group),
        crashes: 2,
        quiet_until: Timestamp::from_ms(until),
    };
    let now = Timestamp::from_ms(100);
    assert_eq!(turn(&[], 0, now, &rules), Turn::Next { is_empty: true });
    assert_eq!(turn(&[], 3, now, &rules), Turn::Next { is_empty: false });
    assert_eq!(turn(&[held(4, 101)], 3, now, &rules), Turn::Only(vec![Group::from_stored(4)]));
    assert_eq!(turn(&[held(4, 100)], 3, now, &rules), Turn::Next { is_empty: false });
    assert_eq!(turn(&[held(-4, 101)], 1, now, &rules), Turn::Isolated);
    assert_eq!(turn(&[held(-4, 100)], 1, now, &rules), Turn::Next { is_empty: false });
    assert_eq!(
        turn(&[held(-4, 101)], 2, now, &rules),
        Turn::Only(vec![Group::from_stored(-4)]),
        "it has company"
    );
    assert_eq!(quiet_until(now, 3), Timestamp::from_ms(30_100));
}

#[test]
fn an_empty_worker_takes_the_last_chance_first() {
    let rules = Rules::default();
    let waiting =
        [(5, 2), (-7, 2), (3, 4), (-6, 2)].map(|(group, crashes)| (Group::from_stored(group), crashes));
    let choose = |is_empty| Turn::Next { is_empty }.choose(&waiting, &rules);
    assert_eq!(choose(true), [Group::from_stored(-6)]);
    assert_eq!(choose(false), [Group::from_stored(3)]);
    assert_eq!(Turn::Isolated.choose(&waiting, &rules), []);
    let patient = Rules { max_crashes: 4, ..Rules::default() };
    assert_eq!(Turn::Next { is_empty: false }.choose(&waiting[1..2], &patient), [Group::from_stored(-7)]);
}

/// One worker with a number of slots. It is started again whenever a killer starts; every other task ends.
struct Story {
    waiting: BTreeMap<i64, (u32, Group)>,
    killers: Vec<i64>,
    dead: Vec<i64>,
    done: usize,
    restarts: u32,
    rounds: u32,
    numbers: i64,
}

impl Story {
    fn run(tasks: i64, killers: &[i64], slots: usize) -> Self {
        let waiting = (1..=tasks).map(|id| (id, (0, Group::default()))).collect();
        let mut story = Self {
            waiting,
            killers: killers.to_vec(),
            dead: Vec::new(),
            done: 0,
            restarts: 0,
            rounds: 0,
            numbers: 0,
        };
        while !story.waiting.is_empty() {
            story.round(slots);
        }
        story
    }

    /// An empty worker claims once. The tasks end, or one kills the process.
    fn round(&mut self, slots: usize) {
        let rules = Rules::default();
        self.rounds += 1;
        let groups: Vec<_> = self
            .waiting
            .values()
            .filter(|(crashes, _)| is_suspect(*crashes))
            .map(|(crashes, group)| (*group, *crashes))
            .collect();
        let chosen = turn(&[], 0, Timestamp::from_ms(0), &rules).choose(&groups, &rules);
        let is_chosen = |(crashes, group): &(u32, Group)| is_suspect(*crashes) && chosen.contains(group);
        let mut taken: Vec<Victim> = Vec::new();
        let suspects = self.waiting.iter().filter(|(_, task)| is_chosen(task));
        let plain = self.waiting.iter().filter(|(_, (crashes, _))| !is_suspect(*crashes));
        let alone = suspects.clone().any(|(_, (crashes, group))| is_last_chance(*crashes, *group, &rules));
        let most = if alone { 1 } else { slots };
        for (id, (crashes, group)) in suspects.chain(plain).take(most) {
            taken.push(Victim { id: TaskId::from_raw(*id), crashes: *crashes, group: *group });
        }
        if !taken.iter().any(|task| self.killers.contains(&task.id.raw())) {
            self.done += taken.len();
            for task in &taken {
                self.waiting.remove(&task.id.raw());
            }
            return;
        }
        self.restarts += 1;
        let fates = judge(&taken, taken.len() == 1, &rules);
        for (task, fate) in taken.iter().zip(&fates) {
            let crashes = task.crashes + 1;
            match fate {
                Fate::Again => drop(self.waiting.insert(task.id.raw(), (crashes, Group::default()))),
                Fate::Suspect { place, alone } => {
                    let group = Group::new(self.numbers + 1 + *place as i64, *alone);
                    self.waiting.insert(task.id.raw(), (crashes, group));
                }
                Fate::Dead => {
                    self.waiting.remove(&task.id.raw());
                    self.dead.push(task.id.raw());
                }
            }
        }
        self.numbers += super::groups(&fates) as i64;
    }
}

#[test]
fn one_killer_among_a_thousand_costs_few_restarts() {
    for killer in [1, 2, 250, 500, 501, 777, 1000] {
        let story = Story::run(1000, &[killer], 1000);
        assert_eq!((story.done, &story.dead), (999, &vec![killer]));
        assert!(story.restarts <= 12, "{} restarts for {killer}", story.restarts);
        assert!(story.rounds <= 25, "{} rounds for {killer}", story.rounds);
    }
}

#[test]
fn two_killers_among_a_thousand_are_both_found() {
    for killers in [[1, 2], [1, 1000], [499, 500], [250, 750], [333, 334]] {
        let story = Story::run(1000, &killers, 1000);
        assert_eq!(story.done, 998);
        let mut dead = story.dead.clone();
        dead.sort_unstable();
        assert_eq!(dead, killers);
        assert!(story.restarts <= 25, "{} restarts for {killers:?}", story.restarts);
    }
}

#[test]
fn a_killer_in_a_backlog_with_few_slots_is_found() {
    for slots in [2, 3, 10, 100] {
        let story = Story::run(1000, &[400], slots);
        assert_eq!((story.done, &story.dead), (999, &vec![400]));
        assert!(story.restarts <= 25, "{} restarts with {slots} slots", story.restarts);
    }
}

#[test]
fn a_lone_killer_dies_after_max_crashes() {
    let story = Story::run(1, &[1], 10);
    assert_eq!((story.restarts, story.dead), (3, vec![1]));
}
