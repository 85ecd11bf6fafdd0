//! docs/metrics.md and the JSON Schemas of the answers (docs/schema/*.answer.json) are made from the code.
//!
//! `BLESS=1 cargo test -p forebay-control --test reference` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use forebay_control::{
    ClusterDoc, EngineDoc, IptfsDoc, LimitsDoc, LinkDoc, OffloadDoc, OffloadsDoc, PairDoc, ProcessorDoc,
    SaDoc, StatusDoc, TapSideDoc, TapsDoc, metrics,
};
use serde_json::{Map, Value, json};

const DOCUMENTS: &str = include_str!("../src/documents.rs");
const METRICS: &str = include_str!("../src/metrics.rs");

/// Compares a file of docs/ with what it should hold, or writes it.
fn fresh(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/{name} is not what the code says: BLESS=1 cargo test -p forebay-control --test reference"
    );
}

/// A status with something of everything.
fn full() -> StatusDoc {
    let counts: BTreeMap<String, u64> = [("reason".to_owned(), 1)].into();
    let left = LimitsDoc { time_s: Some(1.0), bytes: Some(1), packets: Some(1), ..LimitsDoc::default() };
    let (iptfs, iptfs_rate) = (Some(IptfsDoc::default()), Some(1));
    StatusDoc {
        sas: vec![SaDoc { left, iptfs, iptfs_rate, ..SaDoc::default() }],
        processors: vec![ProcessorDoc::default()],
        links: vec![LinkDoc { drops: counts.clone(), passed_over: counts, ..LinkDoc::default() }],
        engines: vec![EngineDoc::default()],
        taps: TapsDoc { sides: vec![TapSideDoc::default()], ..TapsDoc::default() },
        offloads: OffloadsDoc { offloads: vec![OffloadDoc::default()], ..OffloadsDoc::default() },
        pair: Some(PairDoc::default()),
        cluster: Some(ClusterDoc::default()),
        ..StatusDoc::default()
    }
}

/// A family of metrics: kind, help, and the labels of its samples.
type Family = (String, String, Vec<String>);

fn families() -> Vec<(String, Family)> {
    let mut families: Vec<(String, Family)> = vec![];
    for line in metrics::text(&full()).lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.push((name.to_owned(), (String::new(), help.to_owned(), vec![])));
            continue;
        }
        let (_, (kind, _, labels)) = families.last_mut().expect("a family begins with its help");
        if let Some((_, word)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            word.clone_into(kind);
        } else if let Some((_, rest)) = line.split_once('{') {
            let names = rest.split(',').filter_map(|pair| Some(pair.split_once("=\"")?.0.to_owned()));
            *labels = names.collect();
        }
    }
    families
}

const GROUPS: [(&str, &str, &str); 11] = [
    ("forebay_info", "The gateway", "forebay_uptime"),
    ("forebay_sa_", "SAs", ""),
    ("forebay_processor_", "Processors", ""),
    ("forebay_link_", "Links", ""),
    ("forebay_drops_", "Drops", ""),
    ("forebay_engine_", "Workers", ""),
    ("forebay_guard_", "The guard", ""),
    ("forebay_offload", "Offloads of interfaces", ""),
    ("forebay_pair_", "A pair of gateways", ""),
    ("forebay_cluster_", "A cluster of gateways", ""),
    ("forebay_tap", "Packet captures", ""),
];

#[test]
fn every_metric_is_documented() {
    let families = families();
    for name in METRICS.split('"').filter(|word| word.starts_with("forebay_")) {
        assert!(
            families.iter().any(|(family, _)| family == name),
            "{name}: `full()` has nothing that makes it"
        );
    }
    let mut page = String::from(
        "# Metrics\n\n`[metrics]` of the [configuration](reference/gateway.md#metrics) makes the gateway export these metrics to \
         Prometheus, in its text format 0.0.4.\nCounters begin with the start of the gateway, those of an SA with the SA. \
         [alerts.yml](alerts.yml) has alerting rules, [runbooks.md](runbooks.md) says what to do about them, and\n\
         [grafana.json](grafana.json) is a dashboard. [troubleshooting.md](troubleshooting.md#drop-reasons) explains the values of \
         `reason`.\n\nThis page is made from the code: `BLESS=1 cargo test -p forebay-control --test reference`.\n",
    );
    let mut written = 0;
    for (prefix, title, other) in GROUPS {
        let _ = write!(page, "\n## {title}\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
        let is_of = |name: &str| name.starts_with(prefix) || (!other.is_empty() && name.starts_with(other));
        for (name, (kind, help, labels)) in families.iter().filter(|(name, _)| is_of(name)) {
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = labels.join(", ");
            let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help} |");
            written += 1;
        }
    }
    assert_eq!(written, families.len(), "a metric belongs to no group of this page, or to two");
    fresh("metrics.md", &page);
}

