//! The registry of codes: one table per hundred, each in a file of its own.
//!
//! To add a code, add an entry at the end of its table. A number is never used twice and never changes its meaning.

use crate::CodeInfo;

/// Declares one table: a constant per code, and `TABLE` with the registrations in order.
macro_rules! table {
    ($($name:ident = $code:literal, $severity:ident, $title:literal, $explanation:literal, $remedy:literal
        $(, upgrade $upgrade:ident)?;)*) => {
        $(
            #[doc = concat!($code, ": ", $title, ".")]
            pub const $name: $crate::Code = $crate::Code::new(&$crate::CodeInfo {
                code: $code,
                severity: $crate::Severity::$severity,
                title: $title,
                explanation: $explanation,
                remedy: $remedy,
                upgrade: table!(@upgrade $($upgrade)?),
            });
        )*

        /// The registrations of this table, in order.
        pub(crate) static TABLE: &[$crate::CodeInfo] = &[
            $($crate::CodeInfo {
                code: $code,
                severity: $crate::Severity::$severity,
                title: $title,
                explanation: $explanation,
                remedy: $remedy,
                upgrade: table!(@upgrade $($upgrade)?),
            },)*
        ];
    };
    (@upgrade) => { $crate::InUpgrade::NotSeen };
    (@upgrade $upgrade:ident) => { $crate::InUpgrade::$upgrade };
}

pub mod audit;
pub mod contents;
pub mod fallbacks;
pub mod identity;
pub mod input;
pub mod publication;
pub mod references;
pub mod release;
pub mod run;

const TABLES: [&[CodeInfo]; 9] = [
    references::TABLE,
    publication::TABLE,
    identity::TABLE,
    fallbacks::TABLE,
    contents::TABLE,
    input::TABLE,
    release::TABLE,
    run::TABLE,
    audit::TABLE,
];

const COUNT: usize = {
    let mut count = 0;
    let mut table = 0;
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
};

const ALL: [CodeInfo; COUNT] = {
    let mut all = [input::TABLE[0]; COUNT];
    let mut filled = 0;
    let mut table = 0;
    while table < TABLES.len() {
        let mut entry = 0;
        while entry < TABLES[table].len() {
            all[filled] = TABLES[table][entry];
            filled += 1;
            entry += 1;
        }
        table += 1;
    }
    all
};

/// Every registered code, in ascending order.
pub static CODES: &[CodeInfo] = &ALL;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn codes_ascend_and_stand_in_their_own_table() {
        assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code), "codes are not in ascending order");
        for (hundred, table) in (1..).zip(TABLES) {
            for info in table {
                let number: u32 = info.code.strip_prefix("SCN").unwrap().parse().unwrap();
                assert_eq!(info.code.len(), 7, "{}", info.code);
                assert_eq!(number / 100, hundred, "{} stands in the wrong table", info.code);
            }
        }
    }

    #[test]
    fn every_code_says_what_why_and_what_to_do() {
        for info in CODES {
            for text in [info.title, info.explanation, info.remedy] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text:?}", info.code);
            }
            assert_eq!(crate::Code::find(info.code).unwrap().info(), info);
        }
    }
}
