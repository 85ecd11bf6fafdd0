//! The policies that files can name: those of this crate, and those that a program registers.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use crate::{Placement, Policy};

/// Parameters that a policy has at most.
pub const PARAMETERS_MAX: usize = 4;

/// A policy from outside this crate: its word in files, and how it is made.
#[derive(Debug)]
pub struct PolicyKind {
    /// Its word in scenario and configuration files, in lower case with hyphens.
    pub word: &'static str,
    /// What it does, in one sentence without a full stop.
    pub meaning: &'static str,
    /// At most [`PARAMETERS_MAX`].
    pub parameters: &'static [Parameter],
    /// Makes one for a scheduler, with the values of the parameters in their order.
    pub create: fn(values: &[u64]) -> Box<dyn Placement>,
}

/// A parameter of a policy: a key of `[scheduler]` whose value is a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// What it says, with its unit, in one sentence without a full stop.
    pub meaning: &'static str,
    /// Its value where a file does not give it, as a number and as a file has it.
    pub default: u64,
    /// The smallest value.
    pub least: u64,
    /// The largest.
    pub most: u64,
}

/// A registered policy with the values of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    kind: &'static PolicyKind,
    values: [u64; PARAMETERS_MAX],
}

impl Registered {
    /// The policy with the defaults of its parameters.
    pub fn new(kind: &'static PolicyKind) -> Registered {
        let mut values = [0; PARAMETERS_MAX];
        values.iter_mut().zip(kind.parameters).for_each(|(value, parameter)| *value = parameter.default);
        Registered { kind, values }
    }

    /// The same with another value of a parameter, brought between its limits; that of an unknown one is left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: u64) -> Registered {
        for (slot, parameter) in self.values.iter_mut().zip(self.kind.parameters) {
            if parameter.name == name {
                *slot = value.clamp(parameter.least, parameter.most);
            }
        }
        self
    }

    /// Its kind.
    pub fn kind(&self) -> &'static PolicyKind {
        self.kind
    }

    /// The values of its parameters, in their order.
    pub fn values(&self) -> &[u64] {
        &self.values[..self.kind.parameters.len()]
    }

    pub(crate) fn create(&self) -> Box<dyn Placement> {
        (self.kind.create)(self.values())
    }
}

impl PartialEq for Registered {
    fn eq(&self, other: &Registered) -> bool {
        self.kind.word == other.kind.word && self.values == other.values
    }
}

impl Eq for Registered {}

/// A policy that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// There is one with this word.
    Taken {
        /// The word.
        word: &'static str,
    },
    /// It has more parameters than [`PARAMETERS_MAX`], or one whose default is not between its limits.
    Parameters {
        /// The policy's word.
        word: &'static str,
    },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Taken { word } => write!(f, "there is a policy `{word}` already"),
            RegisterError::Parameters { word } => write!(
                f,
                "policy `{word}` has more than {PARAMETERS_MAX} parameters, or one whose default is not between its limits"
            ),
        }
    }
}

impl std::error::Error for RegisterError {}

static REGISTERED: RwLock<Vec<&'static PolicyKind>> = RwLock::new(Vec::new());

/// Makes a policy known to everything in this process that reads a policy's word. To be called at the start of a program,
/// before it reads files.
///
/// # Errors
/// If its word is taken, or its parameters are not as they must be.
pub fn register(kind: &'static PolicyKind) -> Result<(), RegisterError> {
    let fits = |one: &Parameter| (one.least..=one.most).contains(&one.default);
    if kind.parameters.len() > PARAMETERS_MAX || !kind.parameters.iter().all(fits) {
        return Err(RegisterError::Parameters { word: kind.word });
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let is_shipped = Policy::ALL.iter().any(|policy| policy.word() == kind.word);
    if is_shipped || registered.iter().any(|one| one.word == kind.word) {
        return Err(RegisterError::Taken { word: kind.word });
    }
    registered.push(kind);
    Ok(())
}

/// The policies that have been registered, in that order.
pub fn registered() -> Vec<&'static PolicyKind> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}
