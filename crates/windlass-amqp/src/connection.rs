//! One connection to the broker, opened when it is needed and again after it was lost.

pub(crate) mod tls;

use std::{fmt, sync::Arc, time::Duration};

use lapin::{
    Channel, Connection, ConnectionProperties, ErrorKind,
    options::{ExchangeDeclareOptions, QueueBindOptions},
    types::{FieldTable, ShortString},
    uri::{AMQPScheme, AMQPUri},
};
use tokio::{sync::Mutex, time::timeout};

use self::tls::Tls;
use crate::{
    Error,
    topology::{Declarations, ExchangeKind},
};

/// How long the broker may take to answer while a connection is opened.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How often both sides of an idle connection send a heartbeat; after twice this time without one the
/// connection ends.
const HEARTBEAT_SECONDS: u16 = 10;

/// A connection with a name that the broker shows.
pub struct Link {
    uri: AMQPUri,
    /// The certificates and keys for TLS, if the address asks for it.
    tls: Option<Tls>,
    name: String,
    declarations: Declarations,
    /// Locked while connecting, so that callers that lost the connection together open only one.
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Link {
    /// Reads the address; does not connect yet.
    pub fn new(url: &str, name: String, declarations: Declarations) -> Result<Self, Error> {
        // The parser's error quotes the text that it could not read, which may contain the password.
        let unreadable = |_: String| Error::Address("it cannot be read".to_owned());
        let mut uri: AMQPUri = url.parse().map_err(unreadable)?;
        let tls = match uri.scheme {
            AMQPScheme::AMQP => None,
            AMQPScheme::AMQPS => Some(Tls::of(url).map_err(Error::Tls)?),
        };
        // Check the files here: unusable files are an error at the start, not after endless retries.
        tls.as_ref().map(Tls::config).transpose().map_err(Error::Tls)?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT_SECONDS);
        Ok(Self { uri, tls, name, declarations, connection: Mutex::default() })
    }

    /// Host and port, without the user.
    pub fn address(&self) -> String {
        format!("{}:{}", self.uri.authority.host, self.uri.authority.port)
    }

    /// The connection; opened if there is none.
    pub async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref().filter(|connection| connection.status().connected()) {
            return Ok(Arc::clone(connection));
        }
        let properties = ConnectionProperties::default().with_connection_name(self.name.as_str().into());
        let opened = match &self.tls {
            None => timeout(CONNECT_LIMIT, Connection::connect_uri(self.uri.clone(), properties)).await,
            Some(tls) => {
                // Read the files again, so that a renewed certificate is used from now on.
                let config = tls.config().map_err(Error::Tls)?;
                timeout(CONNECT_LIMIT, tls::connect(self.uri.clone(), properties, config)).await
            }
        };
        let unreachable = |reason: String| Error::Unreachable { address: self.address(), reason };
        let connection = match opened {
            Err(_) => return Err(unreachable(format!("no answer within {CONNECT_LIMIT:?}"))),
            Ok(Err(error)) if error.is_amqp_error() => return Err(refused("the connection", &error)),
            Ok(Err(error)) => return Err(unreachable(error.to_string())),
            Ok(Ok(connection)) => Arc::new(connection),
        };
        *held = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// A new channel. Declares everything again first: queues that were deleted, or lost with the broker, are
    /// back.
    pub async fn channel(&self) -> Result<Channel, Error> {
        let connection = self.connection().await?;
        let channel = connection.create_channel().await.map_err(|error| self.lost("a channel", &error))?;
        self.declare(&channel).await?;
        Ok(channel)
    }

    async fn declare(&self, channel: &Channel) -> Result<(), Error> {
        for exchange in &self.declarations.exchanges {
            let kind = match exchange.kind {
                ExchangeKind::Direct => lapin::ExchangeKind::Direct,
                ExchangeKind::Fanout => lapin::ExchangeKind::Fanout,
                ExchangeKind::Topic => lapin::ExchangeKind::Topic,
                ExchangeKind::Headers => lapin::ExchangeKind::Headers,
            };
            let options =
                ExchangeDeclareOptions { durable: exchange.is_durable, ..ExchangeDeclareOptions::default() };
            let declared =
                channel.exchange_declare(short(&exchange.name)?, kind, options, FieldTable::default());
            declared.await.map_err(|error| self.lost(&format!("exchange {:?}", exchange.name), &error))?;
        }
        for queue in &self.declarations.queues {
            let declared = channel.queue_declare(short(&queue.name)?, queue.options(), queue.arguments());
            declared.await.map_err(|error| self.lost(&format!("queue {:?}", queue.name), &error))?;
        }
        for binding in &self.declarations.bindings {
            let (queue, exchange) = (short(&binding.queue)?, short(&binding.exchange)?);
            let key = short(&binding.routing_key)?;
            let bound =
                channel.queue_bind(queue, exchange, key, QueueBindOptions::default(), FieldTable::default());
            let what =
                || format!("the binding of queue {:?} to exchange {:?}", binding.queue, binding.exchange);
            bound.await.map_err(|error| self.lost(&what(), &error))?;
        }
        Ok(())
    }

    /// The error for a failure on a channel.
    pub fn lost(&self, what: &str, error: &lapin::Error) -> Error {
        if error.is_amqp_soft_error() {
            return refused(what, error);
        }
        Error::Unreachable { address: self.address(), reason: error.to_string() }
    }

    /// Closes the connection, if there is one.
    pub async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            // Every delivery on it has its answer by now; a broker that is gone needs no close.
            let _ = timeout(CONNECT_LIMIT, connection.close(200, "done".into())).await;
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the whole address: it contains the password.
        f.debug_struct("Link")
            .field("name", &self.name)
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

fn refused(what: &str, error: &lapin::Error) -> Error {
    let reason = match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_message().to_string(),
        _ => error.to_string(),
    };
    Error::Refused { what: what.to_owned(), reason }
}

/// A name in the form that the protocol carries.
pub fn short(text: &str) -> Result<ShortString, Error> {
    ShortString::try_new(text).map_err(|error| Error::Declaration(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn no_error_about_an_address_contains_its_password() {
        for url in [
            "amqp://u:s3cret@host:port",
            "http://u:s3cret@host",
            "amqps://u:s3cret@host?certfile=c",
            "u:s3cret@host",
        ] {
            let error = Link::new(url, String::new(), Declarations::default()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
        let link = Link::new("amqp://u:s3cret@host", String::new(), Declarations::default()).unwrap();
        assert!(!format!("{link:?}").contains("s3cret"));
    }
}
