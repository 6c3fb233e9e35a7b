//! Declarations for the broker: exchanges, queues and bindings, checked as one set before they are sent.

mod exchange;
mod queue;

use std::collections::BTreeMap;

pub use self::{
    exchange::{Exchange, ExchangeKind},
    queue::{Queue, QueueKind},
};
use crate::Error;

/// The longest name that the protocol can carry, in bytes.
const NAME_MAX: usize = 255;

/// Routes messages of an exchange to a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    pub(crate) exchange: String,
    pub(crate) queue: String,
    pub(crate) routing_key: String,
}

impl Binding {
    /// Messages to the exchange with this routing key go to the queue.
    pub fn new(
        exchange: impl Into<String>,
        queue: impl Into<String>,
        routing_key: impl Into<String>,
    ) -> Self {
        Self { exchange: exchange.into(), queue: queue.into(), routing_key: routing_key.into() }
    }
}

/// A set of declarations. Other exchanges and queues may exist at the broker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    exchanges: Vec<Exchange>,
    queues: Vec<Queue>,
    bindings: Vec<Binding>,
}

impl Topology {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an exchange.
    pub fn exchange(&mut self, exchange: Exchange) {
        self.exchanges.push(exchange);
    }

    /// Adds a queue, with its dead letters if it declares any.
    pub fn queue(&mut self, queue: Queue) {
        self.queues.push(queue);
    }

    /// Adds a binding.
    pub fn bind(&mut self, binding: Binding) {
        self.bindings.push(binding);
    }

    /// Makes a queue deliver to only one consumer at a time.
    ///
    /// # Errors
    /// The queue is not in the set: it is a property of the queue, not of the consumer.
    pub(crate) fn make_single_active(&mut self, name: &str) -> Result<(), Error> {
        let mut is_there = false;
        for queue in self.queues.iter_mut().filter(|queue| queue.name == name) {
            queue.is_single_active = true;
            is_there = true;
        }
        let reason = || {
            Error::Declaration(format!(
                "a single active consumer is a property of its queue: declare queue {name:?} here as well"
            ))
        };
        is_there.then_some(()).ok_or_else(reason)
    }

    pub(crate) fn find_queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// Checks the set and puts it into the order in which it is sent: exchanges, queues, bindings.
    ///
    /// # Errors
    /// Two declarations of one name that differ, a name that the protocol cannot carry, an option that the
    /// kind of queue lacks.
    pub(crate) fn validated(self) -> Result<Declarations, Error> {
        let dead_letters = self.queues.iter().filter_map(Queue::dead_letters);
        let (mut exchanges, mut queues, mut bindings) = (self.exchanges, self.queues.clone(), self.bindings);
        for (exchange, queue, binding) in dead_letters {
            exchanges.push(exchange);
            queues.push(queue);
            bindings.push(binding);
        }
        queues.iter().try_for_each(Queue::check)?;
        let exchanges = distinct("exchange", exchanges, |exchange| &exchange.name)?;
        let queues = distinct("queue", queues, |queue| &queue.name)?;
        bindings.sort();
        bindings.dedup();
        for binding in &bindings {
            check_name("exchange", &binding.exchange)?;
            check_name("queue", &binding.queue)?;
            check_length("routing key", &binding.routing_key)?;
        }
        Ok(Declarations { exchanges, queues, bindings })
    }
}

/// A checked set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declarations {
    /// Exchanges.
    pub exchanges: Vec<Exchange>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Bindings.
    pub bindings: Vec<Binding>,
}

fn distinct<T: PartialEq>(sort: &str, all: Vec<T>, name: fn(&T) -> &String) -> Result<Vec<T>, Error> {
    let mut by_name = BTreeMap::new();
    for one in all {
        check_name(sort, name(&one))?;
        match by_name.get(name(&one)) {
            Some(other) if *other != one => {
                let reason = format!("{sort} {:?} is declared twice and differently", name(&one));
                return Err(Error::Declaration(reason));
            }
            Some(_) => {}
            None => {
                by_name.insert(name(&one).clone(), one);
            }
        }
    }
    Ok(by_name.into_values().collect())
}

pub fn check_name(sort: &str, name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::Declaration(format!("the name of a {sort} is empty")));
    }
    check_length(sort, name)
}

fn check_length(sort: &str, text: &str) -> Result<(), Error> {
    if text.len() <= NAME_MAX {
        return Ok(());
    }
    Err(Error::Declaration(format!("a {sort} of {} bytes: the longest has {NAME_MAX}", text.len())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn set(queues: &[Queue]) -> Result<Declarations, Error> {
        Topology { queues: queues.to_vec(), ..Topology::default() }.validated()
    }

    #[test]
    fn two_declarations_of_one_queue_must_be_the_same() {
        let same = set(&[Queue::durable("a"), Queue::durable("a")]).unwrap();
        assert_eq!(same.queues.len(), 1);
        let error = set(&[Queue::durable("a"), Queue::quorum("a")]).unwrap_err();
        assert_eq!(error.to_string(), "queue \"a\" is declared twice and differently");
        assert!(set(&[Queue::durable("a"), Queue::durable("a").with_dead_letters()]).is_err());
    }

    #[test]
    fn dead_letters_add_an_exchange_a_queue_and_a_binding() {
        let set = set(&[Queue::quorum("orders").with_dead_letters()]).unwrap();
        assert_eq!(set.exchanges, [Exchange::direct("orders.dlx")]);
        let names: Vec<_> = set.queues.iter().map(|queue| queue.name.as_str()).collect();
        assert_eq!(names, ["orders", "orders.dead"]);
        assert!(set.queues.iter().all(|queue| queue.kind == QueueKind::Quorum));
        assert_eq!(set.bindings, [Binding::new("orders.dlx", "orders.dead", "orders")]);
    }

    #[test]
    fn dead_letters_that_differ_from_a_declaration_conflict() {
        let queues = [Queue::durable("orders").with_dead_letters(), Queue::quorum("orders.dead")];
        assert!(set(&queues).unwrap_err().to_string().contains("orders.dead"));
    }

    #[test]
    fn names_that_the_protocol_cannot_carry_are_refused() {
        assert!(set(&[Queue::durable("x".repeat(256))]).unwrap_err().to_string().contains("256 bytes"));
        assert!(set(&[Queue::durable("")]).unwrap_err().to_string().contains("empty"));
    }

    #[test]
    fn delivery_limit_needs_a_quorum_queue() {
        assert!(set(&[Queue::durable("a").delivery_limit(3)]).is_err());
        assert!(set(&[Queue::quorum("a").delivery_limit(3)]).is_ok());
    }

    #[test]
    fn single_active_consumer_needs_its_queue_in_the_set() {
        let mut topology = Topology::new();
        assert!(topology.make_single_active("a").is_err());
        topology.queue(Queue::durable("a"));
        topology.make_single_active("a").unwrap();
        assert!(topology.validated().unwrap().queues.iter().all(|queue| queue.is_single_active));
    }
}
