//! Reasons for which packets are dropped. One list defines for each reason its enum variant, its name in counters, an explanation and a
//! remedy; tables of the documentation and texts of commands are made from it.
//!
//! ```
//! use forebay_drops::{DropCounts, DropReason};
//!
//! let mut drops = DropCounts::default();
//! drops.count(DropReason::InEcn);
//! for (reason, count) in drops.iter() {
//!     println!("{count} {}: {}; {}", reason.name(), reason.explanation(), reason.remedy());
//! }
//! assert_eq!((drops.get(DropReason::InEcn), drops.total()), (1, 1));
//! ```

use forebay_planted::{Fault, planted};

macro_rules! drop_reasons {
    ($($variant:ident $name:literal $text:literal $remedy:literal)*) => {
        /// Why a packet was not passed on. Names are Linux's (`/proc/net/xfrm_stat`) where it has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DropReason {
            $(#[doc = $text] $variant,)*
        }

        impl DropReason {
            /// Every reason, in the order of the list.
            pub const ALL: &[DropReason] = &[$(DropReason::$variant),*];

            /// The name in counters, metrics and JSON.
            pub fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name),* }
            }

            /// An explanation of the reason, in one line.
            pub fn explanation(self) -> &'static str {
                match self { $(DropReason::$variant => $text),* }
            }

            /// What an operator does about it, in a sentence; names of keys and commands stand in backticks.
            pub fn remedy(self) -> &'static str {
                match self { $(DropReason::$variant => $remedy),* }
            }
        }
    };
}

