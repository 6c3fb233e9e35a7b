//! The first bytes of a connection show its HTTP version. They are kept, and the HTTP implementation reads
//! them again.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// How an HTTP/2 connection starts. No HTTP/1 request starts like this.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream with the first bytes that were read from it.
pub(super) struct FirstBytes<S> {
    first: Vec<u8>,
    taken: usize,
    stream: S,
}

impl<S: AsyncRead + Unpin> FirstBytes<S> {
    /// Reads until the HTTP version is known.
    pub(super) async fn read(mut stream: S) -> io::Result<Self> {
        let mut first = Vec::with_capacity(PREFACE.len());
        while first.len() < PREFACE.len() && PREFACE.starts_with(&first) {
            let mut rest = (&mut stream).take((PREFACE.len() - first.len()) as u64);
            if rest.read_buf(&mut first).await? == 0 {
                break;
            }
        }
        Ok(Self { first, taken: 0, stream })
    }
}

impl<S> FirstBytes<S> {
    /// Whether the client speaks HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.first == PREFACE
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(rest) = this.first.get(this.taken..).filter(|rest| !rest.is_empty()) {
            let n = rest.len().min(buf.remaining());
            buf.put_slice(rest.get(..n).unwrap_or_default());
            this.taken += n;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
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

    async fn told(bytes: &'static [u8]) -> (bool, Vec<u8>) {
        let mut stream = FirstBytes::read(bytes).await.unwrap();
        let is_http2 = stream.is_http2();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        (is_http2, all)
    }

    #[tokio::test]
    async fn the_first_bytes_show_the_http_version_and_are_kept() {
        for (bytes, is_http2) in [
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrest".as_slice(), true),
            (b"PROPFIND / HTTP/1.1\r\n\r\n".as_slice(), false),
            (b"POST /v1/tasks HTTP/1.1\r\n".as_slice(), false),
            (b"PRI".as_slice(), false),
            (b"".as_slice(), false),
        ] {
            assert_eq!(told(bytes).await, (is_http2, bytes.to_vec()));
        }
    }
}
