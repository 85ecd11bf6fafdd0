//! Passes on whether `ipsec-mb-sys` found the library.

fn main() {
    println!("cargo::rerun-if-env-changed=DEP_IPSEC_MB_AVAILABLE");
    if std::env::var_os("DEP_IPSEC_MB_AVAILABLE").is_some() {
        println!("cargo::rustc-cfg=ipsec_mb");
    }
}