/// The structs of documents.rs as definitions of a JSON Schema.
fn definitions() -> Map<String, Value> {
    let (mut all, mut docs) = (Map::new(), String::new());
    let (mut name, mut properties, mut required) = (String::new(), Map::new(), vec![]);
    let (mut help, mut may_lack) = (String::new(), false);
    for line in DOCUMENTS.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            docs = if docs.is_empty() { text.to_owned() } else { format!("{docs} {text}") };
        } else if line.starts_with("#[serde(") {
            // What `default` alone says is about older gateways, which did not write the field.
            may_lack = line.contains("skip_serializing_if");
        } else if let Some(rest) = line.strip_prefix("pub struct ") {
            name = rest.trim_end_matches(" {").to_owned();
            help = std::mem::take(&mut docs);
        } else if let Some((field, kind)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": ")) {
            let mut schema = schema_of(kind.trim_end_matches(','), may_lack);
            let told = std::mem::take(&mut docs);
            assert!(!told.is_empty(), "{name}.{field} has no description");
            if schema.contains_key("$ref") {
                // What stands beside a reference is ignored by draft 7.
                schema = [("allOf".to_owned(), json!([schema]))].into_iter().collect();
            }
            schema.insert("description".to_owned(), json!(told.replace('`', "")));
            properties.insert(field.to_owned(), Value::Object(schema));
            if !std::mem::take(&mut may_lack) {
                required.push(field.to_owned());
            }
        } else if line == "}" && !name.is_empty() {
            let (properties, required) = (std::mem::take(&mut properties), std::mem::take(&mut required));
            let schema = json!({ "type": "object", "description": std::mem::take(&mut help).replace('`', ""),
                "properties": properties, "required": required, "additionalProperties": false });
            all.insert(std::mem::take(&mut name), schema);
        }
    }
    all
}

/// The schema of a type of Rust; an option that is left out if there is nothing needs no `null`.
fn schema_of(kind: &str, may_lack: bool) -> Map<String, Value> {
    let inside = |outer: &str| kind.strip_prefix(outer).and_then(|rest| rest.strip_suffix('>'));
    let schema = if let Some(kind) = inside("Option<") {
        let schema = schema_of(kind, false);
        if may_lack { Value::Object(schema) } else { json!({ "anyOf": [schema, { "type": "null" }] }) }
    } else if let Some(kind) = inside("Vec<") {
        json!({ "type": "array", "items": schema_of(kind, false) })
    } else if let Some(kind) = inside("BTreeMap<String, ") {
        json!({ "type": "object", "additionalProperties": schema_of(kind, false) })
    } else {
        match kind {
            "u8" | "u16" | "u32" | "u64" | "usize" => json!({ "type": "integer", "minimum": 0 }),
            "f64" => json!({ "type": "number" }),
            "bool" => json!({ "type": "boolean" }),
            "String" => json!({ "type": "string" }),
            doc if doc.ends_with("Doc") => json!({ "$ref": format!("#/definitions/{doc}") }),
            other => panic!("documents.rs has a field of type {other}, which this test does not know"),
        }
    };
    schema.as_object().expect("a schema is an object").clone()
}

#[test]
fn every_answer_has_its_schema() {
    let all = definitions();
    for (file, title, doc) in [
        ("status", "forebay status --json", "StatusDoc"),
        ("show-sas", "forebay show sas --json", "SasDoc"),
        ("show-policies", "forebay show policies --json", "PoliciesDoc"),
        ("show-processors", "forebay show processors --json", "ProcessorsDoc"),
        ("show-drops", "forebay show drops --json", "DropsDoc"),
        ("reload", "forebay reload --json", "ReloadDoc"),
    ] {
        let mut schema =
            all.get(doc).unwrap_or_else(|| panic!("no {doc} in documents.rs")).as_object().unwrap().clone();
        let mut used: Vec<String> = vec![];
        refer(&Value::Object(schema.clone()), &all, &mut used);
        let used: Map<String, Value> =
            used.into_iter().map(|name| (name.clone(), all[&name].clone())).collect();
        schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        schema.insert("title".to_owned(), json!(title));
        if !used.is_empty() {
            schema.insert("definitions".to_owned(), Value::Object(used));
        }
        let text = serde_json::to_string_pretty(&Value::Object(schema)).unwrap() + "\n";
        fresh(&format!("schema/{file}.answer.json"), &text);
    }
}

/// The definitions that a schema refers to, and those that they do.
fn refer(schema: &Value, all: &Map<String, Value>, used: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                let name = name.trim_start_matches("#/definitions/").to_owned();
                if !used.contains(&name) {
                    used.push(name.clone());
                    refer(&all[&name], all, used);
                }
            }
            fields.values().for_each(|value| refer(value, all, used));
        }
        Value::Array(values) => values.iter().for_each(|value| refer(value, all, used)),
        _ => {}
    }
}

#[test]
fn schemas_have_the_fields_that_are_written() {
    let all = definitions();
    let written = serde_json::to_value(full()).unwrap();
    let Value::Object(fields) = &written else { panic!("{written}") };
    for (name, doc, value) in [
        ("StatusDoc", "StatusDoc", fields.clone()),
        ("the pair", "PairDoc", written["pair"].as_object().unwrap().clone()),
        ("the cluster", "ClusterDoc", written["cluster"].as_object().unwrap().clone()),
        ("an SA", "SaDoc", written["sas"][0].as_object().unwrap().clone()),
    ] {
        let properties = all[doc]["properties"].as_object().unwrap();
        let required = all[doc]["required"].as_array().unwrap();
        let missing: Vec<&String> = value.keys().filter(|key| !properties.contains_key(*key)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
        let absent: Vec<&Value> =
            required.iter().filter(|key| !value.contains_key(key.as_str().unwrap())).collect();
        assert!(absent.is_empty(), "{name}: {absent:?}");
    }
}
