//! etcd by the JSON gateway that each of its servers has beside gRPC (`/v3/`, from etcd 3.4 on).
//!
//! Requests are few and small, so a blocking client is enough and the gateway needs no asynchronous runtime. Servers are tried in turn,
//! beginning with the one that answered last.

use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};
use zeroize::Zeroizing;

use crate::etcd::{Etcd, EtcdError, Found, Operation, Pair, Reply, Transaction};

/// Longest answer, in bytes: the records of a share of a million SAs.
const MAX_ANSWER: u64 = 256 << 20;
/// Maximum time of one watch request.
const WATCHES: Duration = Duration::from_secs(10);
/// Longest file with certificates or a key, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Errors of opening the client.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// A file with a certificate or a key cannot be read.
    Unreadable(PathBuf, io::Error),
    /// Other users can read the private key: its permissions.
    Open(PathBuf, u32),
    /// A file has other content.
    Malformed(PathBuf, &'static str),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Unreadable(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            ClientError::Open(path, mode) => {
                write!(f, "other users can read the private key {} (mode {mode:04o})", path.display())
            }
            ClientError::Malformed(path, expected) => write!(f, "{}: expected {expected}", path.display()),
        }
    }
}

impl std::error::Error for ClientError {}

impl miette::Diagnostic for ClientError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(match self {
            ClientError::Unreadable(..) => {
                "set `ca_file`, `certificate_file` and `private_key_file` in `[cluster]` to files that the gateway's user can read"
            }
            ClientError::Open(..) => "allow only its owner to read it: chmod 600",
            ClientError::Malformed(..) => {
                "expected PEM: `-----BEGIN CERTIFICATE-----` or `-----BEGIN PRIVATE KEY-----`"
            }
        }))
    }
}

