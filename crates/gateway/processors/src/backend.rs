//! Which crypto library a core uses.

#[cfg(feature = "libraries")]
use forebay_crypto::{Fallback, Processor};
#[cfg(feature = "libraries")]
use forebay_crypto_aws_lc::AwsLc;
#[cfg(feature = "libraries")]
use miette::miette;

/// A crypto library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
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
    /// The words for libraries, in the order of [`Backend::of`].
    pub const WORDS: &[&str] = &["auto", "ipsec-mb", "aws-lc"];

    /// The library of a word.
    pub fn of(word: &str) -> Option<Backend> {
        let all = [Backend::Auto, Backend::IpsecMb, Backend::AwsLc];
        Backend::WORDS.iter().zip(all).find(|(one, _)| **one == word).map(|(_, backend)| backend)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Backend::Auto => "auto",
            Backend::IpsecMb => "ipsec-mb",
            Backend::AwsLc => "aws-lc",
        }
    }

    /// A processor on this library.
    ///
    /// # Errors
    /// If this build or machine lacks the library.
    #[cfg(feature = "libraries")]
    pub fn open(self) -> miette::Result<Box<dyn Processor>> {
        match (self, forebay_crypto_ipsec_mb::new()) {
            (Backend::Auto, Ok(processor)) => Ok(Box::new(Fallback::new(processor, AwsLc::new()))),
            (Backend::IpsecMb, Ok(processor)) => Ok(processor),
            (Backend::IpsecMb, Err(why)) => Err(miette!(
                help = "use AWS-LC, which is always available: `--backend aws-lc`, or `backend = \"aws-lc\"` in the \
                        `[[processor]]` of a configuration file",
                "ipsec-mb is not available: {why}"
            )),
            (Backend::Auto | Backend::AwsLc, _) => Ok(Box::new(AwsLc::new())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Backend;

    #[test]
    fn every_word_names_a_library() {
        assert!(Backend::WORDS.iter().all(|word| Backend::of(word).is_some_and(|one| one.word() == *word)));
        assert_eq!((Backend::of("aws-lc"), Backend::of("openssl")), (Some(Backend::AwsLc), None));
    }
}
