//! PostgreSQL's protocol, as far as the proxy must understand it.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read},
    mem,
    net::TcpStream,
};

/// How many bytes are read at once.
const CHUNK: usize = 64 * 1024;
/// The longest first packet, in bytes: the server's own limit.
const STARTUP_MAX: u32 = 10_000;
/// The longest message, in bytes. A wrong length must not take all memory, and statements of tests are far
/// shorter.
const MESSAGE_MAX: u32 = 256 * 1024 * 1024;
/// The codes that request encryption, by TLS and by GSSAPI, in the place of the protocol version.
const ENCRYPTION: [u32; 2] = [80_877_103, 80_877_104];

/// One message with its header; kind 0 is a chunk of encrypted data.
pub(super) struct Message {
    pub kind: u8,
    pub bytes: Vec<u8>,
}

impl Message {
    fn body(&self) -> &[u8] {
        self.bytes.get(5..).unwrap_or_default()
    }
}

/// What a client requests with its connection.
pub(super) enum Startup {
    /// A session, with its application name. A cancel request is a session that ends at once.
    Session(String),
    /// Whether the server encrypts; another startup follows if it does not.
    Encryption,
}

/// The data from one side.
pub(super) struct Source<'a> {
    reader: BufReader<&'a TcpStream>,
    /// The rest is encrypted and passed on unchanged.
    pub is_opaque: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(stream: &'a TcpStream) -> Self {
        Self { reader: BufReader::with_capacity(CHUNK, stream), is_opaque: false }
    }

    pub(super) fn startup(&mut self) -> io::Result<(Startup, Vec<u8>)> {
        let packet = read_counted(&mut self.reader, 0, STARTUP_MAX)?;
        let startup = match number_at(&packet, 4) {
            Some(code) if ENCRYPTION.contains(&code) => Startup::Encryption,
            _ => Startup::Session(application_name(packet.get(8..).unwrap_or_default())),
        };
        Ok((startup, packet))
    }

    /// The single byte that answers a request for encryption.
    pub(super) fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        Ok(u8::from_be_bytes(byte))
    }

    pub(super) fn message(&mut self) -> io::Result<Message> {
        if self.is_opaque {
            let bytes = self.reader.fill_buf()?.to_vec();
            self.reader.consume(bytes.len());
            let end = || io::ErrorKind::UnexpectedEof.into();
            return if bytes.is_empty() { Err(end()) } else { Ok(Message { kind: 0, bytes }) };
        }
        let bytes = read_counted(&mut self.reader, 1, MESSAGE_MAX)?;
        Ok(Message { kind: bytes.first().copied().unwrap_or_default(), bytes })
    }

    /// Whether the next message is here already, so that reading it does not wait.
    pub(super) fn has_message(&self) -> bool {
        let buffer = self.reader.buffer();
        number_at(buffer, 1).is_some_and(|length| buffer.len() > length as usize)
    }
}

/// Reads a length, which counts itself but not the `before` bytes in front of it, and as many bytes as it
/// says.
fn read_counted(from: &mut impl Read, before: usize, max: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; before + 4];
    from.read_exact(&mut bytes)?;
    let length = number_at(&bytes, before).filter(|length| (4..=max).contains(length));
    bytes.resize(before + length.ok_or(io::ErrorKind::InvalidData)? as usize, 0);
    from.read_exact(bytes.get_mut(before + 4..).unwrap_or_default())?;
    Ok(bytes)
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn application_name(settings: &[u8]) -> String {
    let texts: Vec<_> = settings.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let (pairs, _) = texts.as_chunks();
    pairs
        .iter()
        .find(|[name, _]| name == "application_name")
        .map(|[_, name]| name.clone().into_owned())
        .unwrap_or_default()
}

/// The state of the answer to a request.
pub(super) enum Answer {
    /// Must not be dropped: unrequested, needed by the client to continue, or the end of a request that
    /// changed nothing.
    Other,
    /// A part of the answer to the request that began at this time.
    Part(u64),
    /// The end of the answer: everything is committed. The tags are those of all statements since the last
    /// such end.
    Committed(u64, Vec<String>),
}

/// A request that the client has sent completely.
#[derive(Debug)]
struct Request {
    began: u64,
    /// Whether it ended with a Sync.
    is_synced: bool,
}

/// The requests of one connection and the states of their answers.
///
/// A client may send several requests before it reads the first answer, so they are counted on both sides. A
/// time is the number of drops that had been requested until then.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// When the request began that the client is sending now.
    sending: Option<u64>,
    /// Requests whose answers are not complete, oldest first.
    waiting: VecDeque<Request>,
    tags: Vec<String>,
    has_failed: bool,
}

impl Exchange {
    /// Records a sent message.
    pub(super) fn request(&mut self, kind: u8, now: u64) {
        match kind {
            // Query, FunctionCall and Sync: the server ends each of them with ReadyForQuery.
            b'Q' | b'F' | b'S' => {
                let began = self.sending.take().unwrap_or(now);
                self.waiting.push_back(Request { began, is_synced: kind == b'S' });
            }
            // Parse, Bind, Describe, Execute and Close. Passwords, the data of a COPY, Flush and Terminate
            // begin nothing.
            b'P' | b'B' | b'D' | b'E' | b'C' => self.sending = self.sending.or(Some(now)),
            _ => {}
        }
    }

    /// Records a message of the server.
    pub(super) fn answer(&mut self, message: &Message) -> Answer {
        let began = self.waiting.front().map(|request| request.began);
        match message.kind {
            b'C' => {
                let tag = String::from_utf8_lossy(message.body());
                self.tags.push(tag.trim_end_matches('\0').to_owned());
            }
            b'E' => self.has_failed = true,
            // CopyInResponse: the client must see it to continue, and the server skips the Sync that came
            // with the statement.
            b'G' => {
                if let Some(skipped) = self.waiting.pop_front_if(|request| request.is_synced) {
                    self.sending = self.sending.or(Some(skipped.began));
                }
                return Answer::Other;
            }
            // It also ends the login, when no request waits.
            b'Z' => return self.ready(began, message.body() == b"I"),
            _ => {}
        }
        began.map_or(Answer::Other, Answer::Part)
    }

    /// ReadyForQuery: an answer is complete.
    fn ready(&mut self, began: Option<u64>, is_idle: bool) -> Answer {
        self.waiting.pop_front();
        let has_failed = mem::take(&mut self.has_failed);
        if !is_idle {
            return Answer::Other;
        }
        let tags = mem::take(&mut self.tags);
        // Without a tag no statement was executed; COMMIT of a failed transaction also says ROLLBACK.
        let is_committed = !has_failed && tags.last().is_some_and(|tag| tag != "ROLLBACK");
        began.filter(|_| is_committed).map_or(Answer::Other, |began| Answer::Committed(began, tags))
    }
}
