//! Builds the shim where `intel-ipsec-mb.h` and its library are installed, new enough, and sets the cfg
//! `ipsec_mb`; elsewhere the crate is empty and says so once.

use std::env;
use std::path::{Path, PathBuf};

include!("src/max_burst.rs");
include!("packages.rs");

const HEADER: &str = "intel-ipsec-mb.h";
/// 1.3 is the first with the self test and the names of CPU flags that the shim uses; Ubuntu 22.04 has 1.2.
const OLDEST: u32 = 0x01_03_00;

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
    let installed = find();
    let Some((include, lib)) = installed.iter().find(|(include, _)| version(include) >= OLDEST) else {
        look_again_with_new_packages();
        let why = if installed.is_empty() { "is not installed" } else { "is older than 1.3" };
        println!("cargo::warning=libipsec-mb-dev {why}: building with the portable crypto backend only");
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
fn find() -> Vec<(PathBuf, PathBuf)> {
    let prefixes = match env::var_os("IPSEC_MB_DIR") {
        Some(dir) => vec![PathBuf::from(dir)],
        None => vec![PathBuf::from("/usr"), PathBuf::from("/usr/local")],
    };
    let has_library =
        |dir: &Path| ["libIPSec_MB.a", "libIPSec_MB.so"].iter().any(|name| dir.join(name).exists());
    let folders = |prefix: PathBuf| {
        let include = prefix.join("include");
        let lib = ["lib/x86_64-linux-gnu", "lib64", "lib"]
            .iter()
            .map(|dir| prefix.join(dir))
            .find(|dir| has_library(dir))?;
        include.join(HEADER).exists().then_some((include, lib))
    };
    prefixes.into_iter().filter_map(folders).collect()
}

/// `IMB_VERSION_NUM` of the header in a folder, a byte each for major, minor and patch; 0 where it has none.
fn version(include: &Path) -> u32 {
    let header = std::fs::read_to_string(include.join(HEADER)).unwrap_or_default();
    let number = header.lines().find_map(|line| line.strip_prefix("#define IMB_VERSION_NUM 0x"));
    number.and_then(|hex| u32::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}
