//! Rules for the outer header of a tunnel (RFC 4301 5.1.2, RFC 6040, RFC 6438), and what the inner one takes from it.

mod flow;
mod tunnel;

pub use tunnel::{
    Decapsulated, Decapsulator, DontFragment, Dscp, Ecn, Encapsulator, FlowLabel, HopLimit, Inner, InnerDscp,
    Outer, SharedEcn, TunnelRules, TunnelRulesError, has_experienced_congestion, traffic_class,
};
