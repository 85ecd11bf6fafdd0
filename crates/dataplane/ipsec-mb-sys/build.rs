//! Builds the shim where `intel-ipsec-mb.h` and its library are installed, and sets the cfg
//! `ipsec_mb`; elsewhere the crate is empty and says so once.

use std::env;
use std::path::{Path, PathBuf};

include!("src/max_burst.rs");
include!("packages.rs");

const HEADER: &str = "intel-ipsec-mb.h";

fn main() {
    println!("cargo::rerun-if-changed=src/shim.c");
    println!("cargo::rerun-if-changed=src/max_burst.rs");
    println!("cargo::rerun-if-changed=packages.rs");
    println!("cargo::rerun-if-env-changed=FOREBAY_NO_IPSEC_MB");
    println!("cargo::rerun-if-env-changed=IPSEC_MB_DIR");

    if env::var_os("CARGO_CFG_MIRI").is_some() {
        // Miri runs no C: src/stand_in.rs takes the place of shim.c and of the library.
        println!("cargo::rustc-cfg=ipsec_mb");
        println!("cargo::metadata=available=1");
        return;
    }
    let x86_64 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    let wanted = env::var_os("FOREBAY_NO_IPSEC_MB").is_none_or(|v| v.is_empty() || v == "0");
    if !x86_64 || !wanted {
        return;
    }
    let Some((include, lib)) = find() else {
        look_again_with_new_packages();
        println!(
            "cargo::warning=libipsec-mb-dev is not installed: building with the portable crypto backend only"
        );
        return;
    };
    println!("cargo::rerun-if-changed={}", include.join(HEADER).display());
    cc::Build::new()
        .file("src/shim.c")
        .include(include)
        .flag("-DNO_COMPAT_IMB_API_053")
        .define("FB_MAX_BURST", MAX_BURST.to_string().as_str())
        .compile("forebay_ipsec_mb_shim");
    println!("cargo::rustc-link-search=native={}", lib.display());
    // The static archive, where there is one, spares the user the library at run time.
    let kind = if lib.join("libIPSec_MB.a").exists() { "static" } else { "dylib" };
    println!("cargo::rustc-link-lib={kind}=IPSec_MB");
    println!("cargo::rustc-cfg=ipsec_mb");
    // Seen by the build scripts of crates that depend on this one, as DEP_IPSEC_MB_AVAILABLE.
    println!("cargo::metadata=available=1");
}

/// The folders of the header and of the library: under `IPSEC_MB_DIR`, or where distributions put them.
fn find() -> Option<(PathBuf, PathBuf)> {
    let prefixes = match env::var_os("IPSEC_MB_DIR") {
        Some(dir) => vec![PathBuf::from(dir)],
        None => vec![PathBuf::from("/usr"), PathBuf::from("/usr/local")],
    };
    let has_library =
        |dir: &Path| ["libIPSec_MB.a", "libIPSec_MB.so"].iter().any(|name| dir.join(name).exists());
    prefixes.into_iter().find_map(|prefix| {
        let include = prefix.join("include");
        let lib = ["lib/x86_64-linux-gnu", "lib64", "lib"]
            .iter()
            .map(|dir| prefix.join(dir))
            .find(|dir| has_library(dir))?;
        include.join(HEADER).exists().then_some((include, lib))
    })
}
