//! New keys, and the configurations of both gateways of a tunnel: what an operator would otherwise type twice, mirrored.
//!
//! Nothing is written here and no randomness is taken: the caller gives a source of random bytes ([`Random`]), and gets
//! files ([`NewFile`]) that only their owner may read. Key material is in buffers that are wiped, and stands in no error.
//!
//! ```
//! use forebay_provision::{Authentication, Side, Tunnel};
//!
//! let west: Side = "west=192.0.2.1,10.1.0.0/16".parse()?;
//! let east: Side = "east=192.0.2.2,10.2.0.0/16".parse()?;
//! let tunnel = Tunnel::new([west, east], "aes256-sha256".parse()?, true, Authentication::Keys)?;
//! # let mut count = 0;
//! # let random = &mut |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| { count += 1; *byte = count as u8 });
//! let [west, east] = tunnel.folders(random);
//! assert_eq!(west.files[0].name, "gateway.toml");
//! assert_eq!(west.files[1].text, east.files[1].text); // the same key
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ike;
mod keys;
mod problem;
mod roll;
mod side;
mod tunnel;

use zeroize::Zeroizing;

pub use keys::{Keys, keys};
pub use problem::ProvisionError;
pub use roll::{Rolled, STEPS, roll};
pub use side::Side;
pub use tunnel::{Authentication, Tunnel};

/// A source of random bytes that are fit for keys: it fills the slice.
pub type Random<'a> = &'a mut dyn FnMut(&mut [u8]);

/// A file to be written, for its owner only.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Its path, relative to the folder of its gateway.
    pub name: String,
    /// What it holds.
    pub text: Zeroizing<String>,
}

/// What one gateway gets.
#[derive(Debug)]
pub struct Folder {
    /// Name of the folder.
    pub name: String,
    /// The files in it.
    pub files: Vec<NewFile>,
    /// The commands that install them on the gateway's host, typed beside the folder as root.
    pub commands: Vec<String>,
}
