//! Numbers of the kernel's interface (`linux/xfrm.h`, `linux/rtnetlink.h`).

/// Address families.
pub mod family {
    /// `AF_UNSPEC`.
    pub const UNSPEC: u16 = 0;
    /// `AF_INET`.
    pub const INET: u16 = 2;
    /// `AF_INET6`.
    pub const INET6: u16 = 10;
}

/// `XFRM_MSG_`.
pub mod message {
    pub const NEW_SA: u16 = 0x10;
    pub const DELETE_SA: u16 = 0x11;
    pub const GET_SA: u16 = 0x12;
    pub const NEW_POLICY: u16 = 0x13;
    pub const DELETE_POLICY: u16 = 0x14;
    pub const GET_POLICY: u16 = 0x15;
    pub const ACQUIRE: u16 = 0x17;
    pub const EXPIRE: u16 = 0x18;
    pub const UPDATE_POLICY: u16 = 0x19;
    pub const UPDATE_SA: u16 = 0x1a;
    pub const POLICY_EXPIRE: u16 = 0x1b;
    pub const FLUSH_SA: u16 = 0x1c;
    pub const FLUSH_POLICY: u16 = 0x1d;
    pub const NEW_AE: u16 = 0x1e;
    pub const MIGRATE: u16 = 0x21;
    /// `XFRM_MSG_MIGRATE_STATE`, Linux 7.2: one SA gets other addresses and no other message says so.
    pub const MIGRATE_STATE: u16 = 0x29;
}

/// `XFRMA_`.
pub mod attribute {
    pub const ALG_AUTH: u16 = 1;
    pub const ALG_CRYPT: u16 = 2;
    pub const ALG_COMP: u16 = 3;
    pub const ENCAP: u16 = 4;
    pub const TEMPLATES: u16 = 5;
    pub const POLICY: u16 = 7;
    pub const LIFETIME_VAL: u16 = 9;
    pub const REPLAY_VAL: u16 = 10;
    pub const POLICY_TYPE: u16 = 16;
    pub const ALG_AEAD: u16 = 18;
    pub const ALG_AUTH_TRUNC: u16 = 20;
    pub const MARK: u16 = 21;
    pub const TFC_PAD: u16 = 22;
    pub const REPLAY_ESN_VAL: u16 = 23;
    pub const SA_EXTRA_FLAGS: u16 = 24;
    pub const OFFLOAD_DEVICE: u16 = 28;
    pub const IF_ID: u16 = 31;
    pub const SA_DIRECTION: u16 = 33;
    /// `XFRMA_SA_PCPU`, Linux 6.13.
    pub const SA_CPU: u16 = 35;
}

/// Lengths of structures in bytes, padding at their ends included.
pub mod len {
    /// `xfrm_usersa_info`.
    pub const SA_INFO: usize = 224;
    /// `xfrm_usersa_id`.
    pub const SA_ID: usize = 24;
    /// `xfrm_user_expire`.
    pub const EXPIRE: usize = 232;
    /// `xfrm_userpolicy_info`.
    pub const POLICY_INFO: usize = 168;
    /// `xfrm_userpolicy_id`.
    pub const POLICY_ID: usize = 64;
    /// `xfrm_user_tmpl`.
    pub const TEMPLATE: usize = 64;
    /// `xfrm_aevent_id`.
    pub const AE_ID: usize = 48;
    /// `xfrm_user_acquire`.
    pub const ACQUIRE: usize = 280;
}

/// `XFRM_STATE_` flags.
pub mod flag {
    pub const NO_ECN: u8 = 1;
    pub const DECAP_DSCP: u8 = 2;
    pub const NO_PMTU_DISC: u8 = 4;
    pub const ALIGN_4: u8 = 64;
    pub const ESN: u8 = 128;
    /// `XFRM_SA_XFLAG_DONT_ENCAP_DSCP`.
    pub const EXTRA_DONT_ENCAP_DSCP: u32 = 1;
    /// `XFRM_POLICY_CPU_ACQUIRE` of policies, Linux 6.13.
    pub const POLICY_CPU_ACQUIRE: u8 = 4;
}

/// `XFRM_MODE_`.
pub mod mode {
    pub const TRANSPORT: u8 = 0;
    pub const TUNNEL: u8 = 1;
}

/// Multicast groups as bits.
pub mod group {
    /// `XFRMNLGRP_EXPIRE`.
    pub const EXPIRE: u32 = 1 << 1;
    /// `XFRMNLGRP_SA`.
    pub const SA: u32 = 1 << 2;
    /// `XFRMNLGRP_POLICY`.
    pub const POLICY: u32 = 1 << 3;
    /// `XFRMNLGRP_MIGRATE`.
    pub const MIGRATE: u32 = 1 << 6;
    /// `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR`.
    pub const ADDRESSES: u32 = 0x10 | 0x100;
}

/// `RTM_` messages and attributes about addresses.
pub mod route {
    pub const NEW_ADDRESS: u16 = 20;
    pub const DELETE_ADDRESS: u16 = 21;
    pub const GET_ADDRESS: u16 = 22;
    /// `IFA_ADDRESS`: of this side, or of the peer on a point-to-point link.
    pub const ADDRESS: u16 = 1;
    /// `IFA_LOCAL`.
    pub const LOCAL: u16 = 2;
    /// Length of `struct ifaddrmsg`.
    pub const HEADER: usize = 8;
}
