//! One example of each key.

/// How `key` may be given.
pub(super) fn of(key: &str) -> &'static str {
    match key {
        "name" => "name = \"east-out\"",
        "direction" => "direction = \"out\" for packets that leave, \"in\" for those that arrive",
        "spi" => "spi = 0x1001, the number that both peers know the SA by",
        "protocol" => "protocol = \"esp\"",
        "mode" => "mode = \"tunnel\" or \"transport\"",
        "proposal" => "proposal = \"aes128gcm16\"",
        "key" => "key = \"...\" with the cipher key in hex, its salt behind it; or key_file",
        "auth_key" => "auth_key = \"...\" with the integrity key in hex; or auth_key_file",
        "key_file" | "auth_key_file" => "the path of a file that holds the key in hex",
        "local" => "local = \"192.0.2.1\", this side's outer address",
        "remote" => "remote = \"192.0.2.2\", the peer's outer address",
        "esn" => "esn = true for sequence numbers of 64 bits",
        "replay_window" => "replay_window = 64, in packets",
        "encapsulation" => "encapsulation = \"none\" or \"udp\"",
        "allow_weak" => "allow_weak = false",
        "local_ts" => "local_ts = [\"10.1.0.0/16\"]",
        "remote_ts" => "remote_ts = [\"10.2.0.0/16\"]",
        "cpu" => "cpu = 1, the number of a worker thread, from 0",
        "classes" => "classes = [\"ef\", \"af41-af43\", 10]",
        "outer" => "outer = \"gateway-out\", the name of the SA that goes around this one",
        "check_padding" => "check_padding = false for a peer that does not pad with 1, 2, 3, ...",
        "follow_peer" => "follow_peer = false for a peer that stays where it is",
        "original_local" => "original_local = \"203.0.113.1\", the address that the peer sends to",
        "original_remote" => {
            "original_remote = \"10.9.0.7\", the address that the peer sends from, before any NAT"
        }
        "copy_dscp" => "copy_dscp = \"out\", \"in\", \"yes\" or \"no\"",
        "dscp" => "dscp = 46 or \"ef\", for outer headers",
        "copy_ecn" => "copy_ecn = false for a peer that does not keep to RFC 6040",
        "copy_df" => "copy_df = false to let routers fragment",
        "df" => "df = \"copy\", \"set\" or \"clear\"",
        "flow_label" => "flow_label = \"zero\", \"copy\", \"hash\" or a number of 20 bits",
        "ttl" => "ttl = 64, in hops, or \"copy\"",
        "mtu" => "mtu = 1400, in bytes",
        "tfc_padding" => "tfc_padding = 512, in bytes, or \"mtu\"",
        "life_time" => "life_time = \"1h\"",
        "rekey_time" => "rekey_time = \"50m\"",
        "life_use_time" => "life_use_time = \"1h\" from the first packet on",
        "rekey_use_time" => "rekey_use_time = \"50m\" from the first packet on",
        "life_bytes" => "life_bytes = \"10G\"",
        "rekey_bytes" => "rekey_bytes = \"9G\"",
        "life_packets" => "life_packets = \"20M\"",
        "rekey_packets" => "rekey_packets = \"18M\"",
        "iptfs" => "iptfs = { max_delay = \"500us\" }, or a table `[sa.iptfs]` behind the SA",
        "packet_size" => "packet_size = 1400, in bytes",
        "rate" => "rate = 10000, in packets a second; leave it out to follow the load",
        "max_delay" => "max_delay = \"500us\"",
        "fragment" => "fragment = false for a peer that does not put packets together",
        "reorder_window" => "reorder_window = 3, in packets",
        "lost_after" => "lost_after = \"20ms\"",
        "queue" => "queue = 262144, in bytes",
        "congestion" => "congestion = true to exchange congestion information",
        "ecn" => "ecn = true to copy ECN marks to outer headers",
        "action" => "action = \"protect\", \"bypass\" or \"discard\"",
        "sa" => "sa = \"east-out\", or several: sa = [\"east-out\", \"east-out-ef\"]",
        _ => "see the manual",
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Section;
    use super::of;

    #[test]
    fn every_key_has_one() {
        for section in [Section::Sa, Section::Policy, Section::Iptfs] {
            for key in section.keys().filter(|key| !key.ends_with("key_file")) {
                assert!(of(key).starts_with(&format!("{key} = ")), "{key}");
            }
        }
    }
}
