//! What is committed of the reference and the schemas is what the code says.

use std::path::Path;

#[test]
fn reference_and_schemas_are_those_of_the_code() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs"));
    let documents = forebay_reference::documents();
    for (name, text) in &documents {
        let path = docs.join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let same = found.lines().zip(text.lines()).take_while(|(found, made)| found == made).count();
        assert!(
            found == *text,
            "docs/{name} is not what the code says, from line {} on; to renew it: BLESS=1 cargo test -p forebay-reference",
            same + 1
        );
    }
    for folder in ["reference", "schema"] {
        for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
            let name = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            // Scripts make those of the package of Python, from its docstrings.
            let python = ["reference/python.md", "reference/study.md"].contains(&name.as_str());
            // The gateway's answers are made and kept by the test of the crate that gives them.
            let answer = name.ends_with(".answer.json");
            assert!(
                python || answer || documents.iter().any(|(known, _)| *known == name),
                "docs/{name} is not made from the code; remove it"
            );
        }
    }
}
