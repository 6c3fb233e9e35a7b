//! Refuses a request of HTTP/1 that states the length of its body twice, as `Content-Length` and as `Transfer-Encoding`.
//!
//! A proxy in front may believe the one and this server the other: what one of them takes for the end of a body, the other takes for
//! the next request (request smuggling). hyper drops the length before anybody sees it, so the heads are read here, on
//! their way to hyper.
//!
//! ```text
//! head ──► length n ──► n bytes of body ──► head
//!   │ └──► no body ────────────────────────► head
//!   ├────► Transfer-Encoding: not read further; the connection closes after the answer (`guard.rs`)
//!   └────► both: hyper gets a byte that no head may have; it answers 400 and closes
//! ```

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a header that are looked at: more than the two names and any length have.
const LINE_LOOK_BYTES: usize = 64;
/// No head may have this byte.
const FORBIDDEN: u8 = 0;

/// A stream whose heads are read on their way.
pub(super) struct Heads<S> {
    stream: S,
    reading: Reading,
}

impl<S> Heads<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, reading: Reading::Head(Head::default()) }
    }
}

/// Where in the exchange the stream is.
#[derive(Debug)]
enum Reading {
    Head(Head),
    /// The bytes of a body that are still to come.
    Body(u64),
    /// A request that is the last one of its connection.
    Last,
    /// A head that stated both was cut short.
    Refused,
}

/// What is known of a head.
#[derive(Debug, Default)]
struct Head {
    /// The start of the current line.
    line: Vec<u8>,
    has_request_line: bool,
    /// The length that was stated; `Err` if it is no number or two different ones.
    length: Option<Result<u64, ()>>,
    has_encoding: bool,
}

impl Head {
    /// Takes the next byte; answers what follows if the head is complete.
    fn take(&mut self, byte: u8) -> Option<Reading> {
        if byte != b'\n' {
            if self.line.len() < LINE_LOOK_BYTES {
                self.line.push(byte);
            }
            return None;
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        match (line.is_empty(), self.has_request_line) {
            // Empty lines before a request mean nothing.
            (true, false) => None,
            (true, true) => Some(self.ended()),
            (false, false) => {
                self.has_request_line = true;
                None
            }
            (false, true) => {
                self.header(line);
                None
            }
        }
    }

    fn header(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = line.split_at(colon);
        let name = name.trim_ascii();
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.has_encoding = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(());
            let is_same = self.length.is_none_or(|known| known == length);
            self.length = Some(if is_same { length } else { Err(()) });
        }
    }

    fn ended(&self) -> Reading {
        match (self.length, self.has_encoding) {
            (Some(_), true) => Reading::Refused,
            // A length that is none: hyper refuses it.
            (None, true) | (Some(Err(())), false) => Reading::Last,
            (Some(Ok(0)) | None, false) => Reading::Head(Self::default()),
            (Some(Ok(length)), false) => Reading::Body(length),
        }
    }
}

impl Reading {
    /// Reads on; answers how many of the bytes may pass.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let mut passed = 0;
        while let Some(rest) = bytes.get(passed..).filter(|rest| !rest.is_empty()) {
            match self {
                Self::Last => return bytes.len(),
                Self::Refused => return passed,
                Self::Body(left) => {
                    let n = (rest.len() as u64).min(*left);
                    *left -= n;
                    passed += n as usize;
                    if *left == 0 {
                        *self = Self::Head(Head::default());
                    }
                }
                Self::Head(head) => {
                    let Some(next) = rest.first().and_then(|byte| head.take(*byte)) else {
                        passed += 1;
                        continue;
                    };
                    *self = next;
                    // The end of a head that is refused does not pass: hyper must not take it for complete.
                    passed += usize::from(!matches!(self, Self::Refused));
                }
            }
        }
        passed
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if matches!(this.reading, Reading::Refused) {
            // Nothing that follows is read: it may be a request that was smuggled.
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let passed = this.reading.take(buf.filled().get(before..).unwrap_or_default());
        if matches!(this.reading, Reading::Refused) {
            buf.set_filled(before + passed);
            // At least the end of the line that does not pass has left room for it.
            buf.put_slice(&[FORBIDDEN]);
        }
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
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// What hyper would see of these bytes if they came in pieces of this size.
    async fn seen(bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut heads = Heads::new(bytes);
        let mut all = Vec::new();
        let mut buffer = vec![0; piece];
        loop {
            match heads.read(&mut buffer).await.unwrap() {
                0 => return all,
                n => all.extend_from_slice(&buffer[..n]),
            }
        }
    }

    #[tokio::test]
    async fn a_head_with_both_lengths_is_cut() {
        for (first, second) in [
            ("Content-Length: 4", "Transfer-Encoding: chunked"),
            ("TRANSFER-ENCODING: chunked", "content-length: 4"),
            ("transfer-encoding: identity", "Content-Length:0"),
            ("Transfer-Encoding: gzip, chunked", "Content-Length: x"),
            ("Transfer-Encoding : chunked", "Content-Length : 4"),
        ] {
            for before in
                ["", "\r\n", "GET / HTTP/1.1\r\n\r\n", "PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"]
            {
                for end in ["\r\n", "\n"] {
                    let head = format!("{before}POST / HTTP/1.1{end}{first}{end}a: b{end}{second}{end}");
                    for piece in [1, 2, 7, 4096] {
                        let bytes = format!("{head}{end}4\r\nGET /admin HTTP/1.1\r\n\r\n");
                        let seen = seen(bytes.as_bytes(), piece).await;
                        let (cut, rest) = seen.split_at(head.len());
                        assert_eq!(cut, head.as_bytes(), "{bytes:?}");
                        assert!(matches!(rest, [0] | [b'\r', 0]), "{rest:?} of {bytes:?}");
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn other_requests_pass_as_they_are() {
        for bytes in [
            "",
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\na\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nabcdeGET / HTTP/1.1\r\n\r\n",
            // The body speaks of both.
            "POST / HTTP/1.1\r\ncontent-length: 44\r\n\r\n\ncontent-length: 1\ntransfer-encoding: chunked\n\n",
            "POST / HTTP/1.1\r\ncontent-length: 1\r\nx-transfer-encoding: a\r\n\r\n1",
        ] {
            for piece in [1, 3, 4096] {
                assert_eq!(seen(bytes.as_bytes(), piece).await, bytes.as_bytes());
            }
        }
    }
}
