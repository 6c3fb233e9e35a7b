//! Consuming without faults of the broker.

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Barrier, Notify, Semaphore};
use windlass::Outcome;
use windlass_amqp::{Consumer, Consumers, Delivery, Error, Message, PublisherOptions, Queue};

use crate::rig::{LIMIT, Record, drained, fill, messages, name, node, wait_for_messages};

#[tokio::test]
async fn broker_shows_one_consumer_for_any_number_of_workers() {
    let (broker, queue) = (node(), name("prefetch"));
    let consumer =
        Consumer::raw(&queue, |_: Delivery| async {}).workers(8).prefetch(33).tag(format!("{queue}-tag"));
    let consumers = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).consume(consumer);
    let consumers = consumers.start().await.unwrap();
    let rows = broker.ctl(&["list_consumers", "queue_name", "consumer_tag", "prefetch_count"]).unwrap();
    let rows: Vec<_> = rows.lines().filter(|row| row.starts_with(&queue)).collect();
    assert_eq!(rows, [format!("{queue}\t{queue}-tag\t33")]);
    consumers.stop(LIMIT).await;
}

#[tokio::test]
async fn every_message_is_handled_once_and_acknowledged() {
    let (broker, queue, record) = (node(), name("once"), Record::new());
    fill(&broker.url(), Queue::durable(&queue), &queue, 2_000).await;
    let seen = record.clone();
    let on = move |number: u64| {
        let seen = seen.clone();
        async move {
            seen.note(number);
            Ok::<_, Infallible>(())
        }
    };
    let consumers = Consumers::connect(broker.url()).consume(Consumer::new(&queue, on).workers(16));
    let consumers = consumers.start().await.unwrap();
    record.wait_for(2_000).await;
    let report = consumers.stop(LIMIT).await;
    assert_eq!(report.aborted + report.cancelled, 0);
    assert!(record.counts().values().all(|count| *count == 1));
    wait_for_messages(&broker, &queue, (0, 0)).await;
}

#[tokio::test]
async fn one_worker_keeps_the_order() {
    let (broker, queue) = (node(), name("order"));
    fill(&broker.url(), Queue::durable(&queue), &queue, 1).await;
    let publishing = Consumers::connect(broker.url()).start().await.unwrap();
    let publisher = publishing.publisher(PublisherOptions::default());
    for number in 1..200_u64 {
        publisher.publish("", &queue, &Message::json(&number).unwrap()).await.unwrap();
    }
    let (seen, record) = (Arc::new(std::sync::Mutex::new(Vec::new())), Record::new());
    let (all, note) = (Arc::clone(&seen), record.clone());
    let on = move |number: u64| {
        let (all, note) = (Arc::clone(&all), note.clone());
        async move {
            // Lets another handler overtake, if there is one.
            tokio::task::yield_now().await;
            all.lock().unwrap().push(number);
            note.note(number);
        }
    };
    let consumers = Consumers::connect(broker.url()).consume(Consumer::new(&queue, on).workers(1));
    let consumers = consumers.start().await.unwrap();
    record.wait_for(200).await;
    consumers.stop(LIMIT).await;
    assert_eq!(*seen.lock().unwrap(), (0..200).collect::<Vec<u64>>());
    publishing.stop(LIMIT).await;
}

#[tokio::test]
async fn as_many_handlers_run_at_once_as_there_are_workers() {
    const WORKERS: usize = 8;
    let (broker, queue, record) = (node(), name("workers"), Record::new());
    fill(&broker.url(), Queue::durable(&queue), &queue, 80).await;
    let (barrier, running) = (Arc::new(Barrier::new(WORKERS)), Arc::new(AtomicUsize::new(0)));
    let most = Arc::new(AtomicUsize::new(0));
    let (note, peak) = (record.clone(), Arc::clone(&most));
    let on = move |number: u64| {
        let (barrier, running, peak) = (Arc::clone(&barrier), Arc::clone(&running), Arc::clone(&peak));
        let note = note.clone();
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Opens only when eight handlers are here at once.
            barrier.wait().await;
            running.fetch_sub(1, Ordering::SeqCst);
            note.note(number);
        }
    };
    let consumer = Consumer::new(&queue, on).workers(WORKERS as i64);
    let consumers = Consumers::connect(broker.url()).consume(consumer).start().await.unwrap();
    record.wait_for(80).await;
    consumers.stop(LIMIT).await;
    assert_eq!(most.load(Ordering::SeqCst), WORKERS);
}

