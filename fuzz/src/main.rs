//! The fuzzing program: libFuzzer's engine around one of the targets.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let run = RUN.get_or_init(|| {
        let name = std::env::var(scantling_fuzz::TARGET_VARIABLE).unwrap_or_default();
        scantling_fuzz::target(&name).expect("the variable SCANTLING_FUZZ_TARGET names no target")
    });
    run(data);
});
