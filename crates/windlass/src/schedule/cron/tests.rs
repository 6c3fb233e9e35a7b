use super::*;

fn zone(name: &str) -> Zone {
    name.parse().unwrap()
}

/// The first `n` ticks after a time.
fn ticks(cron: &str, tz: &str, after: &str, n: usize) -> Vec<String> {
    let (cron, zone): (Cron, Zone) = (cron.parse().unwrap(), zone(tz));
    let mut at: Timestamp = after.parse().unwrap();
    (0..n)
        .map(|_| {
            at = cron.next_after(at, &zone).unwrap();
            at.to_string().replace(":00.000Z", "Z")
        })
        .collect()
}

fn refused(cron: &str) -> String {
    cron.parse::<Cron>().unwrap_err().to_string()
}

#[test]
fn the_next_tick_is_where_the_calendar_has_it() {
    // 2027-01-31 is a Sunday.
    let from = "2027-01-31T09:30:00Z";
    for (cron, next) in [
        ("* * * * *", "2027-01-31T09:31Z"),
        ("30 9 * * *", "2027-02-01T09:30Z"),
        ("0 * * * *", "2027-01-31T10:00Z"),
        ("*/15 * * * *", "2027-01-31T09:45Z"),
        ("5/20 * * * *", "2027-01-31T09:45Z"),
        ("0-10/5 * * * *", "2027-01-31T10:00Z"),
        ("0 8,20 * * *", "2027-01-31T20:00Z"),
        ("0 9-17 * * *", "2027-01-31T10:00Z"),
        ("0 9 * * MON", "2027-02-01T09:00Z"),
        ("0 9 * * mon-fri", "2027-02-01T09:00Z"),
        ("0 12 * * 0", "2027-01-31T12:00Z"),
        ("0 12 * * 7", "2027-01-31T12:00Z"),
        ("0 12 * * SAT-SUN", "2027-01-31T12:00Z"),
        ("0 12 * * 5-7", "2027-01-31T12:00Z"),
        ("0 0 1 * *", "2027-02-01T00:00Z"),
        ("0 0 31 * *", "2027-03-31T00:00Z"),
        ("0 0 1 MAR *", "2027-03-01T00:00Z"),
        ("0 0 1 jan,jul ?", "2027-07-01T00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00Z"),
        ("59 23 31 12 *", "2027-12-31T23:59Z"),
        ("@hourly", "2027-01-31T10:00Z"),
        ("@daily", "2027-02-01T00:00Z"),
        ("@midnight", "2027-02-01T00:00Z"),
        ("@Weekly", "2027-02-07T00:00Z"),
        ("@monthly", "2027-02-01T00:00Z"),
        ("@yearly", "2028-01-01T00:00Z"),
        ("@annually", "2028-01-01T00:00Z"),
        ("  0   9  * * MON ", "2027-02-01T09:00Z"),
        ("15 30 9 * * *", "2027-01-31T09:30:15.000Z"),
        ("*/20 * * * * *", "2027-01-31T09:30:20.000Z"),
        ("0 30 9 * * *", "2027-02-01T09:30Z"),
        ("0 12 L * *", "2027-01-31T12:00Z"),
        ("0 9 L * *", "2027-02-28T09:00Z"),
        ("0 9 L 2 *", "2027-02-28T09:00Z"),
        ("0 9 L-3 * *", "2027-02-25T09:00Z"),
        ("0 9 15,l * *", "2027-02-15T09:00Z"),
        ("0 9 * * FRIL", "2027-02-26T09:00Z"),
        ("0 9 * * 0L", "2027-02-28T09:00Z"),
        ("0 9 * * 7L", "2027-02-28T09:00Z"),
        ("@every 1h", "2027-01-31T10:00Z"),
        ("@Every 7m", "2027-01-31T09:33Z"),
        ("@every 20s", "2027-01-31T09:30:20.000Z"),
    ] {
        assert_eq!(ticks(cron, "UTC", from, 1), [next], "{cron}");
    }
}

#[test]
fn a_part_of_a_second_does_not_fire_a_tick_again() {
    assert_eq!(ticks("30 9 * * *", "UTC", "2027-01-31T09:29:59.999Z", 1), ["2027-01-31T09:30Z"]);
    assert_eq!(ticks("30 9 * * *", "UTC", "2027-01-31T09:30:00.001Z", 1), ["2027-02-01T09:30Z"]);
}

