//! Which crypto library a core uses.

use clap::ValueEnum;
use forebay_crypto::{Fallback, Processor};
use forebay_crypto_aws_lc::AwsLc;
use miette::miette;

/// A crypto library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The fastest library available, with AWS-LC for suites that it does not support.
    #[default]
    Auto,
    /// Intel's multi-buffer library (x86-64).
    IpsecMb,
    /// AWS-LC (all platforms).
    AwsLc,
}

impl Backend {
    /// A processor on this library.
    pub fn open(self) -> miette::Result<Box<dyn Processor>> {
        match (self, forebay_crypto_ipsec_mb::new()) {
            (Backend::Auto, Ok(processor)) => Ok(Box::new(Fallback::new(processor, AwsLc::new()))),
            (Backend::IpsecMb, Ok(processor)) => Ok(processor),
            (Backend::IpsecMb, Err(why)) => Err(miette!(
                help = "use `--backend aws-lc`, which is always available",
                "ipsec-mb is not available: {why}"
            )),
            (Backend::Auto | Backend::AwsLc, _) => Ok(Box::new(AwsLc::new())),
        }
    }
}
