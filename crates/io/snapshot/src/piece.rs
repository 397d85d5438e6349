//! What a text is split into.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Why;

/// A list's own words on what its items are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemKind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Which list an item is of; lists are numbered within a file. None for an object that stands by itself.
pub(crate) type ListNumber = Option<u32>;

/// One object's text.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Where it is in its block.
    pub(crate) range: Range<usize>,
    /// Where it is in the file.
    pub(crate) offset: u64,
    pub(crate) list: ListNumber,
    /// What its list says that it is, where that came before the items.
    pub(crate) kind: Option<Arc<ItemKind>>,
}

/// In which language a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    /// An item is a document or a list of one element.
    Yaml,
}

/// A part of a file, in its order.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Objects that lie in one block of text.
    Items { form: Form, text: Vec<u8>, items: Vec<Item> },
    /// A list is over; its kind is known now, or never.
    ListEnd { list: u32, kind: Option<ItemKind> },
    /// Something that is not read.
    Bad { offset: u64, why: Why },
}

impl ItemKind {
    /// The kind of a list's items, from `PodList`; none for `List`, whose items say what they are.
    pub(crate) fn of_list(api_version: &str, kind: &str) -> Option<Self> {
        let item = kind.strip_suffix("List").filter(|item| !item.is_empty())?;
        Some(Self { api_version: api_version.to_owned(), kind: item.to_owned() })
    }
}
