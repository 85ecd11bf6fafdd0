//! JSON Schemas, for editors that complete and check TOML.
//!
//! A schema is of draft 7, which Taplo and its relatives understand. It accepts all that the readers accept of single
//! values; what keys ask of each other is left to the readers, but for keys that are always required.

use forebay_scenario::schema::{Absent, Key, Part, Takes};
use forebay_scenario::{Decimal, Unit};
use serde_json::{Map, Value as Json, json};

use crate::files::{File, files};

/// Whole numbers up to here are the same in JSON and TOML whatever reads them.
const EXACT: u64 = 1 << 53;

/// The schema of a kind of file.
pub fn schema(file: &File) -> Json {
    let mut definitions = Map::new();
    let mut properties = Map::new();
    let mut parts = file.parts.clone();
    if file.name == "gateway" {
        let sas = files().into_iter().find(|other| other.name == "sas");
        parts.extend(sas.into_iter().flat_map(|sas| sas.parts));
    }
    let top: Vec<&Part> = parts.iter().filter(|part| part.section.is_empty()).collect();
    properties.extend(keys_of(&top));
    let mut required = required_of(&top);
    for section in sections(&parts) {
        let of: Vec<&Part> = parts.iter().filter(|part| part.section == section).collect();
        definitions.insert(section.to_owned(), table(&of, &parts));
        let one = json!({ "$ref": format!("#/definitions/{section}") });
        if section.contains('.') {
            continue;
        }
        let list = json!({ "type": "array", "items": one });
        let several = of.iter().any(|part| part.several);
        // The reader of SAs takes lists only.
        let single = file.single && !["sa", "policy"].contains(&section);
        let value = match (several, single) {
            (false, _) => one,
            (true, false) => list,
            (true, true) => json!({ "anyOf": [list, one] }),
        };
        properties.insert(section.to_owned(), value);
    }
    required.extend(file.needed.iter().map(|name| (*name).to_owned()));
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": format!("Forebay: {}", file.title),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
        "definitions": definitions,
    })
}

/// The names of the sections, each once.
fn sections(parts: &[Part]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for part in parts {
        if !part.section.is_empty() && !names.contains(&part.section) {
            names.push(part.section);
        }
    }
    names
}

/// A section with the keys of all its kinds, and the sections inside of it.
fn table(of: &[&Part], all: &[Part]) -> Json {
    let mut properties = keys_of(of);
    let section = of.first().map_or("", |part| part.section);
    for inside in
        sections(all).iter().filter(|name| name.rsplit_once('.').is_some_and(|(outer, _)| outer == section))
    {
        let (_, name) = inside.rsplit_once('.').unwrap_or_default();
        let mut value = json!({ "$ref": format!("#/definitions/{inside}") });
        if all.iter().any(|part| part.section == *inside && part.several) {
            value = json!({ "type": "array", "items": value });
        }
        // A key that takes something else as well.
        if let Some(Json::Object(mut key)) = properties.remove(name) {
            let described = ["description", "default", "examples"].map(|word| (word, key.remove(word)));
            value = json!({ "anyOf": [key, value] });
            described.into_iter().for_each(|(word, one)| _ = one.map(|one| value[word] = one));
        }
        properties.insert(name.to_owned(), value);
    }
    let mut table = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let common: Vec<&Part> = of.iter().copied().filter(|part| part.kind.is_empty()).collect();
    let required = required_of(&common);
    if !required.is_empty() {
        table["required"] = required.into();
    }
    let kinds = of.iter().filter(|part| !part.kind.is_empty()).filter_map(|part| {
        let required = required_of(&[part]);
        let word = File::kind_word(part);
        let is = json!({ "properties": { word: { "const": part.kind } }, "required": [word] });
        (!required.is_empty()).then(|| json!({ "if": is, "then": { "required": required } }))
    });
    let kinds: Vec<Json> = kinds.collect();
    if !kinds.is_empty() {
        table["allOf"] = kinds.into();
    }
    table
}

fn required_of(parts: &[&Part]) -> Vec<String> {
    let keys = parts.iter().flat_map(|part| part.keys);
    keys.filter(|key| matches!(key.absent, Absent::Required)).map(|key| key.name.to_owned()).collect()
}

