//! A bare session with the server, for tests that hold a connection or a lock.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::Place;

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);
/// The protocol's version, 3.0.
const PROTOCOL: u32 = 196_608;

/// A session as role `windlass`; dropping it closes it and rolls its transaction back.
pub struct Wire {
    stream: TcpStream,
}

impl Wire {
    /// Logs in.
    ///
    /// # Errors
    /// The server's error.
    pub fn connect(place: &Place) -> Result<Self> {
        let address = place.url().split(['@', '/', '?']).find(|part| part.starts_with("127.0.0.1:"));
        let port: u16 = address.and_then(|text| text.rsplit(':').next()?.parse().ok()).context("a port")?;
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        body.extend_from_slice(b"user\0windlass\0database\0windlass\0\0");
        stream.write_all(&counted(&body))?;
        let mut wire = Self { stream };
        wire.until_ready()?;
        Ok(wire)
    }

    /// Runs statements and waits for their end. `windlass.` is not replaced here.
    ///
    /// # Errors
    /// The server's error.
    pub fn run(&mut self, sql: &str) -> Result<()> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.stream.write_all(b"Q")?;
        self.stream.write_all(&counted(&body))?;
        self.until_ready()
    }

    fn until_ready(&mut self) -> Result<()> {
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'Z' => return Ok(()),
                b'E' => bail!("{}", String::from_utf8_lossy(&body).replace('\0', " ")),
                _ => {}
            }
        }
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        self.stream.read_exact(&mut body)?;
        Ok((kind, body))
    }
}

/// A text after its length, which counts itself.
fn counted(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(body);
    message
}
