//! Compiles the cores by Verilator where it is installed, and sets the cfg `rtl`; elsewhere the crate is empty.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

include!("packages.rs");

/// A core: its name in C++, the top module, and its parameters.
type Core = (&'static str, &'static str, &'static [&'static str]);
const CORES: [Core; 7] = [
    ("AesGcm", "aes_gcm", &[]),
    ("ChaChaPoly", "chacha20_poly1305", &[]),
    ("EspCtrSha1", "esp_engine", &["-GCIPHER=1", "-GINTEGRITY=2"]),
    ("EspCbcSha256", "esp_engine", &["-GCIPHER=2", "-GINTEGRITY=3"]),
    ("Esp3DesSha1", "esp_engine", &["-GCIPHER=3", "-GINTEGRITY=2"]),
    ("EspGcm", "esp_engine", &["-GCIPHER=4", "-GINTEGRITY=0"]),
    ("EspChaCha", "esp_engine", &["-GCIPHER=5", "-GINTEGRITY=0"]),
];
/// Fourteen rounds of AES side by side take the compiler minutes: the feature `pipelined`.
const PIPELINED: Core = ("AesGcmPipelined", "aes_gcm", &["-GPIPELINED=1", "-GDIGIT=128"]);

fn main() {
    for source in ["src/engine.cc", "src/engine.h", "src/model.h", "src/aead.h", "src/esp.h", "packages.rs"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=FOREBAY_NO_RTL");
    let wanted = env::var_os("FOREBAY_NO_RTL").is_none_or(|value| value.is_empty() || value == "0");
    // A link to hardware/, in whose place a published crate has the files.
    let hardware = Path::new(env!("CARGO_MANIFEST_DIR")).join("verilog");
    let folders = folders(&hardware);
    for folder in &folders {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    if !wanted || env::var_os("CARGO_CFG_MIRI").is_some() || env::var("HOST") != env::var("TARGET") {
        return;
    }
    let Some(root) = verilator_root() else { return look_again_with_new_packages() };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    // Waveforms are compressed by zlib.
    let zlib = pkg_config::Config::new().cargo_metadata(false).probe("zlib").is_ok();
    // Clippy, whose build of this script is one of its own, links nothing: it would spend most of its time on the cores.
    if env::var_os("CLIPPY_ARGS").is_some() {
        return announce(zlib);
    }

    let mut build = cc::Build::new();
    build.cpp(true).std("c++20").warnings(false).debug(false).flag_if_supported("-faligned-new");
    build.include(root.join("include")).include(root.join("include/vltstd")).include("src");
    for (name, value) in [("VM_COVERAGE", "0"), ("VM_SC", "0"), ("VM_TRACE_VCD", "0")] {
        build.define(name, value);
    }
    for name in ["VM_TRACE", "VM_TRACE_FST"] {
        build.define(name, if zlib { "1" } else { "0" });
    }
    // What runs every cycle is optimised; what runs at the begin, or only for waveforms, would take most of the compiler's time.
    let (mut fast, mut slow) = (build.clone(), build);
    fast.opt_level(1).file("src/engine.cc");
    slow.opt_level(0);
    slow.file(root.join("include/verilated.cpp")).file(root.join("include/verilated_threads.cpp"));
    if zlib {
        slow.file(root.join("include/verilated_fst_c.cpp"));
    }
    let pipelined = env::var_os("CARGO_FEATURE_PIPELINED").is_some();
    if pipelined {
        fast.define("FOREBAY_PIPELINED", None);
    }
    for (name, top, parameters) in CORES.into_iter().chain(pipelined.then_some(PIPELINED)) {
        let folder = out.join(name);
        // Parts of an earlier model would be compiled with it.
        let _ = fs::remove_dir_all(&folder);
        let mut verilator = Command::new("verilator");
        verilator
            .args(["--cc", "-O3", "-Wno-fatal", "--x-assign", "0", "--x-initial", "0", "-Mdir"])
            .arg(&folder);
        verilator.args(["--prefix", &format!("V{name}"), "--top-module", top]).args(parameters);
        if zlib {
            verilator.args(["--trace-fst", "--trace-depth", "2", "--no-trace-params"]);
        }
        for folder in &folders {
            verilator.arg("-y").arg(folder);
        }
        let made = verilator.arg(format!("{top}.v")).output();
        if !made.as_ref().is_ok_and(|made| made.status.success()) {
            let why = made
                .map_or_else(|error| error.to_string(), |made| String::from_utf8_lossy(&made.stderr).into());
            println!(
                "cargo::warning=verilator: {top}: {}; going on without RTL",
                why.lines().next().unwrap_or("")
            );
            return;
        }
        fast.include(&folder);
        slow.include(&folder);
        for source in sources(&folder) {
            let name = source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_slow = ["Slow", "Trace", "Syms"].iter().any(|part| name.contains(part));
            if is_slow { &mut slow } else { &mut fast }.file(source);
        }
    }
    // What is needed stands behind what needs it.
    fast.compile("forebay_rtl");
    slow.compile("forebay_rtl_slow");
    announce(zlib);
}

/// Says what the crate has, to itself and to the build scripts of crates that depend on it, and the library of waveforms.
fn announce(zlib: bool) {
    if zlib {
        println!("cargo::rustc-link-lib=z");
        println!("cargo::rustc-cfg=waveforms");
    }
    println!("cargo::rustc-cfg=rtl");
    println!("cargo::metadata=available=1");
}

/// Where Verilator has its headers; `None` if it is not installed or too old.
fn verilator_root() -> Option<PathBuf> {
    let said = |argument: &[&str]| {
        let done =
            Command::new("verilator").args(argument).output().ok().filter(|done| done.status.success())?;
        Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    let version = said(&["--version"])?;
    let major: u32 = version.split([' ', '.']).nth(1)?.parse().ok()?;
    (major >= 5).then_some(())?;
    Some(PathBuf::from(said(&["--getenv", "VERILATOR_ROOT"])?))
}

/// Folders with cores.
fn folders(hardware: &Path) -> Vec<PathBuf> {
    let hardware = hardware.canonicalize().unwrap_or_else(|_| hardware.to_owned());
    let all = fs::read_dir(hardware).map(|all| all.flatten().map(|entry| entry.path()).collect::<Vec<_>>());
    let has_cores = |path: &PathBuf| path.is_dir() && !path.ends_with("test") && !path.ends_with("formal");
    let mut folders: Vec<PathBuf> = all.unwrap_or_default().into_iter().filter(has_cores).collect();
    folders.sort();
    folders
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).map(|all| all.flatten().map(|entry| entry.path()).collect::<Vec<_>>());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "cpp");
    let mut sources: Vec<PathBuf> = all.unwrap_or_default().into_iter().filter(is_source).collect();
    sources.sort();
    sources
}
