//! A connection between the two gateways: TCP, with Noise (`NNpsk0`) over it.
//!
//! The pattern authenticates both sides by their shared key and gives each connection keys of its own, so that a key that is stolen
//! later decrypts no recorded connection. Frames are a length of two bytes and a Noise message. An attacker can replay a genuine first
//! message; only a message after the handshake shows that the peer is there.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use forebay_admission::Within;
use snow::StatelessTransportState;

use super::key::Key;
use super::message::{Hello, LEN_MAX, Message, Mismatch, decode, encode};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// Bound to the handshake, so that no other use of the key is mistaken for this one.
const PROLOGUE: &[u8] = b"forebay pair v1";
/// The longest Noise message.
const FRAME_MAX: usize = 65_535;
/// Maximum time for the handshake and the peer's first message.
const HANDSHAKE: Duration = Duration::from_secs(3);

/// Errors of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChannelError {
    /// The connection failed.
    Io(io::Error),
    /// The peer has another key, or is another program.
    Key,
    /// The peer refused this gateway's key.
    Refused,
    /// The peer sent something that is not a message.
    Malformed,
    /// The peer is not the other gateway of this pair.
    Mismatch(Mismatch),
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChannelError::Io(error) => error.fmt(f),
            ChannelError::Key => {
                f.write_str("the peer has another key; `key_file` in [pair] must hold the same key on both")
            }
            ChannelError::Refused => f.write_str(
                "the peer refused this gateway's key; `key_file` in [pair] must hold the same key on both",
            ),
            ChannelError::Malformed => f.write_str("the peer sent a malformed message"),
            ChannelError::Mismatch(mismatch) => mismatch.fmt(f),
        }
    }
}

impl std::error::Error for ChannelError {}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> ChannelError {
        ChannelError::Io(error)
    }
}

/// The sending half.
pub struct Sender {
    stream: TcpStream,
    noise: Arc<StatelessTransportState>,
    nonce: u64,
    frame: Vec<u8>,
}

/// The receiving half.
pub struct Receiver {
    stream: TcpStream,
    /// The same until the first message has arrived.
    handshake: Option<Within<TcpStream>>,
    noise: Arc<StatelessTransportState>,
    nonce: u64,
    frame: Vec<u8>,
    plain: Vec<u8>,
}

/// Which side of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has connected.
    Initiator,
    /// It has accepted the connection.
    Responder,
}

/// Opens a connection over a TCP stream: the handshake, the first messages of both sides, and a check that they are a pair. Later writes
/// fail if they take longer than `timeout`.
///
/// # Errors
/// See [`ChannelError`].
pub fn open(
    stream: TcpStream,
    side: Side,
    key: &Key,
    own: &Hello,
    timeout: Duration,
) -> Result<(Sender, Receiver), ChannelError> {
    stream.set_nodelay(true)?;
    let mut handshake = Within::new(stream.try_clone()?, HANDSHAKE);
    let params = PATTERN.parse().map_err(|_| ChannelError::Malformed)?;
    let builder =
        snow::Builder::new(params).psk(0, key.bytes()).and_then(|builder| builder.prologue(PROLOGUE));
    let noise = builder.and_then(|builder| match side {
        Side::Initiator => builder.build_initiator(),
        Side::Responder => builder.build_responder(),
    });
    let mut noise = noise.map_err(|_| ChannelError::Malformed)?;
    let (mut frame, mut plain) = (vec![0; FRAME_MAX], vec![0; FRAME_MAX]);
    let mut peer = None;
    let turns = match side {
        Side::Initiator => [true, false],
        Side::Responder => [false, true],
    };
    for writes in turns {
        if writes {
            let len = noise.write_message(&encode(own), &mut frame).map_err(|_| ChannelError::Malformed)?;
            write_frame(&mut handshake, &frame[..len])?;
            continue;
        }
        let len = read_frame(&mut handshake, &mut frame)?;
        if len == 0 {
            return Err(ChannelError::Refused);
        }
        let Ok(len) = noise.read_message(&frame[..len], &mut plain) else {
            // In plain text, so that the peer can log the reason.
            let _ = write_frame(&mut handshake, &[]);
            return Err(ChannelError::Key);
        };
        peer = Some(decode::<Hello>(&plain[..len]).ok_or(ChannelError::Malformed)?);
    }
    let noise = Arc::new(noise.into_stateless_transport_mode().map_err(|_| ChannelError::Malformed)?);
    own.check(&peer.ok_or(ChannelError::Malformed)?).map_err(ChannelError::Mismatch)?;
    stream.set_write_timeout(Some(timeout))?;
    let sender = Sender { stream: stream.try_clone()?, noise: noise.clone(), nonce: 0, frame };
    let handshake = Some(handshake);
    let receiver = Receiver { stream, handshake, noise, nonce: 0, frame: vec![0; FRAME_MAX], plain };
    Ok((sender, receiver))
}

