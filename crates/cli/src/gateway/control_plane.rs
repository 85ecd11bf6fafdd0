//! What others ask of the running gateway: the control socket, metrics and the live page.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as StdDuration;

use forebay_config::{Changes, Config, LivePage, Metrics};
use forebay_diagnostics::Plain;
use forebay_gateway::control::gather::Snapshot;
use forebay_gateway::control::{
    self, FindingDoc, GuardDoc, ReloadDoc, ReloadsDoc, Request, Response, SCHEMA, Server, StatusDoc,
};
use forebay_gateway::service::{Caretaker, Service, TapsStatus, Workers};
use forebay_gateway::serving::Others;
use forebay_sas::{Finding, SasErrors};
use forebay_time::Time;
use miette::Report;

use super::Process;

/// Longest wait for the loop to read the file again.
const PATIENCE: StdDuration = StdDuration::from_secs(25);

/// A request that the file be read again, and where the outcome goes.
pub type ReloadRequest = SyncSender<ReloadDoc>;

/// The servers, and what they tell.
pub struct ControlPlane {
    shown: Arc<Mutex<Option<Shown>>>,
    requests: Receiver<ReloadRequest>,
    answer: Arc<control::Answer>,
    /// Removes its socket at the end.
    _control: Option<Server>,
    metrics: Served<Metrics>,
    page: Served<LivePage>,
    reloads: Arc<Mutex<ReloadsDoc>>,
}

/// A server that comes, goes and changes with the file.
struct Served<T> {
    wanted: Option<T>,
    server: Option<Server>,
}

impl<T: Clone + PartialEq> Served<T> {
    const NONE: Served<T> = Served { wanted: None, server: None };

    /// Serves what `wanted` says from now on. What cannot be served is said in the log.
    fn serve(&mut self, wanted: Option<&T>, what: &str, start: impl FnOnce(&T) -> std::io::Result<Server>) {
        if self.wanted.as_ref() == wanted {
            return;
        }
        // The old one first: it may have the address.
        self.server = None;
        self.wanted = wanted.cloned();
        self.server = wanted.and_then(|settings| {
            start(settings).inspect_err(|error| tracing::error!("cannot serve {what}: {error}")).ok()
        });
    }
}

/// The data plane that is told of.
#[derive(Clone)]
struct Shown {
    config: Arc<Config>,
    workers: Workers,
    taps: TapsStatus,
}

impl ControlPlane {
    /// Begins to answer for a gateway by `config`. What cannot be opened is said in the log and hinders no packet.
    pub fn start(config: &Config, process: &Process<'_>, others: Option<Others>) -> ControlPlane {
        let (reload, requests) = mpsc::channel();
        let shown = Arc::default();
        let reloads = Arc::default();
        let told = Told {
            file: process.file(),
            start: process.clock.now(),
            caretaker: process.caretaker.clone(),
            reloads: Arc::clone(&reloads),
        };
        let answer = answer(Arc::clone(&shown), others, reload, told);
        let control = &config.control;
        let limit = config.limits.control_connections;
        let server = Server::control(control, limit, answer.clone());
        let server = server.inspect_err(|error| {
            tracing::error!(socket = %control.socket.display(), "cannot open the control socket: {error}");
        });
        let mut control_plane = ControlPlane {
            shown,
            requests,
            answer,
            _control: server.ok(),
            metrics: Served::NONE,
            page: Served::NONE,
            reloads,
        };
        control_plane.serve(config);
        control_plane
    }

    /// The next request, if there is one.
    pub fn reload_request(&self) -> Option<ReloadRequest> {
        self.requests.try_recv().ok()
    }

    /// Tells of a data plane, and of the file by which it runs, from now on; or that there is none.
    pub fn show(&mut self, service: Option<&Service>) {
        *self.shown() = service.map(|service| {
            let (config, workers) = (service.config().clone(), service.workers().clone());
            Shown { config, workers, taps: service.taps() }
        });
        service.into_iter().for_each(|service| self.serve(service.config()));
    }

    /// The file was read again.
    pub fn reloaded(&self, outcome: &ReloadDoc) {
        self.reloads.lock().unwrap_or_else(PoisonError::into_inner).note(outcome);
    }

