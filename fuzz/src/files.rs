//! The gateway's file, and what is taken over from other systems.

use std::path::Path;

use forebay_config as config;
use forebay_import as import;
use miette::Diagnostic;

/// Longest text that is tried.
const TEXT_MAX: usize = 8_192;

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().filter(|text| text.len() <= TEXT_MAX)
}

/// Reads `data` as a gateway's file: every error has its line in it.
pub fn gateway_file(data: &[u8]) {
    let Some(text) = text(data) else { return };
    // Other files that it names are not this target's.
    if text.contains("_file") || text.contains("sas") {
        return;
    }
    match config::parse(text, "fuzz.toml", Path::new("/nonexistent")) {
        Ok(config) => {
            assert!(!config.outside.is_empty(), "a gateway without a peer's side");
            assert!(config.routes().windows(2).all(|pair| pair[0] < pair[1]), "each route once, in order");
        }
        Err(errors) => {
            assert!(!errors.findings().is_empty());
            let lines = text.lines().count() + 1;
            for finding in errors.findings() {
                assert!(finding.line().is_none_or(|line| (1..=lines).contains(&line)));
                let _ = (finding.to_string(), finding.help().map(|help| help.to_string()));
            }
        }
    }
}

/// Reads `data` as each of the forms that are imported, and writes what was understood.
pub fn imports(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let local = [[192, 0, 2, 1].into()];
    for imported in [import::xfrm::read(text, &local), import::secgw::read(text)] {
        let written = import::write(&imported, "fuzz", None);
        gateway_file(written.text.as_bytes());
    }
    // Whatever is included is the text itself.
    let path = Path::new("/fuzz/fuzz.conf");
    let own = |pattern: &Path| {
        let text = text.to_owned().into();
        Ok(vec![import::Text { path: pattern.to_owned(), text }])
    };
    for imported in
        [import::swanctl::read(text, Some(path), &own), import::ipsec_conf::read(text, Some(path), &own)]
    {
        gateway_file(imported.write("fuzz").as_bytes());
    }
    let imported = import::wireguard::read(text);
    gateway_file(imported.write("fuzz").as_bytes());
}
