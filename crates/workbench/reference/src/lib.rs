//! The reference of every key of every file, and JSON Schemas for editors.
//!
//! Both are made from the lists by which the readers themselves go, so that they say what the program does.
//! `tests/fresh.rs` fails if what is committed under `docs/` is not what is made here; `BLESS=1 cargo test -p
//! forebay-reference` writes it.

mod files;
mod markdown;
mod schema;

pub use files::{File, files};
pub use schema::schema;

/// Every generated document, by its path under `docs/`.
pub fn documents() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for file in files() {
        let json = serde_json::to_string_pretty(&schema(&file)).expect("a tree of plain values");
        all.push((format!("reference/{}.md", file.name), markdown::page(&file)));
        all.push((format!("schema/{}.schema.json", file.name), json + "\n"));
    }
    all
}
