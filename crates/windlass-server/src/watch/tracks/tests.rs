use windlass_core::depth::States;

use super::*;

fn name(text: impl AsRef<str>) -> Name {
    Name::new("queue", text).unwrap()
}

/// The figures of a queue after so many seconds: how many are ready, how many have left, how many failed.
fn mark(seconds: i64, ready: u64, left: u64, retried: u64) -> Mark {
    let depth = Depth { ready, running: 2, scheduled: 1_000, ..Depth::default() };
    let done = Counts { done: left, retried, ..Counts::default() };
    let at = Timestamp::from_ms(seconds * 1_000);
    Mark { at, depth, done, is_uncounted: false, oldest_ready: Some(Duration::from_secs(3)) }
}

/// A history of one queue with a point each five seconds: 20 come and 30 leave in each.
fn drained(points: i64) -> Tracks {
    let mut tracks = Tracks::new(Timestamp::from_ms(0));
    for step in 0..points {
        let n = step.cast_unsigned();
        let mark = mark(step * 5, 1_000_000 - 10 * n, 30 * n, n);
        tracks.note(mark, [(&name("mail"), mark)].into_iter());
    }
    tracks
}

#[test]
fn rates_and_forecast_follow_from_depths_and_ends() {
    let tracks = drained(61);
    let now = mark(300, 1_000_000 - 600, 1_800, 60);
    for queue in [None, Some(name("mail"))] {
        let (speed, forecast) = tracks.outlook(queue.as_ref(), now);
        let figures = [speed.came, speed.left, speed.done, speed.failed];
        assert_eq!(figures, [Some(4.0), Some(6.0), Some(6.0), Some(0.2)]);
        assert_eq!(forecast.to_string(), "clears in about 6 d", "scheduled tasks are not in the backlog");
    }
}

#[test]
fn work_that_is_not_counted_gives_neither_rates_nor_a_forecast() {
    let mut tracks = drained(61);
    let queue = name("mail");
    let unknown = Mark { is_uncounted: true, ..mark(305, 1_000_000, 1_800, 60) };
    let note = |tracks: &mut Tracks, mark: Mark| tracks.note(mark, [(&queue, mark)].into_iter());
    note(&mut tracks, unknown);
    assert_eq!(tracks.outlook(Some(&queue), unknown), (Speed::default(), Forecast::TooLittleKnown));
    let nothing = Mark { depth: Depth::default(), ..unknown };
    assert_eq!(tracks.outlook(Some(&queue), nothing).1, Forecast::Empty);
    // Then all work is counted again: rates begin anew, and do not span what is not known.
    for step in 0_i64..7 {
        let n = step.cast_unsigned();
        note(&mut tracks, mark(310 + step * 5, 500_000 - 10 * n, 1_800 + 30 * n, 60));
        let rates =
            tracks.outlook(Some(&queue), mark(310 + step * 5, 500_000 - 10 * n, 1_800 + 30 * n, 60)).0;
        assert!(rates.left.is_none_or(|left| (left - 6.0).abs() < 0.001), "{rates:?}");
        assert_eq!(rates.left.is_some(), step >= 2, "{step}");
    }
    let points = tracks.points(Some(&queue), Some(Timestamp::from_ms(300_000)));
    let rates: Vec<_> = points.iter().map(|point| (point.in_per_s, point.out_per_s)).collect();
    assert_eq!(rates[..4], [(Some(4.0), Some(6.0)), (None, None), (None, None), (Some(4.0), Some(6.0))]);
}

#[test]
fn a_new_queue_has_no_rates() {
    let mut tracks = drained(1);
    let (speed, forecast) = tracks.outlook(Some(&name("new")), mark(0, 5, 0, 0));
    assert_eq!((speed, forecast), (Speed::default(), Forecast::TooLittleKnown));
    tracks.note(mark(5, 5, 0, 0), [(&name("new"), mark(5, 5, 0, 0))].into_iter());
    assert_eq!(tracks.outlook(Some(&name("new")), mark(5, 5, 0, 0)).0, Speed::default());
}

