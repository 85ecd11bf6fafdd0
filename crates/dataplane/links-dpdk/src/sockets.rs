//! The sockets by which virtual devices find their other end: memif, vhost-user, virtio-user.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};

/// Where a memif is without `socket` (ETH_MEMIF_DEFAULT_SOCKET_FILENAME).
const MEMIF: &str = "/run/memif.sock";

/// DPDK's name of memif.
pub(crate) const MEMIF_DRIVER: &str = "net_memif";

/// The value of one of a device's arguments.
pub(crate) fn argument<'a>(arguments: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = arguments.split(',').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// Adds an argument to those of a device, unless it is there.
pub(crate) fn add_argument(arguments: &mut String, key: &str, value: &str) {
    if argument(arguments, key).is_none() {
        let comma = if arguments.is_empty() { "" } else { "," };
        arguments.push_str(&format!("{comma}{key}={value}"));
    }
}

/// The socket of a virtual device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Socket {
    /// The device listens at this path. DPDK's drivers connect again by themselves, or are connected to again.
    ListensAt(PathBuf),
    /// The device connects to this path once, when it is made.
    ConnectsTo(PathBuf),
    /// The same, with an abstract name.
    ConnectsToName(String),
}

impl Socket {
    /// The socket of a device with these arguments; `None` for one that has none, or connects again by itself.
    pub(crate) fn of(device: &str, arguments: &str) -> Option<Socket> {
        let value = |key| argument(arguments, key);
        let is = |driver: &str| device.starts_with(driver);
        if is(MEMIF_DRIVER) {
            let path = value("socket").unwrap_or(MEMIF);
            let is_abstract = value("socket-abstract") != Some("no");
            return match value("role") {
                Some("server" | "master") if is_abstract => None,
                Some("server" | "master") => Some(Socket::ListensAt(path.into())),
                _ if is_abstract => Some(Socket::ConnectsToName(path.to_owned())),
                _ => Some(Socket::ConnectsTo(path.into())),
            };
        }
        if is("net_virtio_user") || is("virtio_user") {
            // Where it is /dev/vhost-net there is no process at the other end.
            let path = value("path").filter(|path| !path.starts_with("/dev/"))?;
            return match value("server") {
                Some("1") => Some(Socket::ListensAt(path.into())),
                _ => Some(Socket::ConnectsTo(path.into())),
            };
        }
        if is("eth_vhost") || is("net_vhost") {
            return value("iface")
                .filter(|_| value("client") != Some("1"))
                .map(|path| Socket::ListensAt(path.into()));
        }
        None
    }

    /// Whether the device connects, and has no way back when its other end is gone.
    pub(crate) fn connects(&self) -> bool {
        !matches!(self, Socket::ListensAt(_))
    }

    /// Removes what a process has left that was killed: DPDK's drivers do not listen where a socket is.
    pub(crate) fn remove_stale(&self) {
        let Socket::ListensAt(path) = self else { return };
        let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
        // A listener of another type answers with another error.
        let is_left =
            || UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if path.is_absolute() && is_socket && is_left() {
            // Where that is not possible, the driver says so.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Whether a process listens where the device connects to.
    pub(crate) fn is_served(&self) -> bool {
        // EPROTOTYPE, which the standard library has no name for.
        const OTHER_TYPE: i32 = 91;
        match self {
            Socket::ListensAt(_) => false,
            // A socket of another type is refused without a connection, which its owner would have to take.
            Socket::ConnectsTo(path) => {
                let asked = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
                asked.is_ok() || asked.is_err_and(|error| error.raw_os_error() == Some(OTHER_TYPE))
            }
            Socket::ConnectsToName(name) => {
                let address = SocketAddrUnix::new_abstract_name(name.as_bytes());
                let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None);
                address.and_then(|address| connect(socket?, &address)).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    use rustix::net::{bind, listen};

    const LISTEN: [(&str, &str); 4] = [
        ("net_memif0", "role=server,socket=@,socket-abstract=no"),
        ("net_virtio_user0", "path=@,server=1"),
        ("eth_vhost0", "iface=@"),
        ("net_vhost3", "iface=@,queues=2"),
    ];
    const CONNECT: [(&str, &str); 4] = [
        ("net_memif0", "role=client,socket=@,socket-abstract=no"),
        ("net_memif0", "socket=@,socket-abstract=no,role=slave"),
        ("net_virtio_user0", "path=@"),
        ("virtio_user1", "queues=2,path=@,server=0"),
    ];
    const NEITHER: [(&str, &str); 6] = [
        ("eth_vhost0", "iface=@,client=1"),
        ("net_memif0", "role=server,socket=@"),
        ("net_af_packet0", "iface=eth0"),
        ("net_pcap0", "rx_pcap=@"),
        ("net_null0", ""),
        ("net_virtio_user0", "path=/dev/vhost-net"),
    ];

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("forebay-{name}-{}", std::process::id()))
    }

    fn socket_of((device, arguments): (&str, &str), path: &std::path::Path) -> Option<Socket> {
        Socket::of(device, &arguments.replace('@', path.to_str().unwrap()))
    }

    #[test]
    fn a_device_listens_or_connects_by_its_driver_and_arguments() {
        let path = path("kinds");
        for device in LISTEN {
            assert_eq!(socket_of(device, &path), Some(Socket::ListensAt(path.clone())), "{device:?}");
        }
        for device in CONNECT {
            assert_eq!(socket_of(device, &path), Some(Socket::ConnectsTo(path.clone())), "{device:?}");
        }
        for device in NEITHER {
            assert_eq!(socket_of(device, &path), None, "{device:?}");
        }
        assert_eq!(Socket::of("net_memif0", ""), Some(Socket::ConnectsToName(MEMIF.to_owned())));
    }

    #[test]
    fn only_a_socket_at_which_nobody_listens_is_removed() {
        let path = path("stale");
        for device in LISTEN.iter().chain(&CONNECT).chain(&NEITHER) {
            let remove = || socket_of(*device, &path).iter().for_each(Socket::remove_stale);
            let listener = UnixListener::bind(&path).unwrap();
            remove();
            assert!(path.exists(), "{device:?}: in use");
            drop(listener);
            remove();
            assert_eq!(path.exists(), !LISTEN.contains(device), "{device:?}");
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, "a file").unwrap();
            remove();
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_listener_is_seen_whatever_its_type_and_not_connected_to() {
        let path = path("served");
        for device in CONNECT {
            let socket = socket_of(device, &path).unwrap();
            assert!(!socket.is_served(), "{device:?}: no file");
            let listener = UnixListener::bind(&path).unwrap();
            listener.set_nonblocking(true).unwrap();
            assert!(socket.is_served(), "{device:?}");
            assert!(listener.accept().is_err(), "{device:?}: a connection");
            drop(listener);
            assert!(!socket.is_served(), "{device:?}: a file that was left");
            std::fs::remove_file(&path).unwrap();
        }
        let name = format!("forebay-served-{}", std::process::id());
        let client = Socket::ConnectsToName(name.clone());
        assert!(!client.is_served());
        let server = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&server, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        listen(&server, 1).unwrap();
        assert!(client.is_served());
        drop(server);
        assert!(!client.is_served());
    }
}
