//! Queries to a running gateway: requests and answers over a Unix socket, one JSON document per line in each direction.
//!
//! [`Request`] and [`Response`] are the protocol. [`Server`] answers by a function of the service, and [`Client`]
//! sends requests. `forebay status`, `top`, the metrics ([`metrics`]) and the live page are made of [`StatusDoc`]; the
//! latter two are served over [`http`].

mod client;
mod documents;
pub mod http;
pub mod metrics;
mod page;
pub mod rates;
pub mod reasons;
mod server;
mod token;

use serde::{Deserialize, Serialize};

pub use client::{Client, ControlError};
pub use documents::{
    ClusterDoc, CostDoc, DeviceDoc, DropsDoc, EngineDoc, ErrorDoc, FindingDoc, GuardDoc, IptfsDoc,
    LifetimeDoc, LimitsDoc, LinkDoc, NameDoc, OffloadDoc, OffloadsDoc, PairDoc, PoliciesDoc, PolicyDoc,
    ProcessorDoc, ProcessorsDoc, ReloadDoc, ReloadsDoc, SaDoc, SasDoc, StatusDoc, TapSideDoc, TapsDoc,
};
pub use server::{Answer, Server};
pub use token::Token;

/// Version of every document.
pub const SCHEMA: u32 = 1;

/// Longest request that is read, in bytes.
pub const REQUEST_MAX: usize = 4_096;
/// Longest answer that is read, in bytes: room for some 500 000 SAs.
pub const RESPONSE_MAX: u64 = 256 << 20;

/// How unimportant the threads are that answer: with Linux's scheduler one tenth of the weight of those that move packets.
const NICE: i32 = 10;

/// What is asked, as one line: `{"request":"status"}`. Further keys mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Request {
    /// Everything that is counted.
    Status,
    /// The same without SAs and policies, of which a gateway may have many.
    Counts,
    /// The SAs.
    Sas,
    /// The policies.
    Policies,
    /// The processors.
    Processors,
    /// Packets that were dropped, by reason.
    Drops,
    /// To read the file again.
    Reload,
}

/// What is answered, as one line: `{"response":"status","schema":1,...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Response {
    /// To [`Request::Status`] and [`Request::Counts`].
    Status(Box<StatusDoc>),
    /// To [`Request::Sas`].
    Sas(SasDoc),
    /// To [`Request::Policies`].
    Policies(PoliciesDoc),
    /// To [`Request::Processors`].
    Processors(ProcessorsDoc),
    /// To [`Request::Drops`].
    Drops(DropsDoc),
    /// To [`Request::Reload`].
    Reload(ReloadDoc),
    /// The request is none, or nothing can be said.
    Error(ErrorDoc),
}

impl Response {
    /// The error that says this.
    pub fn error(message: impl Into<String>) -> Response {
        Response::Error(ErrorDoc { schema: SCHEMA, message: message.into() })
    }

    /// What of `status` answers `request`; `None` for a request that takes more than a look.
    pub fn of(request: Request, status: StatusDoc) -> Option<Response> {
        let schema = SCHEMA;
        Some(match request {
            Request::Status => Response::Status(Box::new(status)),
            Request::Counts => {
                Response::Status(Box::new(StatusDoc { sas: vec![], policies: vec![], ..status }))
            }
            Request::Sas => Response::Sas(SasDoc { schema, sas: status.sas }),
            Request::Policies => Response::Policies(PoliciesDoc { schema, policies: status.policies }),
            Request::Processors => Response::Processors(ProcessorsDoc {
                schema,
                processors: status.processors,
                engines: status.engines,
            }),
            Request::Drops => {
                Response::Drops(DropsDoc { schema, drops: status.drops, config_file: status.config_file })
            }
            Request::Reload => return None,
        })
    }
}

impl ReloadsDoc {
    /// Counts one.
    pub fn note(&mut self, outcome: &ReloadDoc) {
        let (taken, refused) = (u64::from(outcome.ok), u64::from(!outcome.ok));
        *self = ReloadsDoc {
            taken: self.taken + taken,
            refused: self.refused + refused,
            added: outcome.added,
            removed: outcome.removed,
            remarks: outcome.restart.len() + outcome.errors.len(),
        };
    }
}

/// Has this thread, and those that it starts, leave the CPU to the threads that move packets: a status of many SAs takes milliseconds.
fn give_way() {
    if rustix::process::getpriority_process(None).is_ok_and(|nice| nice < NICE) {
        // Where the system does not allow it, packets wait longer and nothing is wrong.
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn who_gives_way_is_less_important_and_so_are_its_threads() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let own = nice();
        let given = std::thread::spawn(move || {
            super::give_way();
            [nice(), std::thread::spawn(nice).join().unwrap()]
        });
        // Where the tests are less important already, that stays.
        assert_eq!(given.join().unwrap(), [own.max(super::NICE); 2]);
        assert_eq!(nice(), own);
    }
}