#[test]
fn a_backlog_that_is_counted_to_a_bound_gives_no_forecast() {
    let tracks = drained(61);
    let mut now = mark(300, 10_000, 1_800, 60);
    now.depth.at_least = [State::Ready].into_iter().collect::<States>();
    let (_, forecast) = tracks.outlook(None, now);
    assert_eq!(forecast, Forecast::TooLittleKnown);
    let mut scheduled = mark(300, 1_000_000 - 600, 1_800, 60);
    scheduled.depth.at_least = [State::Scheduled].into_iter().collect::<States>();
    assert_ne!(tracks.outlook(None, scheduled).1, Forecast::TooLittleKnown);
}

#[test]
fn fine_points_last_an_hour_and_coarse_ones_a_day() {
    let steps = 26 * 720;
    let points = drained(steps).points(Some(&name("mail")), None);
    let last = points.last().unwrap();
    let age = |point: &SeriesPoint| last.at.since(point.at);
    assert_eq!(points.iter().filter(|point| age(point) < Duration::from_hours(1)).count(), FINE);
    assert!((COARSE - 62..=COARSE).contains(&(points.len() - FINE)), "{}", points.len());
    assert_eq!(age(&points[0]), Duration::from_mins(COARSE as u64 - 1) + Duration::from_secs(55));
    assert!(points.windows(2).all(|pair| pair[0].at < pair[1].at));
    assert_eq!((points[0].in_per_s, last.in_per_s, last.out_per_s), (None, Some(4.0), Some(6.0)));
    assert_eq!(points[5].in_per_s, Some(4.0), "also a minute apart");
}

#[test]
fn a_series_begins_where_it_is_asked_to() {
    let from = Timestamp::from_ms(250_000);
    let points = drained(61).points(None, Some(from));
    assert_eq!((points.len(), points[0].at, points[0].in_per_s), (11, from, Some(4.0)));
    assert_eq!(drained(61).points(Some(&name("other")), None), []);
}

#[test]
fn the_backlogs_of_an_hour_have_about_a_point_a_minute() {
    let queue = name("mail");
    let tracks = drained(26 * 720);
    let last = tracks.points(Some(&queue), None).pop().unwrap();
    let from = last.at.before(Duration::from_hours(1));
    let points = &tracks.backlogs(from, 60)[&queue];
    assert!((59..=61).contains(&points.len()), "{}", points.len());
    assert_eq!(points.last(), Some(&(last.at, last.backlog)));
    assert!(points[0].0 >= from && points[0].0.since(from) <= Duration::from_mins(1));
    assert_eq!(drained(5).backlogs(Timestamp::from_ms(0), 60)[&queue].len(), 5, "a short history is whole");
    assert_eq!(drained(1).backlogs(Timestamp::from_ms(0), 60)[&queue].len(), 1);
}

#[test]
fn an_idle_queue_gives_its_place_to_a_new_one() {
    let names: Vec<Name> = (0..=QUEUES_MAX).map(|n| name(format!("q{n:03}"))).collect();
    let mut tracks = Tracks::new(Timestamp::from_ms(0));
    let note = |tracks: &mut Tracks, seconds: i64, ready: u64| {
        let still = mark(seconds, 1, 0, 0);
        let moves = mark(seconds, ready, 0, 0);
        let marks = names.iter().map(|name| (name, if *name == names[7] { still } else { moves }));
        tracks.note(moves, marks);
    };
    for step in 0..=720 {
        note(&mut tracks, step * 5, step.cast_unsigned());
        let is_last_known = tracks.queues.contains_key(&names[QUEUES_MAX]);
        assert_eq!(is_last_known, step == 720, "after {step} points");
    }
    assert!(!tracks.queues.contains_key(&names[7]) && tracks.queues.len() == QUEUES_MAX);
}

#[test]
fn queues_that_are_gone_are_forgotten() {
    let mut tracks = drained(5);
    tracks.keep(|queue| *queue != name("mail"));
    assert_eq!(tracks.points(Some(&name("mail")), None), []);
}
