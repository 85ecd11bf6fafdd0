//! Configuration of the service: the SAs file and the reservations of IVs.
//!
//! [`sas`] reads security associations and says everything that is wrong with them at once;
//! [`iv_store`] reserves, durably and once only, the IVs that the outbound ones will use.

pub mod esp_sa;
pub mod iv_store;
pub mod sas;
pub mod service;
