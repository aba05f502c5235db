//! Servers that were made to do harm, for the tests of those who ask them.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// What a server sends in the place of an answer: its beginning, and what follows without end.
#[derive(Clone, Copy)]
pub(crate) struct Flood(pub(crate) &'static [u8], pub(crate) &'static [u8]);

impl Flood {
    /// A server that floods whoever asks, once `greet` says so. Its port, and how much it has sent.
    pub(crate) fn serve(
        self,
        greet: impl Fn(&mut TcpStream) -> io::Result<bool> + Clone + Send + 'static,
    ) -> (u16, Arc<AtomicU64>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port can be had");
        let port = listener.local_addr().expect("it has one").port();
        let sent = Arc::new(AtomicU64::new(0));
        let counts = sent.clone();
        thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                let (counts, greet) = (counts.clone(), greet.clone());
                // Who is flooded goes away: that ends it.
                thread::spawn(move || match greet(&mut socket) {
                    Ok(true) => self.flood(socket, &counts),
                    been => been.map(drop),
                });
            }
        });
        (port, sent)
    }

    fn flood(self, mut socket: TcpStream, counts: &AtomicU64) -> io::Result<()> {
        let Flood(begin, rest) = self;
        socket.write_all(begin)?;
        let rest = rest.repeat(65_536 / rest.len());
        while counts.fetch_add(rest.len() as u64, Ordering::Relaxed) < 1 << 32 {
            socket.write_all(&rest)?;
        }
        Ok(())
    }
}