#[tokio::test]
async fn every_kind_of_failure_goes_to_the_dead_letters() {
    let (broker, queue) = (node(), name("failures"));
    let declared = || Queue::durable(&queue).with_dead_letters();
    let on = |what: String| async move {
        match what.as_str() {
            "panic" => panic!("as asked"),
            "hang" => std::future::pending().await,
            "fail" => Err(io::Error::other("as asked")),
            _ => Ok(()),
        }
    };
    let consumer = Consumer::new(&queue, on).workers(4).timeout(Duration::from_millis(50));
    let consumers =
        Consumers::connect(broker.url()).queue(declared()).consume(consumer).start().await.unwrap();
    let publisher = consumers.publisher(PublisherOptions::default());
    for what in ["panic", "hang", "fail", "fine"] {
        publisher.publish("", &queue, &Message::json(&what).unwrap()).await.unwrap();
    }
    publisher.publish("", &queue, &Message::bytes("no JSON")).await.unwrap();
    wait_for_messages(&broker, &format!("{queue}.dead"), (4, 0)).await;
    let figures = consumers.figures().remove(0);
    assert_eq!((figures.acked, figures.rejected, figures.requeued), (1, 4, 0));
    consumers.stop(LIMIT).await;
    assert_eq!(messages(&broker, &queue), Some((0, 0)));
}

#[tokio::test]
async fn failed_delivery_is_requeued_as_often_as_allowed() {
    let (broker, queue, record) = (node(), name("redelivery"), Record::new());
    let declared = Queue::quorum(&queue).with_dead_letters();
    let note = record.clone();
    let on = move |number: u64, delivery: Delivery| {
        let note = note.clone();
        async move {
            note.note(u64::from(delivery.delivered_before()));
            Err::<(), _>(io::Error::other(format!("{number} fails")))
        }
    };
    let consumer = Consumer::new(&queue, on).workers(2).redeliver(3);
    let consumers = Consumers::connect(broker.url()).queue(declared).consume(consumer).start().await.unwrap();
    let publisher = consumers.publisher(PublisherOptions::default());
    publisher.publish("", &queue, &Message::json(&7).unwrap()).await.unwrap();
    wait_for_messages(&broker, &format!("{queue}.dead"), (1, 0)).await;
    consumers.stop(LIMIT).await;
    let counts: Vec<_> = record.counts().into_iter().collect();
    assert_eq!(counts, [(0, 1), (1, 1), (2, 1), (3, 1)], "once, and three times again");
}

#[tokio::test]
async fn poison_message_goes_to_the_dead_letters_alone() {
    const COUNT: u64 = 300;
    let (broker, queue, record) = (node(), name("poison"), Record::new());
    let declared = || Queue::quorum(&queue).with_dead_letters();
    let note = record.clone();
    let on = move |number: u64| {
        let note = note.clone();
        async move {
            assert!(number % 100 != 7, "as asked");
            note.note(number);
        }
    };
    let consumer = Consumer::new(&queue, on).workers(8).redeliver(2);
    let running = Consumers::connect(broker.url()).queue(declared()).consume(consumer).start().await.unwrap();
    fill(&broker.url(), declared(), &queue, COUNT).await;
    let dead = format!("{queue}.dead");
    wait_for_messages(&broker, &dead, (3, 0)).await;
    wait_for_messages(&broker, &queue, (0, 0)).await;
    let figures = running.figures().remove(0);
    assert_eq!((figures.acked, figures.rejected, figures.requeued), (COUNT - 3, 3, 6));
    running.stop(LIMIT).await;
    let wanted: Vec<_> = (0..COUNT).filter(|number| number % 100 != 7).map(|number| (number, 1)).collect();
    assert_eq!(record.counts().into_iter().collect::<Vec<_>>(), wanted);
    assert_eq!(drained(&broker.url(), &dead, 3).await, [7, 107, 207]);
}

#[tokio::test]
async fn strict_consumer_rejects_other_types_without_a_call() {
    let (broker, queue, record) = (node(), name("strict"), Record::new());
    let note = record.clone();
    let on = move |number: u64| {
        let note = note.clone();
        async move { note.note(number) }
    };
    let consumer = Consumer::new(&queue, on).event_type("order.created").strict_event_type();
    let declared = Queue::durable(&queue).with_dead_letters();
    let consumers = Consumers::connect(broker.url()).queue(declared).consume(consumer).start().await.unwrap();
    let publisher = consumers.publisher(PublisherOptions::default());
    let messages = [Message::json(&1).unwrap(), Message::json(&2).unwrap().event_type("order.deleted")];
    for message in messages {
        publisher.publish("", &queue, &message).await.unwrap();
    }
    publisher.publish("", &queue, &Message::json(&3).unwrap().event_type("order.created")).await.unwrap();
    record.wait_for(1).await;
    wait_for_messages(&broker, &format!("{queue}.dead"), (2, 0)).await;
    assert_eq!(record.counts().into_iter().collect::<Vec<_>>(), [(3, 1)]);
    consumers.stop(LIMIT).await;
}

