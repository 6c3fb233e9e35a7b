use std::collections::BTreeMap;

use windlass_core::Timestamp;

use super::super::{Cron, Zone};

fn words(cron: &str) -> Option<String> {
    cron.parse::<Cron>().unwrap().words()
}

#[test]
fn common_expressions_are_said_in_words() {
    for (cron, said) in [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0,15,30,45 * * * *", "every 15 minutes"),
        ("0 * * * *", "every hour"),
        ("@hourly", "every hour"),
        ("17 * * * *", "every hour at minute 17"),
        ("0 */2 * * *", "every 2 hours, from 00:00"),
        ("30 */3 * * *", "every 3 hours, from 00:30"),
        ("0 */6 * * *", "every day at 00:00, 06:00, 12:00 and 18:00"),
        ("0 9 * * *", "every day at 09:00"),
        ("0 8,20 * * *", "every day at 08:00 and 20:00"),
        ("0,30 9 * * *", "every day at 09:00 and 09:30"),
        ("@daily", "every day at 00:00"),
        ("@midnight", "every day at 00:00"),
        ("0 9 * * MON-FRI", "every weekday at 09:00"),
        ("0 9 * * 1,2,3,4,5", "every weekday at 09:00"),
        ("0 9 * * SAT,SUN", "every Saturday and Sunday at 09:00"),
        ("30 8 * * 1,3,5", "every Monday, Wednesday and Friday at 08:30"),
        ("@weekly", "every Sunday at 00:00"),
        ("*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:45, every weekday"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
        ("* 9 * * *", "every minute from 09:00 to 09:59"),
        ("@monthly", "on the 1st of every month at 00:00"),
        ("0 3 1,15 * *", "on the 1st and 15th of every month at 03:00"),
        ("0 3 L * *", "on the last day of every month at 03:00"),
        ("0 3 L-1 * *", "on the day before the last day of every month at 03:00"),
        ("0 3 L-3 * *", "3 days before the last day of every month at 03:00"),
        ("0 3 31 * *", "on the 31st of every month that has one at 03:00"),
        ("0 3 31 1,7 *", "on the 31st of January and July at 03:00"),
        ("0 3 29 2 *", "on the 29th of February at 03:00"),
        ("0 3 1,L * *", "on the 1st and last day of every month at 03:00"),
        ("0 3 1-7 * *", "from the 1st to the 7th of every month at 03:00"),
        ("0 18 * * FRIL", "on the last Friday of the month at 18:00"),
        ("@yearly", "on the 1st of January at 00:00"),
        ("0 0 1 1,7 *", "on the 1st of January and July at 00:00"),
        ("0 9 * 3-5 *", "every day in March, April and May at 09:00"),
        ("0 9 * 3-10 *", "every day in March to October at 09:00"),
        ("0 9 * 6 MON", "every Monday in June at 09:00"),
        ("0 9 13 * FRI", "on the 13th of every month, and every Friday, at 09:00"),
        ("15 30 9 * * *", "every day at 09:30:15"),
        ("* * * * * *", "every second"),
        ("*/20 * * * * *", "every 20 seconds"),
        ("@every 5m", "every 5 minutes"),
        ("@every 1h", "every hour"),
        ("@every 90s", "every 90 seconds"),
        ("@every 1h30m", "every 90 minutes"),
        ("@every 1d", "every 24 hours"),
    ] {
        assert_eq!(words(cron).as_deref(), Some(said), "{cron}");
    }
}

#[test]
fn an_open_field_beside_a_restricted_one_means_every_day() {
    // Days of the month and of the week are joined by "or" unless one begins with a star.
    assert_eq!(words("0 9 1-31 * MON").as_deref(), Some("every day at 09:00"));
    assert_eq!(words("0 9 1 * 0-6").as_deref(), Some("every day at 09:00"));
}

#[test]
fn where_words_would_lie_there_are_none() {
    for cron in [
        "7-59/13 * * * *",
        "*/7 * * * *",
        "0 */5 * * *",
        "0 1,2,3,9,11 * * *",
        "0 9 */2 * *",
        "0 9 */2 * MON",
        "0 9 1-29 * *",
        "0 9 * * FRIL,MON",
        "0 9 13 6 FRI",
        "5 */10 * * * *",
        "*/20 0 9 * * *",
        "0 3 L,L-2 * *",
        "0 3 1,L-2 * *",
        "0 3 30,31 * *",
        "0 3 31 1,2 *",
    ] {
        assert_eq!(words(cron), None, "{cron}");
    }
}

#[test]
fn the_same_words_mean_the_same_times() {
    let minutes = ["0", "*", "*/15", "0-59", "0,15,30,45", "0,30", "17", "7-59/13", "5,10"];
    let hours = ["*", "9", "9-17", "*/6", "0,6,12,18", "*/5", "0-22", "1-23/2"];
    let days = ["*", "1", "1-31", "1,15", "*/2", "L", "L-1", "31", "1-28", "2-28", "1,L"];
    let months = ["*", "1", "1-12", "3-5", "1,7"];
    let weekdays = ["*", "MON-FRI", "1,2,3,4,5", "SUN", "7", "0-6", "MON,FRI", "5L", "MON,5L"];
    let mut known: BTreeMap<String, (String, Vec<Timestamp>)> = BTreeMap::new();
    let (mut said, mut tried) = (0, 0);
    for minute in minutes {
        for hour in hours {
            for day in days {
                for month in months {
                    for weekday in weekdays {
                        let cron = format!("{minute} {hour} {day} {month} {weekday}");
                        tried += 1;
                        let Some(words) = words(&cron) else { continue };
                        said += 1;
                        let times = times(&cron);
                        let (other, known) =
                            known.entry(words.clone()).or_insert_with(|| (cron.clone(), times.clone()));
                        assert_eq!(*known, times, "{cron} and {other} are both {words:?}");
                    }
                }
            }
        }
    }
    assert!(said * 5 > tried, "{said} of {tried}");
}

/// A few times after each of a few dates: enough to tell expressions of the test apart.
fn times(cron: &str) -> Vec<Timestamp> {
    let (cron, zone): (Cron, Zone) = (cron.parse().unwrap(), Zone::utc());
    let mut times = Vec::new();
    for start in ["2026-12-31T23:59:59Z", "2027-02-26T09:10:00Z", "2027-07-30T18:00:00Z"] {
        let mut at: Timestamp = start.parse().unwrap();
        for _ in 0..5 {
            at = cron.next_after(at, &zone).unwrap();
            times.push(at);
        }
    }
    times
}
