//! The live page of a running gateway: embedded files, and a stream of events that they show.
//!
//! [`Feed`] reads the gateway's status once per second while a browser watches, and otherwise every five seconds, for the last hour. The
//! files are in `page/`; the plots are those of all reports ([`forebay_page`]). The page changes nothing and contains no
//! keys.

mod feed;
mod happened;
mod shown;

use std::sync::Arc;

use forebay_admission::Place;
use forebay_config::LivePage;
use serde_json::{Map, json};

use super::http::{Body, Head, Reply, Site};
use super::{Answer, reasons};
use feed::Feed;

/// Fields of every answer: nothing is kept, nothing is asked of others, nothing runs but the page's own script.
pub(super) const FIELDS: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n";

const HTML: &str = include_str!("../page/index.html");
const STYLE: &str = include_str!("../page/live.css");
const SCRIPTS: [&str; 3] =
    [include_str!("../page/tables.js"), include_str!("../page/flows.js"), include_str!("../page/live.js")];

/// `/` and what belongs to it.
pub(super) struct PageSite {
    files: [(&'static str, &'static str, Arc<str>); 4],
    feed: Arc<Feed>,
}

impl PageSite {
    /// Begins to look at a gateway that answers so.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub fn start(answer: Arc<Answer>, settings: &LivePage) -> std::io::Result<PageSite> {
        let feed = Feed::start(answer, settings.clients, settings.addresses)?;
        let style = [forebay_page::STYLE, forebay_page::PARTS, STYLE].concat();
        let files = [
            ("/", "text/html; charset=utf-8", HTML.replace("{reasons}", &reasons_json()).into()),
            ("/page.css", "text/css; charset=utf-8", style.into()),
            ("/plot.js", "text/javascript; charset=utf-8", forebay_page::SCRIPT.into()),
            ("/page.js", "text/javascript; charset=utf-8", SCRIPTS.concat().into()),
        ];
        Ok(PageSite { files, feed })
    }

    fn events(&self, head: &Head) -> Reply {
        // Another site's page, in a browser that reaches this one, could take the places.
        if head.site.as_deref().is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Reply::text("403 Forbidden", "only this page may watch");
        }
        match self.feed.watch() {
            Some(watch) => Reply {
                status: "200 OK",
                kind: "text/event-stream; charset=utf-8",
                body: Body::Events(Box::new(watch)),
            },
            None => Reply::text(
                "503 Service Unavailable\r\nRetry-After: 10",
                &format!("{} browsers watch already, which is `clients` of [page]", self.feed.most()),
            ),
        }
    }
}

impl Site for PageSite {
    fn get(&self, head: &Head, _: &Place) -> Reply {
        if head.path == "/events" {
            return self.events(head);
        }
        match self.files.iter().find(|(path, ..)| *path == head.path) {
            Some((_, kind, text)) => Reply { status: "200 OK", kind, body: Body::Whole(text.clone()) },
            None => Reply::text("404 Not Found", "see /"),
        }
    }

    fn end(&self) {
        self.feed.end();
    }
}

/// Meaning and remedy of each reason of drops, as JSON that no reader of HTML takes for markup.
fn reasons_json() -> String {
    let of = |all: &mut dyn Iterator<Item = reasons::Reason>| -> Map<String, serde_json::Value> {
        all.map(|one| (one.name.to_owned(), json!([one.explanation, one.remedy]))).collect()
    };
    let all = json!({ "engine": of(&mut reasons::of_engine()), "links": of(&mut reasons::of_links()) });
    all.to_string().replace('<', "\\u003c")
}
