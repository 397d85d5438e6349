//! The terminal: how wide it is, whether it shows colours, and writing to it.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::ColorChoice;
use indicatif::{ProgressBar, ProgressStyle};
use scantling_report::style::Screen;

/// Widest layout: longer lines are hard to follow.
const WIDEST: usize = 160;

/// Applies `--color`; without it the terminal and `NO_COLOR` decide.
pub(crate) fn choose_color(choice: ColorChoice) {
    match choice {
        ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
        ColorChoice::Auto => anstream::ColorChoice::Auto.write_global(),
    }
}

/// The width to lay out for: the terminal's, else `COLUMNS`, else 100.
pub(crate) fn screen() -> Screen {
    let columns = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).or_else(columns);
    width.map_or_else(Screen::default, |width| Screen::new(width.min(WIDEST)))
}

/// Writes a report to standard output. A reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes to standard error. If even that fails nobody is left to be told.
pub(crate) fn complain(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A text without its colours, for places that colour by themselves.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// What shows on standard error, if that is a terminal, that something goes on.
pub(crate) fn spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    // A template that is a constant of this program; the default is as good should it ever not parse.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
