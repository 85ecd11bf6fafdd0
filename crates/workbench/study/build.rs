//! Lists the files of the repository's studies, so that they are in the program wherever it is installed.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// The file that makes a directory a study, and the endings of its files.
const SCRIPT: &str = "study.py";
const ENDINGS: [&str; 4] = [".py", ".toml", ".ipynb", ".json"];

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says where a package is"))
        .join("../../../studies");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut list = String::from("&[\n");
    for study in names(&root)? {
        let directory = root.join(&study);
        println!("cargo:rerun-if-changed={}", directory.display());
        // Folders without a script are scenarios for other commands.
        if !directory.join(SCRIPT).is_file() {
            continue;
        }
        writeln!(list, "    ({study:?}, &[").expect("text grows");
        for file in names(&directory)? {
            if ENDINGS.iter().any(|ending| file.ends_with(ending)) {
                let path = fs::canonicalize(directory.join(&file))?;
                println!("cargo:rerun-if-changed={}", path.display());
                writeln!(list, "        ({file:?}, include_str!({path:?})),").expect("text grows");
            }
        }
        list.push_str("    ]),\n");
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").expect("cargo says where the list goes");
    fs::write(Path::new(&out).join("studies.rs"), list)
}

/// The names in a directory, in their order.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
