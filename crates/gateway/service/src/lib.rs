//! Configuration of the service: the gateway's file, the SAs file and the reservations of IVs.
//!
//! [`config`] reads all that a gateway needs from one file, and says what another version of it changes;
//! [`sas`] reads security associations and says everything that is wrong with them at once;
//! [`iv_store`] reserves, durably and once only, the IVs that the outbound ones will use;
//! [`guard`] says what the host's packet filter has to drop; [`privileges`] gives up what the process does not need.

pub mod config;
pub mod control;
pub mod esp_sa;
pub mod guard;
pub mod import;
pub mod iv_store;
pub mod privileges;
pub mod sas;
pub mod service;