impl Sender {
    /// Sends a message.
    ///
    /// # Errors
    /// If the connection is closed, or the peer does not read; no more messages can be sent then.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        let bytes = encode(message);
        if bytes.len() > LEN_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let sealed = self.noise.write_message(self.nonce, &bytes, &mut self.frame);
        let len = sealed.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        self.nonce += 1;
        let sent = write_frame(&mut self.stream, &self.frame[..len]);
        if sent.is_err() {
            // A part of a frame may have been sent.
            self.close();
        }
        sent
    }

    /// Closes the connection, for the receiving half too.
    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Receiver {
    /// The next message. The first has to arrive within the time of the handshake; after that the caller measures silence.
    ///
    /// # Errors
    /// If the connection is closed, or the peer did not send a message.
    pub fn receive(&mut self) -> Result<Message, ChannelError> {
        let len = match &mut self.handshake {
            Some(handshake) => read_frame(handshake, &mut self.frame)?,
            None => read_frame(&mut self.stream, &mut self.frame)?,
        };
        let opened = self.noise.read_message(self.nonce, &self.frame[..len], &mut self.plain);
        let len = opened.map_err(|_| ChannelError::Malformed)?;
        if self.handshake.take().is_some() {
            self.stream.set_read_timeout(None)?;
        }
        self.nonce += 1;
        decode(&self.plain[..len]).ok_or(ChannelError::Malformed)
    }
}

fn write_frame(stream: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let len = u16::try_from(message.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut bytes = Vec::with_capacity(2 + message.len());
    bytes.extend(len.to_be_bytes());
    bytes.extend(message);
    stream.write_all(&bytes)
}

fn read_frame(stream: &mut impl Read, frame: &mut [u8]) -> io::Result<usize> {
    let mut len = [0; 2];
    stream.read_exact(&mut len)?;
    let len = usize::from(u16::from_be_bytes(len));
    stream.read_exact(&mut frame[..len])?;
    Ok(len)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    type Opened = Result<(Sender, Receiver), ChannelError>;

    fn key(byte: u8) -> Key {
        Key::parse(format!("{byte:02x}").repeat(32).as_bytes()).unwrap()
    }

    fn hello(number: u8) -> Hello {
        Hello::new(number, vec!["192.0.2.9/24".into()])
    }

    fn both(keys: (Key, Key), hellos: (Hello, Hello)) -> (Opened, Opened) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let timeout = Duration::from_secs(10);
        let far = std::thread::spawn(move || {
            open(listener.accept().unwrap().0, Side::Responder, &keys.1, &hellos.1, timeout)
        });
        let stream = TcpStream::connect(address).unwrap();
        (open(stream, Side::Initiator, &keys.0, &hellos.0, timeout), far.join().unwrap())
    }

    #[test]
    fn messages_arrive_in_both_directions() {
        let (near, far) = both((key(1), key(1)), (hello(1), hello(0)));
        let (mut near, mut far) = (near.unwrap(), far.unwrap());
        for term in 0..3 {
            let message = Message::Beat {
                active: true,
                term,
                preferred: false,
                unmerged: true,
                wants: false,
                session: (9, 0),
                open: false,
                blank: false,
                whole: false,
            };
            near.0.send(&message).unwrap();
            assert_eq!(far.1.receive().unwrap(), message);
            far.0.send(&message).unwrap();
            assert_eq!(near.1.receive().unwrap(), message);
        }
        near.0.close();
        assert!(matches!(far.1.receive(), Err(ChannelError::Io(_))));
    }

    #[test]
    fn another_key_is_refused_and_both_sides_say_so() {
        let (near, far) = both((key(1), key(2)), (hello(1), hello(0)));
        assert!(matches!(near.err(), Some(ChannelError::Refused)));
        assert!(matches!(far.err(), Some(ChannelError::Key)));
    }

    #[test]
    fn a_gateway_of_another_pair_is_refused_by_both_sides() {
        let (near, far) = both((key(1), key(1)), (hello(0), hello(0)));
        let is_number =
            |opened: Opened| matches!(opened.err(), Some(ChannelError::Mismatch(Mismatch::Number(0))));
        assert!(is_number(near) && is_number(far));
    }

    #[test]
    fn bytes_that_were_changed_or_repeated_are_refused() {
        let (near, far) = both((key(1), key(1)), (hello(1), hello(0)));
        let (mut near, mut far) = (near.unwrap(), far.unwrap());
        let message = Message::Merged { number: 7 };
        near.0.send(&message).unwrap();
        assert_eq!(far.1.receive().unwrap(), message);
        // The same message again.
        near.0.nonce = 0;
        near.0.send(&message).unwrap();
        assert!(matches!(far.1.receive(), Err(ChannelError::Malformed)));
    }
}
