use super::*;

const EVERY: i64 = 5;

/// A series with a point each five seconds: `moves` says how many come and leave in each step.
fn series(backlog: i64, steps: i64, mut moves: impl FnMut(i64) -> (i64, i64)) -> Vec<Point> {
    let (mut came, mut left) = (0, 0);
    (0..=steps)
        .map(|step| {
            if step > 0 {
                let (more, fewer) = moves(step);
                came += more;
                left += fewer.min(backlog + came - left);
            }
            let at = Timestamp::from_ms(step * EVERY * 1_000);
            Point { at, backlog: u64::try_from(backlog + came - left).unwrap(), came, left }
        })
        .collect()
}

fn said(series: &[Point]) -> String {
    forecast(series).to_string()
}

/// Numbers from -5 to 5 that look random.
fn noise(step: i64) -> i64 {
    (step * 7_919 % 104_729 * 31 % 11) - 5
}

#[test]
fn a_steady_drain_says_how_long() {
    let drains = series(10_000, 60, |_| (200, 250));
    assert_eq!(drains.last().unwrap().backlog, 7_000);
    assert_eq!(said(&drains), "clears in about 12 min");
}

#[test]
fn growth_says_both_rates() {
    let grows = series(1_000, 60, |_| (200, 175));
    assert_eq!(said(&grows), "will not clear at this rate: 40/s come in, 35/s leave");
    assert_eq!(
        said(&series(1_000, 60, |_| (200, 0))),
        "will not clear at this rate: 40/s come in, none leave"
    );
}

#[test]
fn an_empty_backlog_needs_no_series() {
    assert_eq!(forecast(&series(0, 0, |_| (0, 0))), Forecast::Empty);
    assert_eq!(said(&series(100, 60, |_| (0, 50))), "nothing to do");
}

#[test]
fn a_short_series_says_nothing() {
    assert_eq!(forecast(&[]), Forecast::TooLittleKnown);
    assert_eq!(said(&series(1_000, 5, |_| (0, 50))), "too little known yet");
    assert_eq!(said(&series(1_000, 6, |_| (0, 50))), "clears in about 70 s");
}

#[test]
fn noise_is_no_trend() {
    let noisy = series(1_000, 60, |step| (50 + noise(step), 50 + noise(step + 3)));
    let Forecast::NotAtThisRate(rates) = forecast(&noisy) else { panic!("{}", said(&noisy)) };
    assert!((9.0..11.0).contains(&rates.came_per_s), "{rates:?}");
}

#[test]
fn a_slow_drain_shows_through_noise_over_a_longer_span() {
    let noisy = series(10_000, 60, |step| (50 + noise(step), 55 + noise(step + 3)));
    assert!(!Moved::within(&noisy, SPANS[0]).unwrap().is_clear());
    let Forecast::In(left) = forecast(&noisy) else { panic!("{}", said(&noisy)) };
    let minutes = left.as_secs() / 60;
    assert!((120..220).contains(&minutes), "10,000 at about one a second: {minutes} min");
}

#[test]
fn bursts_each_minute_are_evened_out() {
    let every_minute = |step: i64| (if step % 12 == 0 { 600 } else { 0 }, 60);
    for steps in 48..60 {
        let bursts = series(6_000, steps, every_minute);
        let Forecast::In(left) = forecast(&bursts) else { panic!("{steps}: {}", said(&bursts)) };
        assert!(left > Duration::from_mins(5), "{steps}: {left:?} counts no burst");
    }
}

#[test]
fn a_worker_that_dies_is_seen_within_a_minute() {
    let dies = |step| (50, if step < 48 { 100 } else { 40 });
    assert_eq!(said(&series(20_000, 47, dies)), "clears in about 29 min");
    assert_eq!(said(&series(20_000, 60, dies)), "will not clear at this rate: 10/s come in, 8.0/s leave");
}

#[test]
fn a_queue_where_nothing_moves_is_not_cleared() {
    assert_eq!(said(&series(7, 20, |_| (0, 0))), "will not clear at this rate: none come in, none leave");
    assert_eq!(said(&series(7, 8, |_| (0, 0))), "too little known yet");
}

#[test]
fn a_few_tasks_are_no_trend() {
    let few = series(100, 60, |step| (0, i64::from(step == 10 || step == 30)));
    assert_eq!(said(&few), "too little known yet");
}

#[test]
fn a_late_count_does_not_make_a_negative_rate() {
    let mut late = series(1_000, 60, |_| (10, 50));
    late.last_mut().unwrap().came = -5_000;
    assert!(rates(&late, SPANS[0]).unwrap().came_per_s.abs() < f64::EPSILON);
}

#[test]
fn a_year_away_is_not_at_this_rate() {
    let slow = series(1 << 40, 60, |_| (0, 50));
    assert_eq!(forecast(&slow).kind(), "not_at_this_rate");
}

#[test]
fn times_and_rates_are_as_rough_as_they_are_known() {
    let times = [0, 8, 99, 100, 5_000, 6_000, 86_400, 200_000].map(|s| about(Duration::from_secs(s)));
    assert_eq!(times, ["1 s", "8 s", "99 s", "2 min", "83 min", "2 h", "24 h", "2 d"]);
    let rates = [0.0, 40.2, 9.96, 3.46, 0.2, 0.001, 0.000_01].map(rate);
    assert_eq!(rates, ["none", "40/s", "10/s", "3.5/s", "12/min", "4/h", "1/h"]);
}
