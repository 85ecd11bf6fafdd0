//! Which crypto library a core uses.

use clap::ValueEnum;
use forebay_crypto::{Fallback, Processor};
use forebay_crypto_aws_lc::AwsLc;
use miette::miette;

/// A crypto library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The fastest that this build and machine have, and AWS-LC for the suites that it lacks.
    #[default]
    Auto,
    /// Intel's multi-buffer library (x86-64).
    IpsecMb,
    /// AWS-LC, everywhere.
    AwsLc,
}

impl Backend {
    /// A processor on this library.
    pub fn open(self) -> miette::Result<Box<dyn Processor>> {
        match (self, forebay_crypto_ipsec_mb::new()) {
            (Backend::Auto, Ok(processor)) => Ok(Box::new(Fallback::new(processor, AwsLc::new()))),
            (Backend::IpsecMb, Ok(processor)) => Ok(processor),
            (Backend::IpsecMb, Err(why)) => Err(miette!(
                help = "use --backend aws-lc, which works everywhere",
                "there is no ipsec-mb here: {why}"
            )),
            (Backend::Auto | Backend::AwsLc, _) => Ok(Box::new(AwsLc::new())),
        }
    }
}