#[test]
fn two_restricted_days_mean_either_and_an_open_one_restricts() {
    // The 13th, and every Friday.
    let either = ticks("0 0 13 * FRI", "UTC", "2027-08-01T00:00:00Z", 4);
    assert_eq!(either, ["2027-08-06T00:00Z", "2027-08-13T00:00Z", "2027-08-20T00:00Z", "2027-08-27T00:00Z"]);
    let either = ticks("0 0 14 * FRI", "UTC", "2027-08-08T00:00:00Z", 3);
    assert_eq!(either, ["2027-08-13T00:00Z", "2027-08-14T00:00Z", "2027-08-20T00:00Z"]);
    // Odd days that are Fridays.
    let both = ticks("0 0 */2 * FRI", "UTC", "2027-08-01T00:00:00Z", 2);
    assert_eq!(both, ["2027-08-13T00:00Z", "2027-08-27T00:00Z"]);
    // Both may be decades apart: 29 February on a Sunday.
    assert_eq!(ticks("0 0 29 2 */7", "UTC", "2032-03-01T00:00:00Z", 1), ["2060-02-29T00:00Z"]);
}

#[test]
fn the_last_day_follows_the_length_of_the_month() {
    let last = ticks("0 0 L * *", "UTC", "2028-01-15T00:00:00Z", 4);
    assert_eq!(last, ["2028-01-31T00:00Z", "2028-02-29T00:00Z", "2028-03-31T00:00Z", "2028-04-30T00:00Z"]);
    // The 30th day before the last one: only months of 31 days have it.
    let first = ticks("0 0 L-30 * *", "UTC", "2028-01-15T00:00:00Z", 2);
    assert_eq!(first, ["2028-03-01T00:00Z", "2028-05-01T00:00Z"]);
    // Both restricted: either is meant, with L as with numbers.
    let either = ticks("0 0 L * MON", "UTC", "2027-03-22T00:00:00Z", 2);
    assert_eq!(either, ["2027-03-29T00:00Z", "2027-03-31T00:00Z"]);
    assert_eq!(ticks("0 0 L * ?", "UTC", "2027-03-22T00:00:00Z", 1), ["2027-03-31T00:00Z"]);
    assert!(refused("0 0 L-29 2 *").contains("never fires"));
}

#[test]
fn every_keeps_its_distance_over_a_change_of_clocks() {
    // On 28 March 2027 Berlin goes from 02:00 to 03:00 at 01:00 UTC.
    let every = ticks("@every 30m", "Europe/Berlin", "2027-03-28T00:10:00Z", 3);
    assert_eq!(every, ["2027-03-28T00:30Z", "2027-03-28T01:00Z", "2027-03-28T01:30Z"]);
}

#[test]
fn in_a_zone_local_times_count() {
    // Winter is UTC+1, summer UTC+2; clocks change on 28 March and 31 October 2027.
    let berlin = |cron, after, n| ticks(cron, "Europe/Berlin", after, n);
    assert_eq!(
        berlin("0 9 * * *", "2027-03-27T00:00:00Z", 3),
        ["2027-03-27T08:00Z", "2027-03-28T07:00Z", "2027-03-29T07:00Z"]
    );
    assert_eq!(
        berlin("0 9 * * *", "2027-10-30T00:00:00Z", 3),
        ["2027-10-30T07:00Z", "2027-10-31T08:00Z", "2027-11-01T08:00Z"]
    );
}

#[test]
fn a_local_time_that_is_skipped_fires_once_right_after_the_gap() {
    // On 28 March 2027 Berlin goes from 02:00 to 03:00 at 01:00 UTC.
    let berlin = |cron, n| ticks(cron, "Europe/Berlin", "2027-03-28T00:00:00Z", n);
    assert_eq!(berlin("30 2 * * *", 2), ["2027-03-28T01:00Z", "2027-03-29T00:30Z"]);
    assert_eq!(berlin("0,15,30,45 2 * * *", 2), ["2027-03-28T01:00Z", "2027-03-29T00:00Z"]);
    assert_eq!(
        berlin("*/30 * * * *", 4),
        ["2027-03-28T00:30Z", "2027-03-28T01:00Z", "2027-03-28T01:30Z", "2027-03-28T02:00Z"]
    );
    // New York goes from 02:00 to 03:00 on 14 March 2027 at 07:00 UTC.
    assert_eq!(
        ticks("30 2 * * *", "America/New_York", "2027-03-13T12:00:00Z", 2),
        ["2027-03-14T07:00Z", "2027-03-15T06:30Z"]
    );
    // Lord Howe sets its clocks by half an hour: from 02:00 to 02:30 on 3 October 2027, at 15:30 UTC the day
    // before.
    assert_eq!(
        ticks("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z", 2),
        ["2027-10-02T15:30Z", "2027-10-03T15:15Z"]
    );
    // Apia went from the end of 29 to the beginning of 31 December 2011.
    assert_eq!(ticks("0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z", 1), ["2011-12-30T10:00Z"]);
}

