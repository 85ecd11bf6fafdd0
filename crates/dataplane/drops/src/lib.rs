//! Why packets are dropped: one list gives each reason its enum, name and explanation.

use forebay_planted::{Fault, planted};

macro_rules! drop_reasons {
    ($($variant:ident $name:literal $text:literal)*) => {
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
        }
    };
}

drop_reasons! {
    NotIp                "not_ip"                  "the frame carries no IP packet"
    Snapped              "snapped"                 "the capture has only the start of the packet (snapshot length, or the file ends in it)"
    TooLong              "too_long"                "the packet is larger than a packet buffer"
    InHdrError           "in_hdr_error"            "the outer headers are malformed, the ESP packet is too short, or the AH header length does not match the SA"
    InFragment           "in_fragment"             "a fragment of an outer packet that was not reassembled"
    DupFrag              "dup_frag"                "a duplicate of a fragment that is already held"
    FragError            "frag_error"              "a fragment is malformed, exceeds the maximum packet length, or is the first without the whole header chain"
    FragOverlap          "frag_overlap"            "fragments of one datagram overlap (RFC 5722); all of them are dropped"
    FragReasmTimeout     "frag_reasm_timeout"      "reassembly timed out"
    FragLimit            "frag_limit"              "too many fragments per datagram, per source or in total; the oldest are dropped"
    InNoIpsec            "in_no_ipsec"             "neither ESP, ESP in UDP nor AH"
    InIke                "in_ike"                  "an IKE message (non-ESP marker), which the data plane does not process"
    InNatKeepalive       "in_nat_keepalive"        "a NAT keepalive (RFC 3948 2.3)"
    InNoStates           "in_no_states"            "no SA has this SPI and destination"
    InStateMismatch      "in_state_mismatch"       "the encapsulation is not the SA's, or the inner packet does not match its selectors"
    InStateInvalid       "in_state_invalid"        "the SA was removed while the packet was in flight"
    InStateSeqError      "in_state_seq_error"      "the sequence number is zero, below the replay window's left edge, or already received"
    InStateNotNoted      "in_state_not_noted"      "too many packets were held until their sequence numbers were recorded on disk"
    InStateProtoError    "in_state_proto_error"    "ICV failure"
    InStateModeError     "in_state_mode_error"     "the decrypted payload does not match the SA's mode"
    InBufferError        "in_buffer_error"         "too many nested SAs"
    InStateExpired       "in_state_expired"        "the hard lifetime of the SA expired"
    InPadding            "in_padding"              "the padding is longer than the payload, or not 1, 2, 3, ..."
    InEcn                "in_ecn"                  "outer CE, inner Not-ECT (RFC 6040 4.2)"
    InTmplMismatch       "in_tmpl_mismatch"        "the packet did not arrive through the SA that its policy requires"
    InNoPols             "in_no_pols"              "no inbound policy matches"
    InPolBlock           "in_pol_block"            "an inbound policy discards the packet"
    InFragmentPorts      "in_fragment_ports"       "a fragment without ports, for which a policy with ports might apply"
    InIcmpQuote          "in_icmp_quote"           "an ICMP error quotes a packet that is not one of the SA's traffic (RFC 4301 6.2)"
    InDummy              "in_dummy"                "a dummy packet (next header 59), discarded as intended (RFC 4303 2.6)"
    InIptfsError         "in_iptfs_error"          "an AGGFRAG payload (IP-TFS) is malformed or does not continue the previous one"
    InIptfsLate          "in_iptfs_late"           "an AGGFRAG payload is below the reorder window's left edge"
    InIptfsIncomplete    "in_iptfs_incomplete"     "an inner packet was fragmented over several AGGFRAG payloads, and some did not arrive"
    InError              "in_error"                "no processor could complete the job"
    OutHdrError          "out_hdr_error"           "the packet to protect is malformed"
    OutFragment          "out_fragment"            "a fragment, which transport mode cannot protect (RFC 4303 3.3.4)"
    OutNoStates          "out_no_states"           "no outbound SA matches the packet"
    OutNoPols            "out_no_pols"             "no outbound policy matches"
    OutPolBlock          "out_pol_block"           "an outbound policy discards the packet"
    OutFragmentPorts     "out_fragment_ports"      "a fragment without ports, for which a policy with ports might apply"
    OutStateInvalid      "out_state_invalid"       "the SA was removed while the packet was in flight"
    OutStateSeqError     "out_state_seq_error"     "sequence overflow, or the reserved sequence numbers of the SA are exhausted"
    OutStateExpired      "out_state_expired"       "the hard lifetime of the SA expired"
    OutStateIvError      "out_state_iv_error"      "the reserved IVs of the SA are exhausted"
    OutStateModeError    "out_state_mode_error"    "the SA aggregates (IP-TFS), so packets must pass through its queue"
    OutNoQueueSpace      "out_no_queue_space"      "the queue of an SA that aggregates (IP-TFS) is full"
    OutPathMtu           "out_path_mtu"            "the protected packet would exceed the path MTU; it is fragmented, or its source gets an ICMP error"
    OutTooBig            "out_too_big"             "the protected packet would exceed the maximum length of IP"
    OutError             "out_error"               "no processor could complete the job"
    Overtaken            "overtaken"               "its core was held up for so long that later packets of the SA went before it"
    QueueFull            "queue_full"              "the engine had no free slot"
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
