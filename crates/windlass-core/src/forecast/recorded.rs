//! The forecast on series that real servers recorded. `recorded/README.md` says how.

use super::*;

/// A recorded series, the oldest point first.
fn recorded(text: &str) -> Vec<Point> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let point = |row: &str| {
        let numbers: Vec<i64> = row.split(',').map(|number| number.parse().unwrap()).collect();
        let [ms, backlog, came, left] = numbers[..] else { panic!("{row}") };
        Point { at: Timestamp::from_ms(ms), backlog: u64::try_from(backlog).unwrap(), came, left }
    };
    rows.map(point).collect()
}

fn drain() -> Vec<Point> {
    recorded(include_str!("recorded/drain.csv"))
}

fn burst() -> Vec<Point> {
    recorded(include_str!("recorded/burst.csv"))
}

fn growing() -> Vec<Point> {
    recorded(include_str!("recorded/growing.csv"))
}

fn noisy() -> Vec<Point> {
    recorded(include_str!("recorded/noisy.csv"))
}

/// The forecast that a viewer saw at each point from this second to that one, with the second.
fn seen(series: &[Point], from_s: i64, to_s: i64) -> Vec<(i64, Forecast)> {
    let second = |point: &Point| point.at.as_ms() / 1_000;
    let at = |n: usize| (second(&series[n]), forecast(&series[..=n]));
    (0..series.len()).map(at).filter(|(second, _)| (from_s..=to_s).contains(second)).collect()
}

/// What a viewer read at the first point after this second.
fn said(series: &[Point], at_s: i64) -> String {
    seen(series, at_s, i64::MAX)[0].1.to_string()
}

/// The largest error of the forecasts between two seconds, as a share of the time that was in fact left.
fn largest_error(series: &[Point], (from_s, to_s): (i64, i64), empty_s: f64) -> f64 {
    let error = |(at, forecast): (i64, Forecast)| {
        let Forecast::In(left) = forecast else { panic!("at {at} s: {forecast}") };
        let true_s = empty_s - at as f64;
        // Points are five seconds apart: when it was empty is known no better.
        ((left.as_secs_f64() - true_s).abs() - 5.0).max(0.0) / true_s
    };
    seen(series, from_s, to_s).into_iter().map(error).fold(0.0, f64::max)
}

/// The second at which a series has no more backlog than this, after the second `from_s`.
fn down_to(series: &[Point], backlog: u64, from_s: i64) -> f64 {
    let is_down = |point: &&Point| point.at.as_ms() > from_s * 1_000 && point.backlog <= backlog;
    series.iter().find(is_down).unwrap().at.as_ms() as f64 / 1_000.0
}

#[test]
fn a_series_that_has_just_begun_says_too_little() {
    for series in [drain(), growing(), noisy()] {
        for (at, forecast) in seen(&series, 1, 27) {
            assert_eq!(forecast, Forecast::TooLittleKnown, "at {at} s");
        }
    }
}

#[test]
fn a_recorded_drain_is_told_from_its_first_minute_on() {
    let series = drain();
    let sentences = [40, 90, 155, 225, 256].map(|at| said(&series, at));
    assert_eq!(
        sentences,
        [
            "clears in about 4 min",
            "clears in about 3 min",
            "clears in about 97 s",
            "clears in about 29 s",
            "nothing to do"
        ]
    );
}

#[test]
fn a_recorded_drain_ends_when_it_was_said_to() {
    let series = drain();
    let empty_s = down_to(&series, 0, 60);
    assert!(largest_error(&series, (35, 127), empty_s) < 1.0 / 3.0);
    assert!(largest_error(&series, (127, 250), empty_s) < 0.1, "once half of it is done");
}

#[test]
fn tasks_that_came_at_once_are_no_rate() {
    // All 5,000 tasks came in the first five seconds.
    for (at, forecast) in seen(&drain(), 1, 254) {
        assert_ne!(forecast.kind(), "not_at_this_rate", "at {at} s");
    }
    for (at, forecast) in seen(&burst(), 90, 224) {
        assert_ne!(forecast.kind(), "not_at_this_rate", "at {at} s");
    }
}

#[test]
fn a_recorded_burst_is_over_when_it_was_said_to_be() {
    let series = burst();
    assert_eq!(said(&series, 91), "too little known yet");
    assert_eq!(said(&series, 121), "clears in about 99 s");
    let over_s = down_to(&series, 5, 100);
    assert!(largest_error(&series, (121, 160), over_s) < 1.0 / 3.0);
    assert!(largest_error(&series, (160, 215), over_s) < 0.1, "once half of it is done");
}

#[test]
fn a_backlog_that_stands_is_not_said_to_clear() {
    // After the burst five tasks run at all times: as many come as leave.
    for (at, forecast) in seen(&burst(), 230, 300) {
        assert_ne!(forecast.kind(), "in", "at {at} s: {forecast}");
    }
    assert_eq!(said(&burst(), 290), "will not clear at this rate: 5.5/s come in, 5.5/s leave");
}

#[test]
fn a_recorded_growth_is_never_said_to_clear() {
    let series = growing();
    for (at, forecast) in seen(&series, 30, 300) {
        let Forecast::NotAtThisRate(Rates { came_per_s, left_per_s }) = forecast else {
            panic!("{at} s: {forecast}")
        };
        assert!(
            (14.0..16.0).contains(&came_per_s) && (9.0..10.5).contains(&left_per_s),
            "at {at} s: {forecast}"
        );
    }
}

#[test]
fn a_recorded_steady_state_is_not_promised_an_end() {
    let seen = seen(&noisy(), 35, 300);
    let promised: Vec<_> = seen.iter().filter(|(_, forecast)| forecast.kind() == "in").collect();
    // The backlog wanders between 200 and 370 and never clears. Where it falls for a minute, chance looks like
    // a trend.
    assert!(promised.len() * 6 < seen.len(), "{promised:?}");
    for (at, forecast) in promised {
        let Forecast::In(left) = forecast else { continue };
        assert!(*left > Duration::from_secs(100), "at {at} s: {forecast}");
    }
}

#[test]
fn an_idle_queue_has_nothing_to_do() {
    for (at, forecast) in seen(&recorded(include_str!("recorded/idle.csv")), 0, 300) {
        assert_eq!(forecast, Forecast::Empty, "at {at} s");
    }
}
