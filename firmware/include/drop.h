/* Why a packet was not passed on. One list gives number and name; names are those of the gateway
 * (crates/dataplane/drops/src/lib.rs), which are Linux's where it has one. */
#ifndef DROP_H
#define DROP_H

/* clang-format off */
#define DROP_LIST(drop)                                                                        \
    drop(PASSED, "passed")                             /* not dropped */                       \
    drop(TOO_LONG, "too_long")                         /* larger than a packet buffer */       \
    drop(IN_HDR_ERROR, "in_hdr_error")                 /* outer headers malformed, too short */ \
    drop(IN_FRAGMENT, "in_fragment")                   /* a fragment of an outer packet */     \
    drop(IN_NO_STATES, "in_no_states")                 /* no SA has this SPI and destination */ \
    drop(IN_STATE_MISMATCH, "in_state_mismatch")       /* outside the selectors of its SA */   \
    drop(IN_STATE_SEQ_ERROR, "in_state_seq_error")     /* replayed, or left of the window */   \
    drop(IN_STATE_PROTO_ERROR, "in_state_proto_error") /* the ICV does not match */            \
    drop(IN_STATE_MODE_ERROR, "in_state_mode_error")   /* the payload does not fit the mode */ \
    drop(IN_PADDING, "in_padding")                     /* too long, or not 1, 2, 3, ... */     \
    drop(IN_ECN, "in_ecn")                             /* CE outside, Not-ECT inside */        \
    drop(IN_NO_POLS, "in_no_pols")                     /* no inbound policy matches */         \
    drop(IN_POL_BLOCK, "in_pol_block")                 /* a policy discards it, or wants IPsec */ \
    drop(IN_CHECKSUM, "in_checksum")                   /* TCP or UDP checksum wrong (end host) */ \
    drop(IN_DUMMY, "in_dummy")                         /* next header 59, dropped as meant */  \
    drop(OUT_HDR_ERROR, "out_hdr_error")               /* the packet to protect is malformed */ \
    drop(OUT_FRAGMENT, "out_fragment")                 /* a fragment, in transport mode */     \
    drop(OUT_NO_POLS, "out_no_pols")                   /* no outbound policy matches */        \
    drop(OUT_POL_BLOCK, "out_pol_block")               /* a policy discards it */              \
    drop(OUT_STATE_SEQ_ERROR, "out_state_seq_error")   /* sequence numbers used up */          \
    drop(OUT_TOO_BIG, "out_too_big")                   /* longer than IP or the buffer allow */

/* clang-format on */

enum drop {
#define DROP_NUMBER(number, name) DROP_##number,
    DROP_LIST(DROP_NUMBER)
#undef DROP_NUMBER
        DROP_COUNT
};

#endif
