//! What JavaScript calls.

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// A function of the worker, which posts the share that is done to the page.
    #[wasm_bindgen(js_name = forebayProgress)]
    fn progress(share: f64);
}

/// A figure as HTML from its description, which is JSON; empty if it is none.
#[wasm_bindgen(js_name = plot)]
pub fn plot(drawing: &str) -> String {
    crate::plot_json(drawing).unwrap_or_default()
}

/// Runs the scenario `text` as the JSON object `request` says; the answer is JSON too.
#[wasm_bindgen(js_name = run)]
pub fn run(text: &str, request: &str) -> String {
    crate::run_json(text, request, &|share| progress(share))
}
