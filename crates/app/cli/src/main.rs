//! The `scantling` command.

fn main() {}
