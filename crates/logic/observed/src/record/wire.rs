//! How wire forms read texts and mappings of texts: borrowed where the source allows it, `null` like nothing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::names::{Names, Text};

/// A text; `null` is the empty text, as Kubernetes reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Str<'a>(pub(super) Cow<'a, str>);

impl Str<'_> {
    pub(super) fn kept(&self, names: &mut Names) -> Text {
        names.keep(&self.0)
    }

    /// For texts that no other object has.
    pub(super) fn own(&self) -> Text {
        Text::from(&*self.0)
    }
}

struct StrVisitor;

impl<'de> Visitor<'de> for StrVisitor {
    type Value = Str<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Str(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Str(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Str(Cow::Owned(text)))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Str::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrVisitor)
    }
}

/// Which pairs of a mapping are kept.
pub(super) trait Filter {
    /// Is the pair with this key kept?
    fn keeps(key: &str) -> bool;
}

/// Every pair.
#[derive(Debug, Default)]
pub(super) struct Everything;

impl Filter for Everything {
    fn keeps(_: &str) -> bool {
        true
    }
}

/// A mapping of texts, in the order in which it is written.
#[derive(Debug)]
pub(super) struct Pairs<'a, F>(Vec<(Str<'a>, Str<'a>)>, std::marker::PhantomData<F>);

impl<F> Default for Pairs<'_, F> {
    fn default() -> Self {
        Self(Vec::new(), std::marker::PhantomData)
    }
}

impl<F> Pairs<'_, F> {
    /// Sorted by key.
    pub(super) fn kept(&self, names: &mut Names) -> Vec<(Text, Text)> {
        let mut pairs: Vec<_> =
            self.0.iter().map(|(key, value)| (key.kept(names), value.kept(names))).collect();
        pairs.sort();
        pairs.shrink_to_fit();
        pairs
    }
}

impl<'de: 'a, 'a, F: Filter> Deserialize<'de> for Pairs<'a, F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<F>(std::marker::PhantomData<F>);

        impl<'de, F: Filter> Visitor<'de> for PairsVisitor<F> {
            type Value = Pairs<'de, F>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of strings")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Pairs::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<Str<'de>>()? {
                    if F::keeps(&key.0) {
                        pairs.push((key, map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Pairs(pairs, std::marker::PhantomData))
            }
        }
        deserializer.deserialize_any(PairsVisitor(std::marker::PhantomData))
    }
}

/// A pair's value in a sorted list of pairs.
pub(super) fn value<'a>(pairs: &'a [(Text, Text)], key: &str) -> Option<&'a str> {
    let index = pairs.binary_search_by(|(own, _)| (**own).cmp(key)).ok()?;
    pairs.get(index).map(|(_, value)| &**value)
}
