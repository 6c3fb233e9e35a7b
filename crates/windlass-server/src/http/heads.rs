//! Refuses an HTTP/1 request that states the length of its body twice, as `Content-Length` and as
//! `Transfer-Encoding`.
//!
//! A proxy in front of the server may use one length and the server the other. What one takes for the end of
//! a body, the other takes for the start of the next request (request smuggling). hyper drops the
//! `Content-Length` of such a request before a middleware sees it. So the names of headers are read here,
//! before hyper reads them. The colon behind the second of the two names becomes a byte that no head may
//! contain: hyper answers 400 and closes the connection.
//!
//! ```text
//! head ──► length n ──► n bytes of body ──► head
//!   │ └──► no body ────────────────────────► head
//!   ├────► Transfer-Encoding alone: the last request (`guard.rs` closes the connection after the answer)
//!   └────► both: the colon is replaced; the last request
//! ```
//!
//! hyper accepts no folded line, no space around a name, and no length with anything but digits. It answers a
//! head with one of these with 400 and closes the connection, so it does not matter how this file reads such
//! a head.
//! HTTP/2 needs none of this: its frames show where a body ends, and it refuses a request with
//! `Transfer-Encoding`.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const LENGTH: &[u8] = b"content-length";
const ENCODING: &[u8] = b"transfer-encoding";
/// Bytes of a line that are kept: the longer of the two names and one more, so that a longer name differs
/// from it.
const NAME_MAX_BYTES: usize = ENCODING.len() + 1;
/// A byte that no head may contain.
const FORBIDDEN: u8 = 0;

/// Where in the requests of a connection the stream is.
#[derive(Debug, PartialEq)]
enum Framing {
    Head(Head),
    /// The number of body bytes that are still to come.
    Body(u64),
    /// No request follows.
    Last,
}

/// What was read of a head that is not complete.
#[derive(Debug, Default, PartialEq)]
struct Head {
    /// The start of the current line, up to its first colon.
    name: Vec<u8>,
    part: Part,
    has_request_line: bool,
    /// `None` inside: hyper would not accept the length.
    #[expect(
        clippy::option_option,
        reason = "no length, one that cannot be read, and a length are three cases"
    )]
    length: Option<Option<u64>>,
    has_encoding: bool,
}

/// Where in its line a head is.
#[derive(Debug, Default, PartialEq)]
enum Part {
    #[default]
    Name,
    Length,
    Other,
}

/// What a byte of a head means for the bytes after it.
enum Byte {
    GoOn,
    Forbidden,
    EndsHead(Framing),
}

impl Head {
    fn take(&mut self, byte: u8) -> Byte {
        match (byte, &self.part) {
            (b'\n', _) => return self.end_line(),
            (b':', Part::Name) if self.has_request_line => return self.end_name(),
            (_, Part::Name) if self.name.len() < NAME_MAX_BYTES => self.name.push(byte),
            (b'0'..=b'9', Part::Length) => {
                let digit = u64::from(byte - b'0');
                let length =
                    self.length.flatten().and_then(|length| length.checked_mul(10)?.checked_add(digit));
                self.length = Some(length);
            }
            (b' ' | b'\t' | b'\r', Part::Length) | (_, Part::Name | Part::Other) => {}
            (_, Part::Length) => self.length = Some(None),
        }
        Byte::GoOn
    }

    fn end_name(&mut self) -> Byte {
        self.part = Part::Other;
        if self.name.eq_ignore_ascii_case(ENCODING) {
            self.has_encoding = true;
        } else if self.name.eq_ignore_ascii_case(LENGTH) {
            self.part = Part::Length;
            // hyper refuses a second length that differs.
            self.length = Some(Some(0));
        }
        if self.has_encoding && self.length.is_some() { Byte::Forbidden } else { Byte::GoOn }
    }

    fn end_line(&mut self) -> Byte {
        let is_blank = self.part == Part::Name && matches!(self.name.as_slice(), b"" | b"\r");
        self.name.clear();
        self.part = Part::Name;
        if !is_blank {
            self.has_request_line = true;
        } else if self.has_request_line {
            return Byte::EndsHead(self.body());
        }
        // Blank lines before a request mean nothing.
        Byte::GoOn
    }

    /// What follows the head.
    fn body(&self) -> Framing {
        match (self.has_encoding, self.length) {
            (true, _) | (false, Some(None)) => Framing::Last,
            (false, None | Some(Some(0))) => Framing::Head(Self::default()),
            (false, Some(Some(length))) => Framing::Body(length),
        }
    }
}

