//! What a person sees while a run works, and how they stop it.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scantling_report::progress::{Progress, Weight};
use scantling_run::RunEvent;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::terminal;

/// What a shell reports of a program that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// What the first interrupt is answered with.
const STOPPING: &str = "\nstopping; the same command continues later (interrupt again to stop at once)\n";

/// Who looks at the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Somebody who gets a report soon: only what is going on now, and only on a terminal.
    Soon,
    /// Somebody who wants to know how a long run went: each step in a line.
    Whole,
}

/// Shows progress on standard error: in place on a terminal, in lines elsewhere.
pub(crate) struct Display {
    progress: Progress,
    bar: ProgressBar,
    audience: Audience,
    terminal: bool,
}

impl Display {
    pub(crate) fn new(audience: Audience) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        // A template that is a constant of this program; the default is as good should it ever not parse.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self { progress: Progress::new(), bar, audience, terminal }
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, event: &RunEvent) {
        for news in self.progress.news(event) {
            match news.weight {
                Weight::Stays => self.line(&news.line()),
                Weight::Wait if !self.terminal => self.line(&news.line()),
                Weight::Now | Weight::Wait => self.bar.set_message(terminal::plain(&news.line())),
            }
        }
    }

    fn line(&self, line: &str) {
        if self.audience == Audience::Whole {
            self.bar.suspend(|| terminal::complain(&format!("{line}\n")));
        } else {
            self.bar.set_message(terminal::plain(line));
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if self.terminal && self.audience == Audience::Whole {
            // Between the lines and the report.
            terminal::complain("\n");
        }
    }
}

/// Listens for interrupts: the first asks the run to stop, which the receiver tells, the second ends the program. Must be
/// called inside a runtime.
pub(crate) fn interrupts() -> std::io::Result<watch::Receiver<bool>> {
    let (asked, stop) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        next().await;
        terminal::complain(STOPPING);
        // Nobody may be listening any more.
        let _ = asked.send(true);
        next().await;
        std::process::exit(INTERRUPTED);
    });
    Ok(stop)
}
