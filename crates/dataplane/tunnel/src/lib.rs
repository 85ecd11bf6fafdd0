//! Rules for the outer header of a tunnel (RFC 4301 5.1.2, RFC 6040, RFC 6438), and for the inner header of a packet that leaves it.
//!
//! [`TunnelRules`] are the settings of one SA. An [`Encapsulator`] computes the fields of outer headers from them, a [`Decapsulator`] changes
//! inner headers. Both are made once per SA; neither allocates per packet.
//!
//! ```
//! use forebay_tunnel::{Decapsulated, Decapsulator, Encapsulator, Inner, TunnelRules};
//!
//! let rules = TunnelRules::default();
//! let inner = Inner { len: 100, next_header: 4, traffic_class: 0xb8, ttl: 3, dont_fragment: true };
//! let outer = Encapsulator::new(&rules, 0).outer(&inner);
//! assert_eq!((outer.traffic_class, outer.dont_fragment), (0xb8, true)); // DSCP EF and DF are copied
//!
//! // RFC 6040 4.2: a mark of a congested router (3) reaches an ECN-capable sender (2); for another (0) the packet is dropped.
//! let decapsulator = Decapsulator::new(&rules);
//! assert_eq!(decapsulator.traffic_class(3, 2), Some(Decapsulated { traffic_class: 3, odd: false }));
//! assert_eq!(decapsulator.traffic_class(3, 0), None);
//! ```

mod flow;
mod tunnel;

pub use tunnel::{
    Decapsulated, Decapsulator, DontFragment, Dscp, Ecn, Encapsulator, FlowLabel, HopLimit, Inner, InnerDscp,
    Outer, SharedEcn, TunnelRules, TunnelRulesError, has_experienced_congestion, traffic_class,
};
