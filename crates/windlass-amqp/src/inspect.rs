//! Reads the state of queues without changing anything.

use lapin::{options::QueueDeclareOptions, types::FieldTable};

use crate::{
    Error,
    connection::{Link, short},
    topology::Declarations,
};

/// The state of a queue as the broker reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFigures {
    /// Its name.
    pub name: String,
    /// The numbers of waiting messages and of consumers; `None` if there is no such queue.
    pub found: Option<(u32, u32)>,
}

/// Connects and reads the state of queues, without declaring any.
///
/// # Errors
/// [`Error::Unreachable`] and [`Error::Refused`] as for consumers.
pub async fn inspect(url: &str, queues: &[String]) -> Result<Vec<QueueFigures>, Error> {
    let link = Link::new(url, "windlass looking".to_owned(), Declarations::default())?;
    let mut figures = Vec::new();
    for name in queues {
        // If a queue does not exist, the broker closes the channel.
        let channel = link.channel().await?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found = match channel.queue_declare(short(name)?, options, FieldTable::default()).await {
            Ok(queue) => Some((queue.message_count(), queue.consumer_count())),
            Err(error) if error.is_amqp_soft_error() => None,
            Err(error) => return Err(link.lost("a look at its queues", &error)),
        };
        figures.push(QueueFigures { name: name.clone(), found });
    }
    if queues.is_empty() {
        drop(link.channel().await?);
    }
    link.close().await;
    Ok(figures)
}
