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

            /// What it means, in one line.
            pub fn explanation(self) -> &'static str {
                match self { $(DropReason::$variant => $text),* }
            }
        }
    };
}

drop_reasons! {
    NotIp                "not_ip"                  "the frame carries no IP packet"
    Snapped              "snapped"                 "the capture holds only the begin of the packet"
    TooLong              "too_long"                "the packet is larger than a packet buffer"
    InHdrError           "in_hdr_error"            "the outer headers are malformed, the ESP packet is too short, or the AH header has another length than the SA's"
    InFragment           "in_fragment"             "a fragment of an outer packet: not reassembled"
    DupFrag              "dup_frag"                "a fragment that is held already, dropped without harm"
    FragError            "frag_error"              "a fragment that is malformed, past the end of IP, or first without the whole header chain"
    FragOverlap          "frag_overlap"            "fragments of one datagram overlap or contradict each other (RFC 5722): all are dropped"
    FragReasmTimeout     "frag_reasm_timeout"      "not all fragments of the datagram came in time"
    FragLimit            "frag_limit"              "too many fragments of a datagram, of a source or in all: the oldest are dropped"
    InNoIpsec            "in_no_ipsec"             "neither ESP, ESP in UDP nor AH"
    InIke                "in_ike"                  "an IKE message (non-ESP marker), not for the data plane"
    InNestAway           "in_nest_away"            "found in an SA of one core, for an SA of another: say of it that it is inside the other"
    InNatKeepalive       "in_nat_keepalive"        "a NAT keepalive (RFC 3948 2.3)"
    InNoStates           "in_no_states"            "no SA has this SPI and destination"
    InStateMismatch      "in_state_mismatch"       "the SA wants another encapsulation, or the inner packet is outside its selectors"
    InStateInvalid       "in_state_invalid"        "the SA was removed while the packet was under way"
    InStateSeqError      "in_state_seq_error"      "sequence number zero, left of the replay window, or received before"
    InStateNotNoted      "in_state_not_noted"      "too many packets waited until their sequence numbers were noted on disk"
    InStateProtoError    "in_state_proto_error"    "the ICV does not match"
    InStateModeError     "in_state_mode_error"     "the deciphered payload does not fit the SA's mode"
    InBufferError        "in_buffer_error"         "more SAs one inside the other than are followed"
    InStateExpired       "in_state_expired"        "the hard lifetime of the SA has ended"
    InPadding            "in_padding"              "padding that is longer than the payload, or not 1, 2, 3, ..."
    InEcn                "in_ecn"                  "a congestion mark outside and a sender inside who would not know it (RFC 6040 4.2)"
    InTmplMismatch       "in_tmpl_mismatch"        "a policy wants the packet protected by an SA that it did not come through"
    InNoPols             "in_no_pols"              "no inbound policy matches"
    InPolBlock           "in_pol_block"            "an inbound policy discards it"
    InFragmentPorts      "in_fragment_ports"       "a fragment without ports, where a policy by ports may have been meant"
    InDummy              "in_dummy"                "a dummy packet (next header 59), dropped as meant"
    InIptfsError         "in_iptfs_error"          "an aggregated payload (IP-TFS) that is malformed or contradicts the one before"
    InIptfsLate          "in_iptfs_late"           "an aggregated payload left of the reorder window"
    InIptfsIncomplete    "in_iptfs_incomplete"     "an inner packet in several payloads, of which not all came"
    InError              "in_error"                "no processor could do the job"
    OutHdrError          "out_hdr_error"           "the packet to protect is malformed"
    OutFragment          "out_fragment"            "a fragment, which transport mode cannot protect (RFC 4303 3.3.4)"
    OutNoStates          "out_no_states"           "no outbound SA is for the packet"
    OutNoPols            "out_no_pols"             "no outbound policy matches"
    OutPolBlock          "out_pol_block"           "an outbound policy discards it"
    OutFragmentPorts     "out_fragment_ports"      "a fragment without ports, where a policy by ports may have been meant"
    OutStateInvalid      "out_state_invalid"       "the SA was removed while the packet was under way"
    OutStateSeqError     "out_state_seq_error"     "the sequence numbers of the SA, or those reserved for it, are used up"
    OutStateExpired      "out_state_expired"       "the hard lifetime of the SA has ended"
    OutStateIvError      "out_state_iv_error"      "the IVs reserved for the SA are used up"
    OutStateModeError    "out_state_mode_error"    "the SA aggregates (IP-TFS), so packets have to go through its queue"
    OutNoQueueSpace      "out_no_queue_space"      "the queue of an SA that aggregates (IP-TFS) has no room"
    OutPathMtu           "out_path_mtu"            "the protected packet would be longer than the path takes: to be divided, or reported to its source"
    OutTooBig            "out_too_big"             "the protected packet would be longer than IP allows"
    OutError             "out_error"               "no processor could do the job"
    HandOffFull          "hand_off_full"           "the queue to the core that the packet's SA is at was full"
    QueueFull            "queue_full"              "the engine had no room"
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