impl Framing {
    /// Reads bytes on, and replaces a byte of a head that states two lengths.
    fn take(&mut self, mut bytes: &mut [u8]) {
        loop {
            bytes = match self {
                Self::Last => return,
                Self::Body(left) => {
                    let n = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= n as u64;
                    if *left == 0 {
                        *self = Self::Head(Head::default());
                    }
                    bytes.get_mut(n..).unwrap_or_default()
                }
                Self::Head(head) => {
                    let Some((byte, rest)) = bytes.split_first_mut() else { return };
                    match head.take(*byte) {
                        Byte::GoOn => {}
                        Byte::Forbidden => {
                            *byte = FORBIDDEN;
                            *self = Self::Last;
                        }
                        Byte::EndsHead(next) => *self = next,
                    }
                    rest
                }
            };
            if bytes.is_empty() {
                return;
            }
        }
    }
}

/// A stream that reads the heads of requests as they pass.
pub(super) struct Heads<S> {
    stream: S,
    framing: Framing,
}

impl<S> Heads<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, framing: Framing::Head(Head::default()) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.framing.take(buf.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What hyper sees of these bytes. They are sent in pieces of each size; the size must make no
    /// difference.
    fn seen(sent: &str) -> String {
        let sizes = 1..=sent.len();
        let mut all = sizes.map(|size| {
            let mut bytes = sent.as_bytes().to_vec();
            let mut framing = Framing::Head(Head::default());
            bytes.chunks_mut(size).for_each(|piece| framing.take(piece));
            String::from_utf8(bytes).unwrap().replace('\0', "#")
        });
        let first = all.next().unwrap();
        all.for_each(|other| assert_eq!(other, first));
        first
    }

    const OK: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    const BOTH: &str = "POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n";
    const REFUSED: &str = "POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding# chunked\r\n\r\n";

    #[test]
    fn a_head_with_both_is_refused_in_either_order() {
        assert_eq!(seen(BOTH), REFUSED);
        let other = "POST / HTTP/1.1\nTransfer-Encoding: chunked\nx: y\nCONTENT-LENGTH: 0\n\n";
        assert_eq!(seen(other), other.replace("LENGTH:", "LENGTH#"));
    }

    #[test]
    fn a_head_with_both_is_refused_behind_other_requests() {
        for first in [
            OK.to_owned(),
            format!("\r\n\n{OK}\r\n{OK}"),
            "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc".to_owned(),
            "POST / HTTP/1.1\r\nContent-Length:\t 003 \r\ncontent-length: 3\r\n\r\n\n\n:".to_owned(),
            "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "GET /a:b HTTP/1.1\r\n\r\n".to_owned(),
        ] {
            assert_eq!(seen(&format!("{first}{BOTH}")), format!("{first}{REFUSED}"), "{first:?}");
        }
    }

    #[test]
    fn a_body_that_looks_like_a_head_is_left_alone() {
        let request = format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{BOTH}", BOTH.len());
        assert_eq!(seen(&request), request);
        assert_eq!(seen(&format!("{request}{BOTH}")), format!("{request}{REFUSED}"));
    }

    #[test]
    fn other_names_and_values_are_left_alone() {
        let head = "POST /content-length: HTTP/1.1\r\ntransfer-encoding: chunked\r\nx: content-length: 1\r\n\
            content-lengths: 1\r\nx-content-length: 1\r\ncontent-length-that-is-long: 1\r\n\r\n";
        assert_eq!(seen(head), head);
        let head = "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding-too: 1\r\nte: trailers\r\n\r\n";
        assert_eq!(seen(head), head);
    }

    #[test]
    fn nothing_is_read_behind_a_last_request() {
        for last in [
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: +3\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 3, 3\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 18446744073709551616\r\n\r\n",
            REFUSED.replace('#', ":").as_str(),
        ] {
            let passed = seen(last);
            assert_eq!(seen(&format!("{last}{BOTH}")), format!("{passed}{BOTH}"), "{last}");
        }
    }

    #[test]
    fn an_endless_head_takes_no_memory() {
        let mut framing = Framing::Head(Head::default());
        framing.take(&mut vec![b'a'; 100_000]);
        framing.take(&mut [b'\n']);
        framing.take(&mut vec![b'a'; 100_000]);
        let Framing::Head(head) = framing else { panic!("{framing:?}") };
        assert_eq!(head.name.len(), NAME_MAX_BYTES);
    }
}