/// The servers of a cluster of etcd.
pub struct Client {
    agent: Agent,
    endpoints: Vec<String>,
    /// The one that answered last.
    current: AtomicUsize,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the servers in `config`. It connects later.
    ///
    /// # Errors
    /// If a file cannot be read, or has other content.
    pub fn open(config: &forebay_config::Cluster) -> Result<Client, ClientError> {
        let mut tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        if let Some(path) = &config.ca_file {
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates(path)?));
        }
        if let (Some(path), Some(key)) = (&config.certificate_file, &config.private_key_file) {
            tls = tls.client_cert(Some(ClientCert::new_with_certs(&certificates(path)?, private_key(key)?)));
        }
        // Two answers, one of them late, within a lease.
        let patience = Duration::from_nanos(config.lease.as_nanos()) / 2;
        let patience = patience.clamp(Duration::from_millis(500), Duration::from_secs(3));
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(patience))
            .timeout_connect(Some(patience / 2))
            .http_status_as_error(false)
            .max_redirects(0)
            // Proxies of the environment are for interactive programs.
            .proxy(None)
            .build();
        let endpoints = config.endpoints.iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
        Ok(Client { agent: agent.into(), endpoints, current: AtomicUsize::new(0) })
    }

    /// Tries the servers in turn, until one answers. A request that must not be performed twice is not sent to another server once one may
    /// have it.
    fn ask(&self, path: &str, request: &Value, may_repeat: bool) -> Result<Value, EtcdError> {
        let first = self.current.load(Ordering::Relaxed);
        let mut failed = EtcdError::Unreachable("no server is configured".to_owned());
        for attempt in 0..self.endpoints.len() {
            let place = (first + attempt) % self.endpoints.len();
            match self.ask_one(&self.endpoints[place], path, request) {
                Ok(answer) => {
                    self.current.store(place, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error @ EtcdError::Refused(_)) => return Err(error),
                Err(error) => {
                    self.current.store((place + 1) % self.endpoints.len(), Ordering::Relaxed);
                    if error.may_be_done() && !may_repeat {
                        return Err(error);
                    }
                    // A missing answer of one server is more informative than a refused connection of another.
                    if !failed.may_be_done() {
                        failed = error;
                    }
                }
            }
        }
        Err(failed)
    }

    fn ask_one(&self, endpoint: &str, path: &str, request: &Value) -> Result<Value, EtcdError> {
        let body = request.to_string();
        let sent =
            self.agent.post(format!("{endpoint}/v3/{path}")).content_type("application/json").send(body);
        let mut response = sent.map_err(|error| failure(endpoint, &error))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        let text = text.map_err(|error| EtcdError::Unanswered(format!("{endpoint}: {error}")))?;
        let answer: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
        if status.is_success() && answer.is_object() {
            // A stream contains its errors.
            return match answer.get("error") {
                Some(error) => Err(refusal(endpoint, error)),
                None => Ok(answer),
            };
        }
        if answer.is_object() {
            return Err(refusal(endpoint, &answer));
        }
        Err(EtcdError::Refused(format!("{endpoint}: HTTP status {status}; is this etcd 3.4 or later?")))
    }

    /// Watches the keys from `first` up to `end` (exclusive) for some seconds, and calls `changed` with the revision of each change
    /// after `revision`.
    ///
    /// # Errors
    /// See [`EtcdError`]. The end of the time is not an error.
    pub fn watch(
        &self,
        (first, end): (&str, &str),
        revision: i64,
        changed: &mut dyn FnMut(i64),
    ) -> Result<(), EtcdError> {
        let place = self.current.load(Ordering::Relaxed) % self.endpoints.len().max(1);
        let Some(endpoint) = self.endpoints.get(place) else { return Ok(()) };
        let create = json!({"create_request": {
            "key": encoded(first), "range_end": encoded(end), "start_revision": (revision + 1).to_string(),
        }});
        let request = self.agent.post(format!("{endpoint}/v3/watch")).config().timeout_global(Some(WATCHES));
        let sent = request.build().content_type("application/json").send(create.to_string());
        let mut response = sent.map_err(|error| failure(endpoint, &error))?;
        let body = response.body_mut().with_config().limit(MAX_ANSWER).reader();
        for line in BufReader::new(body).lines() {
            // The time has ended, or the server has stopped.
            let Ok(line) = line else { return Ok(()) };
            match serde_json::from_str::<WatchAnswer>(&line) {
                Ok(WatchAnswer { result: Some(result), .. }) => {
                    if !result.events.is_empty() {
                        changed(result.header.revision);
                    }
                    if result.canceled {
                        // Changes before the compaction are no longer known, so there may have been some.
                        changed(result.compact_revision);
                        return Ok(());
                    }
                }
                Ok(WatchAnswer { error, .. }) => return Err(refusal(endpoint, &error)),
                Err(error) => {
                    return Err(EtcdError::Unanswered(format!(
                        "{endpoint}: not an answer of a watch: {error}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Whether a request that failed can have arrived.
fn failure(endpoint: &str, error: &ureq::Error) -> EtcdError {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    use ureq::Timeout::{Connect, Resolve};
    let why = format!("{endpoint}: {error}");
    let is_before = match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::BadUri(_) => true,
        ureq::Error::Timeout(Connect | Resolve) => true,
        ureq::Error::Io(error) => {
            let is_handshake = error
                .get_ref()
                .and_then(|error| error.downcast_ref::<rustls::Error>())
                .is_some_and(is_of_handshake);
            is_handshake || matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
        }
        ureq::Error::Rustls(error) => is_of_handshake(error),
        _ => false,
    };
    if is_before { EtcdError::Unreachable(why) } else { EtcdError::Unanswered(why) }
}

fn is_of_handshake(error: &rustls::Error) -> bool {
    use rustls::Error::{InvalidCertificate, NoCertificatesPresented, UnsupportedNameType};
    matches!(error, InvalidCertificate(_) | NoCertificatesPresented | UnsupportedNameType)
}

/// What a server's error means, by its gRPC status code.
fn refusal(endpoint: &str, error: &Value) -> EtcdError {
    let code = error.get("code").or_else(|| error.get("grpc_code")).and_then(Value::as_i64);
    let message = error.get("message").or_else(|| error.get("error")).and_then(Value::as_str);
    let message = message.unwrap_or("an error without words");
    let why = format!("{endpoint}: {message}");
    match code {
        // Invalid, not found, exists, not permitted, exhausted (of space), precondition, not there, unauthenticated.
        Some(3 | 5 | 6 | 7 | 8 | 9 | 12 | 16) => EtcdError::Refused(why),
        // Time-outs, changes of the leader and the rest.
        _ => EtcdError::Unanswered(why),
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, ClientError> {
    use io::Read;
    let unreadable = |error| ClientError::Unreadable(path.to_owned(), error);
    let mut text = Zeroizing::new(Vec::with_capacity(8 << 10));
    std::fs::File::open(path)
        .map_err(unreadable)?
        .take(MAX_FILE)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    Ok(text)
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let text = read(path)?;
    let certificates: Vec<_> = parse_pem(&text)
        .filter_map(Result::ok)
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    match certificates.is_empty() {
        true => Err(ClientError::Malformed(path.to_owned(), "a certificate")),
        false => Ok(certificates),
    }
}

fn private_key(path: &Path) -> Result<PrivateKey<'static>, ClientError> {
    let unreadable = |error| ClientError::Unreadable(path.to_owned(), error);
    let mode = std::fs::metadata(path).map_err(unreadable)?.mode();
    if mode & 0o077 != 0 {
        return Err(ClientError::Open(path.to_owned(), mode & 0o777));
    }
    let text = read(path)?;
    PrivateKey::from_pem(&text).map_err(|_| ClientError::Malformed(path.to_owned(), "a private key"))
}

impl Etcd for Client {
    fn grant(&self, seconds: u64) -> Result<i64, EtcdError> {
        let answer = self.ask("lease/grant", &json!({"TTL": seconds.to_string()}), true)?;
        let lease = answer.get("ID").and_then(int).unwrap_or_default();
        match lease {
            0 => Err(EtcdError::Refused(format!("no lease: {answer}"))),
            lease => Ok(lease),
        }
    }

    fn keep(&self, lease: i64) -> Result<bool, EtcdError> {
        let answer = self.ask("lease/keepalive", &json!({"ID": lease.to_string()}), true)?;
        let left = answer.get("result").and_then(|result| result.get("TTL")).and_then(int);
        Ok(left.unwrap_or_default() > 0)
    }

    fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        match self.ask("lease/revoke", &json!({"ID": lease.to_string()}), true) {
            Err(EtcdError::Refused(why)) if why.contains("lease not found") => Ok(()),
            answer => answer.map(drop),
        }
    }

    fn transact(&self, transaction: &Transaction) -> Result<Reply, EtcdError> {
        let compare: Vec<Value> = transaction
            .compare
            .iter()
            .map(|(key, revision)| {
                json!({"key": encoded(key), "target": "MOD", "result": "EQUAL", "mod_revision": revision.to_string()})
            })
            .collect();
        let all = |operations: &[Operation]| operations.iter().map(operation).collect::<Vec<_>>();
        let request = json!({
            "compare": compare, "success": all(&transaction.then), "failure": all(&transaction.otherwise),
        });
        let only_reads = transaction.then.iter().chain(&transaction.otherwise).all(|one| {
            matches!(one, Operation::Get { .. } | Operation::List { .. } | Operation::Newest { .. })
        });
        let answer = self.ask("kv/txn", &request, only_reads)?;
        let answer: TransactionAnswer = serde_json::from_value(answer)
            .map_err(|error| EtcdError::Unanswered(format!("an answer that is none: {error}")))?;
        Ok(answer.into())
    }
}

fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::Put { key, value, lease } => {
            json!({"request_put": {"key": encoded(key), "value": encoded(value), "lease": lease.to_string()}})
        }
        Operation::Delete { key } => json!({"request_delete_range": {"key": encoded(key)}}),
        Operation::Get { key } => json!({"request_range": {"key": encoded(key)}}),
        Operation::List { prefix } => {
            json!({"request_range": {"key": encoded(prefix), "range_end": behind(prefix)}})
        }
        Operation::Newest { prefix } => json!({"request_range": {
            "key": encoded(prefix), "range_end": behind(prefix), "limit": "1", "keys_only": true,
            "sort_order": "DESCEND", "sort_target": "MOD",
        }}),
    }
}

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

/// The first key after all with this prefix.
fn behind(prefix: &str) -> String {
    let mut bytes = prefix.as_bytes().to_vec();
    // A prefix ends with a slash, which is no last byte.
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    STANDARD.encode(bytes)
}

/// A number that protobuf's JSON writes as a string.
fn int(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => {
            text.parse().ok().or_else(|| text.parse::<u64>().ok().map(|number| number as i64))
        }
        value => value.as_i64(),
    }
}

fn ints<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(from)?;
    int(&value).ok_or_else(|| serde::de::Error::custom("expected a number"))
}

fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let bytes = STANDARD.decode(String::deserialize(from)?).map_err(serde::de::Error::custom)?;
    // Values that are not text are not the gateway's.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Deserialize)]
struct TransactionAnswer {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<OneAnswer>,
}

#[derive(Default, Deserialize)]
struct Header {
    #[serde(default, deserialize_with = "ints")]
    cluster_id: i64,
    #[serde(default, deserialize_with = "ints")]
    revision: i64,
}

/// A line of the answer to a watch.
#[derive(Deserialize)]
struct WatchAnswer {
    result: Option<WatchResult>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct WatchResult {
    header: Header,
    #[serde(default)]
    canceled: bool,
    /// Of a watch that began before it; the header of that answer has no revision.
    #[serde(default, deserialize_with = "ints")]
    compact_revision: i64,
    #[serde(default)]
    events: Vec<Value>,
}

#[derive(Deserialize)]
struct OneAnswer {
    response_range: Option<RangeAnswer>,
}

#[derive(Deserialize)]
struct RangeAnswer {
    #[serde(default)]
    kvs: Vec<PairAnswer>,
    #[serde(default, deserialize_with = "ints")]
    count: i64,
}

#[derive(Deserialize)]
struct PairAnswer {
    #[serde(default, deserialize_with = "texts")]
    key: String,
    #[serde(default, deserialize_with = "texts")]
    value: String,
    #[serde(default, deserialize_with = "ints")]
    mod_revision: i64,
    #[serde(default, deserialize_with = "ints")]
    lease: i64,
}

impl From<TransactionAnswer> for Reply {
    fn from(answer: TransactionAnswer) -> Reply {
        let found = answer.responses.into_iter().filter_map(|one| one.response_range).map(|range| Found {
            pairs: range
                .kvs
                .into_iter()
                .map(|PairAnswer { key, value, mod_revision, lease }| Pair {
                    key,
                    value,
                    modified: mod_revision,
                    lease,
                })
                .collect(),
            count: range.count as u64,
        });
        Reply {
            succeeded: answer.succeeded,
            revision: answer.header.revision,
            store: format!("{:016x}", answer.header.cluster_id as u64),
            found: found.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_etcd_are_read() {
        // What etcd 3.4.23 answers to a transaction with a put, a range and a range that finds nothing.
        let text = r#"{"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"2",
            "raft_term":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}},
            {"response_range":{"header":{"revision":"2"},"kvs":[{"key":"L2Y=","create_revision":"2","mod_revision":"3",
            "version":"1","value":"MQ==","lease":"7587899116535083269"}],"count":"1"}},
            {"response_range":{"header":{"revision":"2"}}}]}"#;
        let answer: TransactionAnswer = serde_json::from_str(text).unwrap();
        let reply = Reply::from(answer);
        assert_eq!((reply.succeeded, reply.revision, reply.store.as_str()), (true, 2, "cdf818194e3a8c32"));
        let pair =
            Pair { key: "/f".into(), value: "1".into(), modified: 3, lease: 7_587_899_116_535_083_269 };
        assert_eq!(reply.found, [Found { pairs: vec![pair], count: 1 }, Found::default()]);
    }

    #[test]
    fn answers_to_a_watch_are_read() {
        // What etcd 3.4.23 answers: the watch is there, a key is written and removed, a watch of what was compacted.
        let lines = [
            (
                r#"{"result":{"header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952","revision":"1",
                "raft_term":"2"},"created":true}}"#,
                (1, false, 0, 0),
            ),
            (
                r#"{"result":{"header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952","revision":"2",
                "raft_term":"2"},"events":[{"kv":{"key":"L2Y=","create_revision":"2","mod_revision":"2","version":"1",
                "value":"MQ=="}}]}}"#,
                (2, false, 0, 1),
            ),
            (
                r#"{"result":{"header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952","revision":"3",
                "raft_term":"2"},"events":[{"type":"DELETE","kv":{"key":"L2Y=","mod_revision":"3"}}]}}"#,
                (3, false, 0, 1),
            ),
            (
                r#"{"result":{"header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952",
                "raft_term":"2"},"canceled":true,"compact_revision":"4"}}"#,
                (0, true, 4, 0),
            ),
        ];
        for (line, expected) in lines {
            let WatchResult { header, canceled, compact_revision, events } =
                serde_json::from_str::<WatchAnswer>(line).unwrap().result.unwrap();
            assert_eq!((header.revision, canceled, compact_revision, events.len()), expected);
        }
        let error = r#"{"error":"illegal base64 data at input byte 0","message":"illegal base64 data at input byte 0","code":2}"#;
        assert!(serde_json::from_str::<WatchAnswer>(error).unwrap().result.is_none());
    }

    #[test]
    fn errors_say_whether_something_may_be_done() {
        let refused = refusal(
            "x",
            &json!({"error": "e", "message": "etcdserver: mvcc: database space exceeded", "code": 8}),
        );
        assert!(matches!(refused, EtcdError::Refused(_)), "{refused}");
        let late =
            refusal("x", &json!({"error": "e", "message": "etcdserver: request timed out", "code": 14}));
        assert!(late.may_be_done(), "{late}");
        assert!(refusal("x", &json!({})).may_be_done());
    }

    #[test]
    fn the_end_of_a_prefix_is_behind_all_its_keys() {
        assert_eq!(STANDARD.decode(behind("/f/")).unwrap(), b"/f0");
    }
}
