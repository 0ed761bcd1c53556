//! Our own standard input and output, read and written without a thread in between where that is possible.
//!
//! Whoever starts us gives us pipes (most do) or sockets (Node.js does). tokio's own way blocks a thread for each, and
//! every line goes from thread to thread twice, which costs more than the rest of a call. But whether an end blocks
//! is shared with everybody who holds it, such as the shell that started us: so a pipe is opened once more, which
//! gives an end of our own, and a socket is asked each time not to block. For all else there is the thread.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd},
    net::unix::pipe,
};

/// Standard input.
pub fn standard_input() -> Box<dyn AsyncRead + Send + Unpin> {
    if let Ok(pipe) = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        return Box::new(pipe);
    }
    match Socket::of(io::stdin().as_fd().try_clone_to_owned(), Interest::READABLE) {
        Ok(socket) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Standard output.
pub fn standard_output() -> Box<dyn AsyncWrite + Send + Unpin> {
    if let Ok(pipe) = pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        return Box::new(pipe);
    }
    match Socket::of(io::stdout().as_fd().try_clone_to_owned(), Interest::WRITABLE) {
        Ok(socket) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

/// A socket that others hold too.
#[derive(Debug)]
struct Socket(AsyncFd<OwnedFd>);

impl Socket {
    fn of(end: io::Result<OwnedFd>, interest: Interest) -> io::Result<Self> {
        let end = end?;
        // What is no socket has no type of one.
        rustix::net::sockopt::socket_type(&end)?;
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe; the end that goes in is ours alone"
        )]
        AsyncFd::with_interest(end, interest).map(Self)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            let read = guard.try_io(|it| Ok(recv(it, &mut *room, RecvFlags::DONTWAIT)?.0));
            let Ok(read) = read else { continue };
            let read = read?;
            // There was less than there was room for: nothing is left until the system says so again.
            if 0 < read && read < room.len() {
                guard.clear_ready();
            }
            buffer.advance(read);
            return Poll::Ready(Ok(()));
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(context))?;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            if let Ok(written) = guard.try_io(|it| Ok(send(it, bytes, flags)?)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|it| !it.is_empty()).map_or(&[][..], |it| it);
        self.poll_write(context, first)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// More than a socket holds goes both ways, and whoever else holds the socket still waits when it reads.
    #[tokio::test]
    async fn a_socket_is_read_and_written_and_blocks_for_others_as_before() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let end = |it: &UnixStream, interest| {
            Socket::of(it.as_fd().try_clone_to_owned(), interest).unwrap()
        };
        let mut input = end(&theirs, Interest::READABLE);
        let mut output = end(&ours, Interest::WRITABLE);
        let text: Vec<u8> = (0..1_000_000_u32).map(|it| it.to_le_bytes()[0]).collect();
        let writing = async {
            output.write_all(&text).await.unwrap();
            drop((output, ours));
        };
        let mut got = Vec::new();
        let (read, ()) = tokio::join!(input.read_to_end(&mut got), writing);
        assert_eq!((read.unwrap(), got == text), (text.len(), true));
        let flags = rustix::fs::fcntl_getfl(&theirs).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    }

    #[tokio::test]
    async fn what_is_no_socket_is_none() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Socket::of(Ok(file.into()), Interest::READABLE).is_err());
    }
}