#[tokio::test]
async fn stop_finishes_running_handlers_and_hands_back_the_rest() {
    let (broker, queue, record) = (node(), name("drain"), Record::new());
    fill(&broker.url(), Queue::durable(&queue), &queue, 100).await;
    let (gate, started) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let (note, opened, begun) = (record.clone(), Arc::clone(&gate), Arc::clone(&started));
    let on = move |number: u64| {
        let (note, opened, begun) = (note.clone(), Arc::clone(&opened), Arc::clone(&begun));
        async move {
            begun.notify_one();
            let _pass = opened.acquire().await;
            note.note(number);
        }
    };
    let consumer = Consumer::new(&queue, on).workers(3).prefetch(50);
    let consumers = Consumers::connect(broker.url()).consume(consumer).start().await.unwrap();
    // Three run, six are in the buffer, the rest of the fifty have arrived too.
    wait_for_messages(&broker, &queue, (50, 50)).await;
    started.notified().await;
    let stopping = tokio::spawn(consumers.stop(LIMIT));
    // Those that did not start are back while the handlers still run.
    wait_for_messages(&broker, &queue, (97, 3)).await;
    gate.add_permits(1_000);
    let report = stopping.await.unwrap();
    assert_eq!((report.drained, report.cancelled, report.aborted), (3, 0, 0));
    assert_eq!(record.counts().len(), 3);
    wait_for_messages(&broker, &queue, (97, 0)).await;
}

#[tokio::test]
async fn handler_cut_off_by_the_stop_gives_its_message_back() {
    let (broker, queue) = (node(), name("cut"));
    fill(&broker.url(), Queue::durable(&queue), &queue, 1).await;
    let started = Arc::new(Notify::new());
    let begun = Arc::clone(&started);
    let on = move |_: u64| {
        let begun = Arc::clone(&begun);
        async move {
            begun.notify_one();
            std::future::pending::<()>().await;
        }
    };
    let consumers = Consumers::connect(broker.url()).consume(Consumer::new(&queue, on).workers(1));
    let consumers = consumers.start().await.unwrap();
    started.notified().await;
    let report = consumers.stop(Duration::from_millis(100)).await;
    assert_eq!(report.aborted, 1);
    wait_for_messages(&broker, &queue, (1, 0)).await;
}

#[tokio::test]
async fn declaration_that_differs_at_the_broker_fails_the_start() {
    let (broker, queue) = (node(), name("conflict"));
    fill(&broker.url(), Queue::durable(&queue), &queue, 0).await;
    let consumer = Consumer::raw(&queue, |_: Delivery| async {});
    let started =
        Consumers::connect(broker.url()).queue(Queue::quorum(&queue)).consume(consumer).start().await;
    let error = started.unwrap_err();
    assert!(matches!(&error, Error::Refused { what, .. } if what.contains(&queue)), "{error}");
    let missing = Consumer::raw(name("missing"), |_: Delivery| async { Outcome::Done(None) });
    let error = Consumers::connect(broker.url()).consume(missing).start().await.unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[tokio::test]
async fn unreachable_broker_is_an_error_without_the_password() {
    let consumers = Consumers::connect("amqp://user:s3cret@127.0.0.1:1/%2f");
    let error = consumers.start().await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { address, .. } if address == "127.0.0.1:1"), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[tokio::test]
async fn adaptive_consumer_follows_its_handlers_within_bounds() {
    let (broker, queue) = (node(), name("adaptive"));
    let ms = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&ms);
    let on = move |_: u64| {
        let ms = now.load(Ordering::Relaxed);
        async move {
            if ms > 0 {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        }
    };
    let consumer = Consumer::new(&queue, on).workers(16).prefetch(100).adaptive(2);
    let running = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).consume(consumer);
    let running = running.start().await.unwrap();
    let mut limits = vec![running.figures()[0].limit];
    // 5,000 messages of 100 ms in ten seconds need 50 workers. Handlers that take no time need the least
    // number, with and without a queue.
    for (handler_ms, wanted) in [(100, 16), (0, 2), (100, 16), (0, 2)] {
        ms.store(handler_ms, Ordering::Relaxed);
        if handler_ms > 0 {
            fill(&broker.url(), Queue::durable(&queue), &queue, 5_000).await;
        }
        let is_there = |limit: u64| limit == wanted;
        let watched = tokio::time::timeout(LIMIT, async {
            while !limits.last().copied().is_some_and(is_there) {
                tokio::task::yield_now().await;
                let figures = running.figures().remove(0);
                assert!(figures.running <= 16);
                if limits.last() != Some(&figures.limit) {
                    limits.push(figures.limit);
                }
            }
        });
        assert!(watched.await.is_ok(), "{handler_ms} ms: {limits:?}");
    }
    assert_eq!(limits[0], 2);
    let is_step = |pair: &[u64]| (2..=16).contains(&pair[1]) && pair[1] <= 2 * pair[0];
    assert!(limits.windows(2).all(is_step), "each look at most doubles: {limits:?}");
    running.stop(LIMIT).await;
}
