//! Sockets in the file system that a process has left which was killed: DPDK's drivers do not listen where one is.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The path at which a virtual device with these arguments listens; `None` for one that connects, or has no socket.
fn listens_at(arguments: &str) -> Option<&Path> {
    let value = |key: &str| {
        let mut pairs = arguments.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    };
    let path = match (value("role"), value("path"), value("iface")) {
        // memif
        (Some("server" | "master"), ..) => value("socket"),
        // virtio-user, which connects unless it is told to listen
        (None, Some(path), _) => value("server").filter(|server| *server == "1").map(|_| path),
        // vhost-user
        (None, None, Some(path)) => Some(path).filter(|_| value("client") != Some("1")),
        _ => None,
    };
    path.map(Path::new).filter(|path| path.is_absolute())
}

/// Removes a socket at which such a device would listen, if nobody listens at it.
pub(crate) fn remove(arguments: &str) {
    let Some(path) = listens_at(arguments) else { return };
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    // A listener of another type answers with another error.
    let is_left =
        || UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_socket && is_left() {
        // Where that is not possible, the driver says so.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_socket_at_which_nobody_listens_is_removed() {
        let path = std::env::temp_dir().join(format!("forebay-stale-{}", std::process::id()));
        let at = |text: &str| text.replace('@', path.to_str().unwrap());
        let servers =
            ["role=server,socket=@,socket-abstract=no", "path=@,server=1", "iface=@", "iface=@,queues=2"];
        let others = ["role=client,socket=@", "path=@", "iface=@,client=1", "iface=eth0", "", "rx_pcap=@"];
        for arguments in servers.iter().chain(&others).map(|text| at(text)) {
            let listener = UnixListener::bind(&path).unwrap();
            remove(&arguments);
            assert!(path.exists(), "{arguments}: in use");
            drop(listener);
            remove(&arguments);
            let listens = servers.iter().any(|server| at(server) == arguments);
            assert_eq!(path.exists(), !listens, "{arguments}");
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, "a file").unwrap();
            remove(&arguments);
            std::fs::remove_file(&path).unwrap();
        }
    }
}
