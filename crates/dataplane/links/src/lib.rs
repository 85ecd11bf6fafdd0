//! Bursts of packets in and out: capture files; and on Linux TUN devices, UDP and raw sockets.
//!
//! All of the latter are a [`Link`]: whole IP packets in and out, in bursts, without waiting.
//!
//! | link | packets | what makes it fast |
//! |---|---|---|
//! | [`tun::TunQueue`] | of programs on this machine, and of what it routes | super-packets of up to 64 KiB, taken apart and put together by [`offload`] |
//! | [`udp::UdpLink`] | ESP in UDP (RFC 3948) | trains of datagrams as one (`UDP_GRO`, `UDP_SEGMENT`), many by one system call |
//! | [`beside::BesideLink`] | ESP in UDP, beside an IKE daemon that has the port | trains of datagrams as one where they come as one |
//! | [`raw::RawLink`] | ESP, AH, ICMP about packets too big | many by one system call |
//! | [`datagram::DatagramLink`] | of the program that runs the gateway | nothing: one system call for each |
//! | `forebay_links_xdp::XdpLink` | of an Ethernet device, past the kernel's stack | memory shared with the kernel |
//! | `forebay_links_dpdk` | of an Ethernet device that the kernel has no part in | polled by DPDK's drivers |
//!
//! A capture is read with [`capture::Reader`], record by record and in bounded memory;
//! [`frame::locate`] finds the IP packet in a record's frame, and [`frame::reframe`] puts the link
//! layer's bytes in front of another one; [`capture::Writer`] writes the result to a temporary file
//! that takes the output's name only when it is complete.
//!
//! ```no_run
//! use forebay_links::{capture, frame};
//!
//! # fn main() -> Result<(), capture::CaptureError> {
//! let mut output = capture::Writer::create("sealed.pcapng")?; // fails here if it cannot be written
//! let mut input = capture::Reader::open("plain.pcap")?;
//! if let Some(link) = input.link() {
//!     output.declare(link.rewritten(), input.resolution())?; // an empty capture says its link type too
//! }
//! let mut framed = Vec::new();
//! while let Some(record) = input.next_record()? {
//!     let Ok(at) = frame::locate(record.link, record.data) else { continue };
//!     let (prefix, packet) = record.data.split_at(at.start);
//!     // ... turn `packet` into another IP packet, IPv4 or IPv6 ...
//!     if frame::reframe(&at, prefix, packet, &mut framed).is_ok() {
//!         output.write(record.link.rewritten(), record.timestamp_ns, framed.len() as u32, &framed)?;
//!     }
//! }
//! output.finish()
//! # }
//! ```

#[cfg(target_os = "linux")]
pub mod announce;
#[cfg(target_os = "linux")]
pub mod beside;
pub mod capture;
#[cfg(target_os = "linux")]
pub mod datagram;
#[cfg(target_os = "linux")]
pub mod features;
pub mod frame;
#[cfg(target_os = "linux")]
pub mod interface;
#[cfg(target_os = "linux")]
pub mod nftables;
pub mod offload;
// Where there are files: WebAssembly only reads what it is given.
#[cfg(unix)]
pub mod output;
#[cfg(target_os = "linux")]
pub mod raw;
#[cfg(target_os = "linux")]
pub mod tun;
#[cfg(target_os = "linux")]
pub mod udp;

#[cfg(target_os = "linux")]
mod bpf;
mod checksum;
#[cfg(target_os = "linux")]
mod link;
mod link_type;
#[cfg(target_os = "linux")]
mod outer_header;
#[cfg(target_os = "linux")]
mod socket;

#[cfg(target_os = "linux")]
pub use link::{Copy, DeviceState, Link, RxDrops, TxReport, send_bytes};
pub use link_type::LinkType;