drop_reasons! {
    NotIp "not_ip"
        "the frame carries no IP packet"
        "nothing; filter the capture by `ip or ip6` if the count disturbs"
    Snapped "snapped"
        "the capture has only the start of the packet (snapshot length, or the file ends in it)"
        "capture again with the full length (`tcpdump -s 0`)"
    TooLong "too_long"
        "the packet is larger than a packet buffer"
        "raise `packet_size` of `[limits]`, or switch GRO and LRO off on the interface that receives them"
    InHdrError "in_hdr_error"
        "the outer headers are malformed, the ESP packet is too short, or the AH header length does not match the SA"
        "compare `proposal` on both sides; otherwise look at `source` in the audit record"
    InFragment "in_fragment"
        "a fragment of an outer packet that was not reassembled"
        "lower `mtu` of the SAs on the peer, so that it does not send fragments"
    DupFrag "dup_frag"
        "a duplicate of a fragment that is already held"
        "nothing, unless the count grows quickly"
    FragError "frag_error"
        "a fragment is malformed, exceeds the maximum packet length, or is the first without the whole header chain"
        "look at `source` in the audit record"
    FragOverlap "frag_overlap"
        "fragments of one datagram overlap (RFC 5722); all of them are dropped"
        "nothing; lower `mtu` of the SAs on the peer to avoid fragments"
    FragReasmTimeout "frag_reasm_timeout"
        "reassembly timed out"
        "let fragments pass the firewalls between the peers, or lower `mtu` of the SAs on the peer"
    FragLimit "frag_limit"
        "too many fragments per datagram, per source or in total; the oldest are dropped"
        "lower `mtu` of the SAs on the peer; if the fragments are legitimate, raise `fragment_datagrams`, `fragment_bytes`, `fragment_bytes_per_source` or `fragments`"
    InNoIpsec "in_no_ipsec"
        "neither ESP, ESP in UDP nor AH"
        "check which program sends to UDP port 4500"
    InIke "in_ike"
        "an IKE message (non-ESP marker), which the data plane does not process"
        "`beside_ike = true` or `ike_forward` at the link"
    InNatKeepalive "in_nat_keepalive"
        "a NAT keepalive (RFC 3948 2.3)"
        "nothing; this is normal"
    InNoStates "in_no_states"
        "no SA has this SPI and destination"
        "compare `spi` and `remote` of the peer's outbound SA with `forebay show sas` here; with an IKE daemon, look at its log and at `ip xfrm state`"
    InStateMismatch "in_state_mismatch"
        "the encapsulation is not the SA's, or the inner packet does not match its selectors"
        "compare `encapsulation`, `local_ts` and `remote_ts` on both sides; the selectors of the peer are those of this side exchanged"
    InStateInvalid "in_state_invalid"
        "the SA was removed while the packet was in flight"
        "nothing, if the count stops growing after the reload"
    InStateSeqError "in_state_seq_error"
        "the sequence number is zero, below the replay window's left edge, or already received"
        "raise `replay_window` if packets are reordered; if the peer began again at 1, give the SA new keys; keep `state` on a disk that survives a reboot"
    InStateNotNoted "in_state_not_noted"
        "too many packets were held until their sequence numbers were recorded on disk"
        "free space; the log has `cannot record received sequence numbers` with the cause"
    InStateProtoError "in_state_proto_error"
        "ICV failure"
        "compare key file, `proposal` and `esn` on both sides, and reload both; single ones are damage or forgery"
    InStateModeError "in_state_mode_error"
        "the decrypted payload does not match the SA's mode"
        "compare `mode` and `iptfs` on both sides"
    InBufferError "in_buffer_error"
        "too many nested SAs"
        "reduce the nesting on the peer"
    InStateExpired "in_state_expired"
        "the hard lifetime of the SA expired"
        "install new keys; set `rekey_time` below `life_time`, and act on the warning `SA soft lifetime expired; rekey required`"
    InPadding "in_padding"
        "the padding is longer than the payload, or not 1, 2, 3, ..."
        "`check_padding = false`, if the peer's padding is otherwise genuine"
    InEcn "in_ecn"
        "outer CE, inner Not-ECT (RFC 6040 4.2)"
        "nothing; RFC 6040 requires the drop. On the peer, `copy_ecn = true` keeps the marks consistent"
    InTmplMismatch "in_tmpl_mismatch"
        "the packet did not arrive through the SA that its policy requires"
        "compare the inbound `[[policy]]` with the SA that the peer uses"
    InNoPols "in_no_pols"
        "no inbound policy matches"
        "add a policy, or correct its selectors; look at `forebay show policies`"
    InPolBlock "in_pol_block"
        "an inbound policy discards the packet"
        "look at `forebay show policies`, and at the log for `policy cannot be synchronized`"
    InFragmentPorts "in_fragment_ports"
        "a fragment without ports, for which a policy with ports might apply"
        "avoid fragments inside (path MTU, `mss_clamp`), or use selectors without ports"
    InIcmpQuote "in_icmp_quote"
        "an ICMP error quotes a packet that is not one of the SA's traffic (RFC 4301 6.2)"
        "if the selectors are too narrow, widen them on both sides; selectors that name ICMP (`10.2.0.0/16[icmp]`) let errors pass whatever they quote"
    InDummy "in_dummy"
        "a dummy packet (next header 59), discarded as intended (RFC 4303 2.6)"
        "nothing; this is intended"
    InIptfsError "in_iptfs_error"
        "an AGGFRAG payload (IP-TFS) is malformed or does not continue the previous one"
        "compare `iptfs` on both sides; look for losses on the path"
    InIptfsLate "in_iptfs_late"
        "an AGGFRAG payload is below the reorder window's left edge"
        "raise `reorder_window`"
    InIptfsIncomplete "in_iptfs_incomplete"
        "an inner packet was fragmented over several AGGFRAG payloads, and some did not arrive"
        "look for losses on the path; `fragment = false` on the peer limits the damage of one loss"
    InError "in_error"
        "no processor could complete the job"
        "look at STATE in `forebay show processors`, and at the log"
    OutHdrError "out_hdr_error"
        "the packet to protect is malformed"
        "capture the inside (`[taps]`) and look at the packet"
    OutFragment "out_fragment"
        "a fragment, which transport mode cannot protect (RFC 4303 3.3.4)"
        "use tunnel mode, or avoid fragments inside"
    OutNoStates "out_no_states"
        "no outbound SA matches the packet"
        "compare `source` and `destination` in the audit record with `local_ts` and `remote_ts`"
    OutNoPols "out_no_pols"
        "no outbound policy matches"
        "add a policy, or correct its selectors"
    OutPolBlock "out_pol_block"
        "an outbound policy discards the packet"
        "look at `forebay show policies`, and at the log for `policy cannot be synchronized`"
    OutFragmentPorts "out_fragment_ports"
        "a fragment without ports, for which a policy with ports might apply"
        "avoid fragments inside (path MTU, `mss_clamp`), or use selectors without ports"
    OutStateInvalid "out_state_invalid"
        "the SA was removed while the packet was in flight"
        "nothing, if the count stops growing after the reload"
    OutStateSeqError "out_state_seq_error"
        "sequence overflow, or the reserved sequence numbers of the SA are exhausted"
        "install new keys, or `esn = true` on both sides; if the log has `cannot reserve sequence numbers`, free space on the disk of `state`"
    OutStateExpired "out_state_expired"
        "the hard lifetime of the SA expired"
        "install new keys; set `rekey_time` below `life_time`, and act on the warning `SA soft lifetime expired; rekey required`"
    OutStateIvError "out_state_iv_error"
        "the reserved IVs of the SA are exhausted"
        "the log has `cannot reserve IVs` with the cause: free space, or correct the permissions"
    OutStateModeError "out_state_mode_error"
        "the SA aggregates (IP-TFS), so packets must pass through its queue"
        "report it as a defect"
    OutNoQueueSpace "out_no_queue_space"
        "the queue of an SA that aggregates (IP-TFS) is full"
        "raise `rate` or `queue` of `iptfs`"
    OutPathMtu "out_path_mtu"
        "the protected packet would exceed the path MTU; it is fragmented, or its source gets an ICMP error"
        "normal while senders learn the path MTU; if it continues, let ICMP pass the firewalls inside and the filters of the gateway (`answer` of `[inside]` is its source), or lower `mtu` of `[inside]`"
    OutTooBig "out_too_big"
        "the protected packet would exceed the maximum length of IP"
        "lower the MTU of the sender"
    OutError "out_error"
        "no processor could complete the job"
        "look at STATE in `forebay show processors`, and at the log"
    Overtaken "overtaken"
        "its core was held up for so long that later packets of the SA went before it"
        "give the worker threads CPUs of their own (`pin`), and look at what else runs on them"
    QueueFull "queue_full"
        "the engine had no free slot"
        "look at LOAD and QUEUE in `forebay top`; add a `[[processor]]` or `queues`, or raise `in_flight` of `[limits]` for bursts"
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A counter for each reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl Default for DropCounts {
    fn default() -> DropCounts {
        DropCounts([0; DropReason::ALL.len()])
    }
}

impl DropCounts {
    /// Counts one packet.
    #[inline]
    pub fn count(&mut self, reason: DropReason) {
        if planted(Fault::DropsUncounted) {
            return;
        }
        self.0[reason as usize] += 1;
    }

    /// How many packets were dropped for `reason`.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// How many packets were dropped.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.iter().map(|&reason| (reason, self.get(reason))).filter(|&(_, n)| n > 0)
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &DropCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_by_reason_and_in_all() {
        let mut drops = DropCounts::default();
        assert_eq!((drops.total(), drops.iter().count()), (0, 0));
        for (n, &reason) in DropReason::ALL.iter().enumerate() {
            (0..n).for_each(|_| drops.count(reason));
            assert_eq!(drops.get(reason), n as u64);
        }
        let all = DropReason::ALL.len() as u64;
        assert_eq!(drops.total(), all * (all - 1) / 2);
        assert!(drops.iter().eq(DropReason::ALL.iter().copied().zip(0..).skip(1)));
    }
}
