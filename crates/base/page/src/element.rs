//! A tiny writer of HTML and SVG: it closes what it opens, escapes what it is
//! given, and lets no number through that a browser could not draw.

use serde::Serialize;

/// An element with its attributes and children.
pub struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

enum Node {
    Element(Element),
    Text(String),
    /// Our own style sheet or script: the only text that is not escaped, and never a run's.
    Verbatim(&'static str),
    /// JSON within a script element, every `<` of it escaped as JSON does.
    Json(String),
}

/// A value that an attribute can have.
pub trait Value {
    /// The attribute's text before escaping.
    fn text(self) -> String;
}

impl Value for &str {
    fn text(self) -> String {
        self.to_owned()
    }
}

impl Value for String {
    fn text(self) -> String {
        self
    }
}

impl Value for f64 {
    fn text(self) -> String {
        number(self)
    }
}

/// An empty element.
pub fn element(name: &'static str) -> Element {
    Element { name, attributes: Vec::new(), children: Vec::new() }
}

impl Element {
    /// Sets an attribute.
    pub fn at(mut self, name: &'static str, value: impl Value) -> Self {
        self.attributes.push((name, value.text()));
        self
    }

    /// Sets the class.
    pub fn class(self, value: impl Value) -> Self {
        self.at("class", value)
    }

    /// Appends an element.
    pub fn child(mut self, child: Element) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    /// Appends elements.
    pub fn children(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }

    /// Appends text, which will be escaped.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.children.push(Node::Text(text.into()));
        self
    }

    /// Appends a sentence, in which what stands between backticks is code.
    pub fn prose(self, words: &str) -> Self {
        let parts: Vec<&str> = words.split('`').collect();
        if parts.len().is_multiple_of(2) {
            return self.text(words);
        }
        parts.iter().enumerate().filter(|(_, part)| !part.is_empty()).fold(self, |whole, (at, part)| {
            if at % 2 == 0 { whole.text(*part) } else { whole.child(element("code").text(*part)) }
        })
    }

    /// Appends one of the page's own style sheets or scripts as it stands.
    pub fn verbatim(mut self, text: &'static str) -> Self {
        self.children.push(Node::Verbatim(text));
        self
    }

    /// Appends a value as JSON that no reader of HTML takes for markup.
    pub fn json(mut self, value: &impl Serialize) -> Self {
        // What cannot be written as JSON is none of our values: they are numbers and text.
        let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        self.children.push(Node::Json(text.replace('<', "\\u003c")));
        self
    }

    /// Gives a shape the text that a browser shows when the pointer rests on it.
    pub fn title(self, text: impl Into<String>) -> Self {
        self.child(element("title").text(text))
    }

    /// Writes the element and all within it.
    pub fn write(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape(value, out);
            out.push('"');
        }
        if is_void(self.name) {
            out.push_str("/>");
            return;
        }
        out.push('>');
        for child in &self.children {
            match child {
                Node::Element(child) => child.write(out),
                Node::Text(text) => escape(text, out),
                Node::Verbatim(text) => out.push_str(text),
                Node::Json(text) => out.push_str(text),
            }
        }
        out.push_str("</");
        out.push_str(self.name);
        out.push('>');
        if is_block(self.name) {
            out.push('\n');
        }
    }
}

/// The commands of an SVG path.
#[derive(Default)]
pub struct Path(String);

impl Path {
    /// Appends a command and its numbers.
    pub fn to(mut self, command: char, numbers: &[f64]) -> Self {
        self.0.push(command);
        for (i, value) in numbers.iter().enumerate() {
            if i > 0 {
                self.0.push(' ');
            }
            self.0.push_str(&number(*value));
        }
        self
    }

    /// The path as an element.
    pub fn element(self) -> Element {
        element("path").at("d", self.0)
    }
}

/// Writes a number for an attribute: finite, of modest size, at most two decimals.
pub fn number(value: f64) -> String {
    /// Far outside every drawing, and still exact for a browser's single floats.
    const LIMIT: f64 = 1e5;
    let value = if value.is_finite() { value.clamp(-LIMIT, LIMIT) } else { 0.0 };
    let text = format!("{value:.2}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if is_unfit(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// Characters that no document may hold, and those that turn the direction of the text after them.
fn is_unfit(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n'))
        || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_void(name: &str) -> bool {
    matches!(name, "meta" | "br" | "hr")
}

/// Elements after which a line break changes nothing but the reading of the source.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "head"
            | "title"
            | "style"
            | "script"
            | "svg"
            | "g"
            | "p"
            | "tr"
            | "table"
            | "section"
            | "div"
            | "figure"
            | "h1"
            | "h2"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_in_pairs_are_code_and_one_alone_stays() {
        let written = |words: &str| {
            let mut out = String::new();
            element("p").prose(words).write(&mut out);
            out.trim_end().to_owned()
        };
        assert_eq!(written("`a<b` and `c`."), "<p><code>a&lt;b</code> and <code>c</code>.</p>");
        assert_eq!(written("5 ` 6"), "<p>5 ` 6</p>");
    }
}