/// The keys of parts; one that several kinds have takes what any of them takes.
fn keys_of(parts: &[&Part]) -> Map<String, Json> {
    let mut properties: Map<String, Json> = Map::new();
    for part in parts {
        for key in part.keys {
            let one = property(part, key);
            match properties.get_mut(key.name) {
                None => _ = properties.insert(key.name.to_owned(), one),
                Some(known) if *known == one => {}
                Some(known) => {
                    let mut either = match known.get("anyOf-kinds") {
                        Some(Json::Array(list)) => list.clone(),
                        _ => vec![known.clone()],
                    };
                    either.push(one);
                    *known = json!({ "anyOf-kinds": either });
                }
            }
        }
    }
    for value in properties.values_mut() {
        if let Some(either) = value.as_object_mut().and_then(|map| map.remove("anyOf-kinds")) {
            *value = json!({ "anyOf": either });
        }
    }
    properties
}

/// What a key takes and means.
fn property(part: &Part, key: &Key) -> Json {
    let mut value = json!({});
    value["description"] = description(part, key).into();
    if let Json::Object(takes) = takes(&key.takes) {
        takes.into_iter().for_each(|(word, one)| value[word] = one);
    }
    if let Absent::Is(default) = key.absent
        && let Some(default) = toml_value(default)
    {
        value["default"] = default;
    }
    if let Some(example) = toml_value(key.example) {
        value["examples"] = json!([example]);
    }
    value
}

fn description(part: &Part, key: &Key) -> String {
    let kind = match part.kind {
        "" => String::new(),
        kind => format!("With {} = \"{kind}\": ", File::kind_word(part)),
    };
    let mut letters = key.meaning.chars();
    let meaning: String = match kind.as_str() {
        "" => letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect(),
        _ => key.meaning.to_owned(),
    };
    let absent = match key.absent {
        Absent::Required => "Required.".to_owned(),
        Absent::Is(value) => format!("Default: {value}."),
        Absent::Means(words) => format!("Default: {words}."),
    };
    format!("{kind}{meaning}. Takes {}. {absent}", key.takes)
}

/// A value as TOML has it.
fn toml_value(text: &str) -> Option<Json> {
    let table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    serde_json::to_value(table.get("value")?).ok()
}

/// The values that are taken.
fn takes(takes: &Takes) -> Json {
    match *takes {
        Takes::Flag => json!({ "type": "boolean" }),
        Takes::Text | Takes::Path => json!({ "type": "string" }),
        Takes::Word(words) => json!({ "enum": words }),
        Takes::Whole(unit, least, most) => {
            let mut whole = json!({ "type": "integer", "minimum": least });
            if most <= EXACT {
                whole["maximum"] = most.into();
            }
            number(whole, unit)
        }
        Takes::Time(least, most) => {
            let seconds = |text| Decimal::parse_quantity(text, Unit::Time).ok().map(Decimal::as_f64);
            number(
                json!({ "type": "number", "minimum": seconds(least), "maximum": seconds(most) }),
                Unit::Time,
            )
        }
        Takes::Number(least, most) => {
            let mut any = json!({ "type": "number", "minimum": least });
            if most < EXACT as f64 {
                any["maximum"] = most.into();
            }
            number(any, Unit::None)
        }
        Takes::Positive(unit) => number(json!({ "type": "number", "exclusiveMinimum": 0 }), unit),
        Takes::Quantity(unit) => number(json!({ "type": "number", "minimum": 0 }), unit),
        Takes::Amount => {
            let text = json!({ "type": "string", "pattern": "^[0-9][0-9.]* ?([kMGT]|[KMGT]i)?B?$" });
            json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, text] })
        }
        Takes::List(each) => json!({ "type": "array", "items": self::takes(each) }),
        Takes::Either(_, of) => either(of),
        Takes::Other(_) => json!({}),
    }
}

/// A number, or the same in a string with its unit.
fn number(bare: Json, unit: Unit) -> Json {
    let words: Vec<&str> = unit.words().iter().map(|(word, ..)| *word).collect();
    let behind = match words.is_empty() {
        true => String::new(),
        false => format!("({})?", words.join("|")),
    };
    let pattern = format!("^\\s*(0x[0-9a-fA-F]+|[+-]?[0-9_.]+([eE][+-]?[0-9]+)?)\\s*{behind}\\s*$");
    json!({ "anyOf": [bare, { "type": "string", "pattern": pattern }] })
}

fn either(of: &[Takes]) -> Json {
    if let [one] = of {
        return takes(one);
    }
    let mut all = Vec::new();
    for one in of {
        match takes(one) {
            Json::Object(mut map) if map.len() == 1 && map.contains_key("anyOf") => {
                all.extend(map.remove("anyOf").and_then(|list| list.as_array().cloned()).unwrap_or_default());
            }
            other => all.push(other),
        }
    }
    json!({ "anyOf": all })
}
