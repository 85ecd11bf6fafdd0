//! Builds the shim where DPDK's headers are installed, and sets the cfg `dpdk`; elsewhere the crate is empty.

use std::env;

include!("packages.rs");

fn main() {
    println!("cargo::rerun-if-changed=src/shim.c");
    println!("cargo::rerun-if-changed=src/port.c");
    println!("cargo::rerun-if-changed=src/fault.c");
    println!("cargo::rerun-if-changed=packages.rs");
    println!("cargo::rerun-if-env-changed=FOREBAY_NO_DPDK");
    println!("cargo::rerun-if-env-changed=FOREBAY_DPDK_SANITIZE");
    let wanted = env::var_os("FOREBAY_NO_DPDK").is_none_or(|value| value.is_empty() || value == "0");
    if !wanted || env::var_os("CARGO_CFG_MIRI").is_some() {
        return;
    }
    // Sessions are one object a device since 22.11.
    let mut search = pkg_config::Config::new();
    let Ok(dpdk) = search.atleast_version("22.11").cargo_metadata(false).probe("libdpdk") else {
        return look_again_with_new_packages();
    };
    let mut build = cc::Build::new();
    build
        .file("src/shim.c")
        .file("src/port.c")
        .define("ALLOW_EXPERIMENTAL_API", None)
        .includes(&dpdk.include_paths)
        .flag("-include")
        .flag("rte_config.h");
    // Headers of DPDK use these instructions unconditionally.
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        build.flag("-march=corei7");
    }
    if env::var_os("CARGO_FEATURE_FAULTS").is_some() {
        build.file("src/fault.c");
    }
    // scripts/dpdk.sh; the program has to load the sanitizer's library first.
    if let Ok(sanitizers) = env::var("FOREBAY_DPDK_SANITIZE") {
        build.flag(format!("-fsanitize={sanitizers}")).flag("-fno-omit-frame-pointer");
        println!("cargo::rustc-link-lib=dylib=asan");
        println!("cargo::rustc-link-lib=dylib=ubsan");
    }
    build.compile("forebay_dpdk_shim");
    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    // Drivers are loaded by the library itself when it starts.
    for library in [
        "rte_cryptodev",
        "rte_ethdev",
        "rte_bus_vdev",
        "rte_mbuf",
        "rte_mempool",
        "rte_ring",
        "rte_kvargs",
        "rte_eal",
    ] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    println!("cargo::rustc-cfg=dpdk");
    println!("cargo::metadata=available=1");
}