    fn shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&mut self, config: &Config) {
        let (limit, answer) = (config.limits.control_connections, &self.answer);
        self.metrics.serve(config.metrics.as_ref(), "metrics", |settings| {
            Server::metrics(settings, limit, answer.clone())
        });
        self.page
            .serve(config.page.as_ref(), "the live page", |settings| Server::page(settings, answer.clone()));
    }
}

/// The state of the process for `status`, with or without a data plane.
struct Told {
    file: String,
    start: Time,
    caretaker: Caretaker,
    reloads: Arc<Mutex<ReloadsDoc>>,
}

fn answer(
    shown: Arc<Mutex<Option<Shown>>>,
    others: Option<Others>,
    reload: Sender<ReloadRequest>,
    Told { file, start, caretaker, reloads }: Told,
) -> Arc<control::Answer> {
    Arc::new(move |request| {
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if request == Request::Reload {
            let (reply, outcome) = mpsc::sync_channel(1);
            let asked = reload.send(reply).is_ok();
            return match outcome.recv_timeout(PATIENCE) {
                Ok(document) if asked => Response::Reload(document),
                _ => Response::error("the reload timed out"),
            };
        }
        let with_lists = request != Request::Counts;
        let running = shown.as_ref().map(|shown| (shown, Snapshot::gather(&shown.workers, with_lists)));
        let mut status = match (running, &others) {
            (Some((Shown { config, taps, .. }, Some(snapshots))), _) => {
                let mut status = Snapshot::status(snapshots, config, &file, VERSION, start);
                status.taps = taps.document();
                status
            }
            // There is no data plane, or it is just ending.
            (_, Some(_)) => StatusDoc {
                schema: SCHEMA,
                version: VERSION.to_owned(),
                pid: std::process::id(),
                config: file.clone(),
                ..StatusDoc::default()
            },
            (Some(_), None) => return Response::error("the gateway has stopped"),
            (None, None) => return Response::error("the gateway has not started yet"),
        };
        status.reloads = reloads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        status.guard = caretaker.document();
        status.offloads = caretaker.offloads();
        if let Some(others) = &others {
            others(&mut status);
        }
        Response::of(request, status).unwrap_or_else(|| Response::error("unknown request"))
    })
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a reload did, in the words of the control socket.
pub fn outcome(changes: &Changes, warnings: &[Finding]) -> ReloadDoc {
    let kept = changes.kept.iter().flatten().count();
    ReloadDoc {
        schema: SCHEMA,
        ok: true,
        in_part: false,
        added: changes.kept.len() - kept,
        removed: changes.removed.len(),
        kept,
        restart: changes.restart.iter().map(ToString::to_string).collect(),
        errors: vec![],
        warnings: warnings.iter().map(finding).collect(),
    }
}

/// A file with errors, which changed nothing.
pub fn refused(errors: &SasErrors) -> ReloadDoc {
    let (found, warnings) = (errors.findings().iter(), errors.warnings().iter());
    let (errors, warnings) = (found.map(finding).collect(), warnings.map(finding).collect());
    ReloadDoc { schema: SCHEMA, errors, warnings, ..ReloadDoc::default() }
}

/// An error of the gateway itself.
pub fn failed(report: &Report) -> ReloadDoc {
    let help = report.help().map_or_else(String::new, |help| help.to_string());
    let error = FindingDoc { message: report.to_string(), help, ..FindingDoc::default() };
    ReloadDoc { schema: SCHEMA, errors: vec![error], ..ReloadDoc::default() }
}

/// The same of a gateway that uses the file all the same.
pub fn failed_in_part(changes: &Changes, report: &Report) -> ReloadDoc {
    ReloadDoc { ok: false, in_part: true, errors: failed(report).errors, ..outcome(changes, &[]) }
}

/// A warning where the guard is wanted and has no rules: the right to make them may have been dropped, as a gateway without guard does.
pub fn guard(guard: &GuardDoc) -> Option<FindingDoc> {
    let error = guard.error.as_ref().filter(|_| guard.state == "missing")?;
    let message = format!("the guard has no rules, and cleartext packets can bypass the gateway: {error}");
    let help = "restart the gateway if it started without the guard: it dropped CAP_NET_ADMIN then; see `forebay status`";
    Some(FindingDoc { message, help: help.to_owned(), ..FindingDoc::default() })
}

fn finding(one: &Finding) -> FindingDoc {
    let Plain { file, line, message, hint: help, .. } = one.plain();
    FindingDoc { file, line, message, help }
}
