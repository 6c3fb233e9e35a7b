//! Combines writes of one moment into one packet.
//!
//! HTTP/2 sends the head and the body of a call as frames from two tasks. A small call would thus be two
//! writes, and the head alone would wake a waiting server. Here a flush first yields to the other tasks of
//! the connection.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// From so many bytes on waiting brings nothing.
const HELD_MAX_BYTES: usize = 16 << 10;

/// A connection that sends writes of one moment together.
pub(crate) struct Cork<T> {
    inner: T,
    held: BytesMut,
    /// Whether the flush has yielded once since the first held byte.
    has_waited: bool,
}

impl<T: AsyncWrite + Unpin> Cork<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, held: BytesMut::new(), has_waited: false }
    }

    /// Writes the held bytes.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.held.has_remaining() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.held))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(written);
        }
        self.has_waited = false;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Cork<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Cork<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if self.held.len() + bytes > HELD_MAX_BYTES {
            ready!(self.poll_out(cx))?;
            if bytes > HELD_MAX_BYTES {
                return Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
            }
        }
        for buf in bufs {
            self.held.extend_from_slice(buf);
        }
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.held.has_remaining() && !self.has_waited {
            self.has_waited = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Records the size of every write; accepts a few bytes at a time.
    #[derive(Default)]
    struct Noted {
        writes: Vec<usize>,
        bytes: Vec<u8>,
        at_most: usize,
    }

    impl AsyncWrite for Noted {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            let taken = buf.len().min(self.at_most);
            self.writes.push(taken);
            self.bytes.extend_from_slice(&buf[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn cork(at_most: usize) -> Cork<Noted> {
        Cork::new(Noted { at_most, ..Noted::default() })
    }

    #[tokio::test]
    async fn writes_before_the_end_of_a_flush_become_one_write() {
        let mut cork = cork(usize::MAX);
        cork.write_all(b"head").await.unwrap();
        // Another task runs between the first poll of the flush and the second.
        let first = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut cork).poll_flush(cx))).await;
        assert!(first.is_pending());
        cork.write_all(b"body").await.unwrap();
        cork.flush().await.unwrap();
        assert_eq!((cork.inner.writes.as_slice(), cork.inner.bytes.as_slice()), (&[8][..], &b"headbody"[..]));
        cork.write_all(b"next").await.unwrap();
        cork.flush().await.unwrap();
        assert_eq!(cork.inner.writes, [8, 4]);
    }

    #[tokio::test]
    async fn held_bytes_are_bounded_and_keep_their_order() {
        let mut cork = cork(10_000);
        let large: Vec<u8> = (0..HELD_MAX_BYTES * 3).map(|place| (place % 251) as u8).collect();
        cork.write_all(b"head").await.unwrap();
        cork.write_all(&large).await.unwrap();
        assert_eq!(cork.inner.bytes.len() + cork.held.len(), large.len() + 4);
        assert!(cork.held.len() <= HELD_MAX_BYTES, "what waits for a flush is bounded");
        cork.write_all(b"tail").await.unwrap();
        cork.shutdown().await.unwrap();
        assert_eq!(cork.inner.bytes, [&b"head"[..], &large, b"tail"].concat());
    }

    #[tokio::test]
    async fn a_broken_connection_is_reported_and_reads_pass() {
        let mut broken = cork(0);
        broken.write_all(b"head").await.unwrap();
        assert_eq!(broken.flush().await.unwrap_err().kind(), io::ErrorKind::WriteZero);
        let mut reads = Cork::new(tokio_test_pair().await);
        let mut read = [0; 2];
        reads.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hi");
    }

    async fn tokio_test_pair() -> tokio::io::DuplexStream {
        let (mut there, here) = tokio::io::duplex(16);
        there.write_all(b"hi").await.unwrap();
        here
    }
}
