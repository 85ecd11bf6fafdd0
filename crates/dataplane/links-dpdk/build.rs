//! Passes on whether `dpdk-sys` found DPDK.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(dpdk)");
    println!("cargo::rerun-if-env-changed=DEP_DPDK_AVAILABLE");
    if std::env::var_os("DEP_DPDK_AVAILABLE").is_some() {
        println!("cargo::rustc-cfg=dpdk");
    }
}
