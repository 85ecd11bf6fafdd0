//! Standard output and error that may be closed: `forebay study list | head -1` ends quietly.
//!
//! The standard library's `print!` and similar macros panic when the reader has closed the pipe. The macros below
//! replace them throughout a program that imports them. A reader that has closed the pipe counts as an interrupt:
//! pending output is dropped, and work in progress stops in good order and keeps its results.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// As the standard library's, but the reader may have gone away.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}
/// A line, as [`print!`](crate::print).
#[macro_export]
macro_rules! println {
    () => { $crate::output::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}
/// A line on standard error, as far as that can be written.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::complain(format_args!("{}\n", format_args!($($text)*))) };
}

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes to standard output. When that fails for another reason than a closed pipe, such as a full disk,
/// the program says so and ends with exit code 2.
pub fn print(text: Arguments<'_>) {
    if CLOSED.load(Ordering::Relaxed) {
        return;
    }
    match io::stdout().lock().write_fmt(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => CLOSED.store(true, Ordering::Relaxed),
        Err(error) => fail(&error),
    }
}

/// Writes out what is still held, at the end of the program.
pub fn flush() {
    match io::stdout().lock().flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => fail(&error),
        _ => {}
    }
}

/// Writes to standard error, as far as that can be.
pub fn complain(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Whether the reader of standard output has gone away.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

fn fail(error: &io::Error) -> ! {
    complain(format_args!("cannot write to standard output: {error}\n"));
    std::process::exit(2)
}
