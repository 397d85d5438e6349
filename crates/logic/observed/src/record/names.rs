//! Texts that are held once.

use std::collections::HashSet;
use std::sync::Arc;

/// A text that many may hold.
pub type Text = Arc<str>;

/// How many different texts are remembered. Above it every text is held for itself: memory grows then, but by no more than what is read.
const MAX_NAMES: usize = 1_000_000;

/// Texts that were seen: the same text is given out as the same memory. Names of images, nodes and namespaces come thousands of times.
#[derive(Debug, Default)]
pub struct Names {
    known: HashSet<Text>,
}

impl Names {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text, held once.
    pub fn keep(&mut self, text: &str) -> Text {
        if let Some(known) = self.known.get(text) {
            return Text::clone(known);
        }
        let new = Text::from(text);
        if self.known.len() < MAX_NAMES {
            self.known.insert(Text::clone(&new));
        }
        new
    }
}
