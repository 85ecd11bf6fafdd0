//! The cfg `rtl` where `rtl-sys` has the cores.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(rtl)");
    println!("cargo::rerun-if-env-changed=DEP_FOREBAY_RTL_AVAILABLE");
    if std::env::var_os("DEP_FOREBAY_RTL_AVAILABLE").is_some() {
        println!("cargo::rustc-cfg=rtl");
    }
}
