//! The studies of the repository, in the program: so that they run wherever it is installed.

/// A study's files by name.
type Files = &'static [(&'static str, &'static str)];

macro_rules! study {
    ($name:literal, $($file:literal),+) => {
        ($name, &[$(($file, include_str!(concat!("../../../../studies/", $name, "/", $file)))),+])
    };
}

/// By name.
pub(crate) const STUDIES: &[(&str, Files)] = &[
    study!("multi-accelerator", "study.rhai", "host.toml", "buses.toml"),
    study!("embedded-ipsec", "study.rhai", "esp.toml", "ah.toml", "gcm.toml", "sha.toml"),
    study!("small-packets", "study.rhai", "host.toml"),
    study!("modern", "study.rhai", "core.toml", "pcie4.toml", "pcie5.toml"),
    study!("network-processor", "study.rhai", "interrupt-driven.toml", "busy-waiting.toml", "markov.toml"),
    study!("inline-card", "study.rhai", "video.toml", "bulk.toml", "interrupts.toml", "lookaside.toml"),
    study!("scaling", "study.rhai", "cores.toml"),
    study!("policies", "study.rhai", "papers.toml", "tiny.toml", "classes.toml"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::Study;

    #[test]
    fn all_that_is_in_the_repository_is_in_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies");
        let mut names: Vec<_> = std::fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap())
            // Folders without a script are scenarios for the other commands.
            .filter(|entry| entry.path().join("study.rhai").is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut shipped = Study::shipped();
        shipped.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(names, shipped.iter().map(|study| study.name.clone()).collect::<Vec<_>>());
        for study in shipped {
            assert_eq!(study.files, Study::load(&root.join(&study.name)).unwrap().files, "{}", study.name);
        }
    }
}