#[test]
fn a_repeated_local_time_fires_only_the_first_time() {
    // On 31 October 2027 Berlin goes from 03:00 back to 02:00 at 01:00 UTC.
    let berlin = |cron, after, n| ticks(cron, "Europe/Berlin", after, n);
    assert_eq!(berlin("30 2 * * *", "2027-10-30T12:00:00Z", 2), ["2027-10-31T00:30Z", "2027-11-01T01:30Z"]);
    for within in
        ["2027-10-31T00:30:00Z", "2027-10-31T00:59:59Z", "2027-10-31T01:00:00Z", "2027-10-31T01:29:59Z"]
    {
        assert_eq!(berlin("30 2 * * *", within, 1), ["2027-11-01T01:30Z"], "{within}");
    }
    assert_eq!(
        berlin("*/30 * * * *", "2027-10-30T23:59:00Z", 4),
        ["2027-10-31T00:00Z", "2027-10-31T00:30Z", "2027-10-31T02:00Z", "2027-10-31T02:30Z"]
    );
    // New York goes from 02:00 back to 01:00 on 7 November 2027 at 06:00 UTC.
    assert_eq!(
        ticks("30 1 * * *", "America/New_York", "2027-11-06T12:00:00Z", 2),
        ["2027-11-07T05:30Z", "2027-11-08T06:30Z"]
    );
}

#[test]
fn ticks_only_go_forward_around_every_change_of_a_year() {
    for name in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"] {
        let (zone, cron): (Zone, Cron) = (zone(name), "*/7 * * * *".parse().unwrap());
        let mut at: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let end: Timestamp = "2028-01-01T00:00:00Z".parse().unwrap();
        while at < end {
            let next = cron.next_after(at, &zone).unwrap();
            assert!(next > at && next.since(at).as_secs() <= 2 * 3_600, "{name}: {at} to {next}");
            at = next;
        }
    }
}

#[test]
fn an_expression_that_never_fires_is_refused() {
    for cron in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30,31 FEB *"] {
        assert!(refused(cron).contains("never fires"), "{cron}");
    }
    assert!("0 0 30 2 MON".parse::<Cron>().is_ok(), "Mondays in February");
}

#[test]
fn a_bad_field_is_named_with_its_allowed_values() {
    for (cron, parts) in [
        ("61 * * * *", ["minute", "\"61\"", "0 to 59"]),
        ("* 24 * * *", ["hour", "\"24\"", "0 to 23"]),
        ("* * 0 * *", ["day-of-month", "\"0\"", "1 to 31"]),
        ("* * * 13 *", ["month", "\"13\"", "1 to 12 or JAN to DEC"]),
        ("* * * * 8", ["day-of-week", "\"8\"", "0 to 7 or SUN to SAT"]),
        ("* * * * MONDAY", ["day-of-week", "\"MONDAY\"", "SUN to SAT"]),
        ("60 * * * * *", ["second", "\"60\"", "0 to 59"]),
        ("-5 * * * *", ["minute", "\"\"", "0 to 59"]),
        ("+5 * * * *", ["minute", "\"+5\"", "0 to 59"]),
        ("1, * * * *", ["minute", "\"\"", "0 to 59"]),
        ("5-1 * * * *", ["minute", "\"5-1\"", "backwards"]),
        ("*/0 * * * *", ["minute", "\"*/0\"", "1 to 59"]),
        ("*/x * * * *", ["minute", "\"*/x\"", "1 to 59"]),
        ("? * * * *", ["minute", "\"?\"", "0 to 59"]),
        ("300 * * * *", ["minute", "\"300\"", "0 to 59"]),
        ("* * * *", ["4 fields", "5 are expected", "6 with seconds"]),
        ("", ["0 fields", "5 are expected", "6 with seconds"]),
        ("* * * * * * *", ["7 fields", "5 are expected", "6 with seconds"]),
        ("@reboot", ["@reboot", "short form", "@hourly"]),
        ("@every", ["@every", "length of time", "5m"]),
        ("@every 5", ["@every", "length of time", "5m"]),
        ("@every 1h 30m", ["@every", "length of time", "5m"]),
        ("@every 0s", ["@every", "1 second", "366 days"]),
        ("* * L-31 * *", ["day-of-month", "\"L-31\"", "L-1 to L-30"]),
        ("* * LW * *", ["day-of-month", "\"LW\"", "L-1 to L-30"]),
        ("* * * * L", ["day-of-week", "\"\"", "SUN to SAT"]),
        ("L * * * *", ["minute", "\"L\"", "0 to 59"]),
    ] {
        let error = refused(cron);
        for part in parts {
            assert!(error.contains(part), "{cron}: {part:?} is missing in {error}");
        }
    }
    assert!(refused(&"1,".repeat(100_000)).len() < 200);
}
