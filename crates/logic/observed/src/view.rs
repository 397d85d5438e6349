//! What all views have.

use scantling_api::{ObjectKey, object};
use serde_json::Value;

/// A typed view of one kind of object. It borrows the object and costs nothing.
pub trait View<'a>: Copy {
    /// The kind's API group; empty for the core group.
    const GROUP: &'static str;
    /// The kind.
    const KIND: &'static str;

    /// Looks at an object. Whoever calls this has made sure that it is of this kind.
    fn of(object: &'a Value) -> Self;

    /// The object itself.
    fn object(self) -> &'a Value;

    /// Its name.
    fn name(self) -> &'a str {
        object::name(self.object())
    }

    /// Its namespace; empty for objects of the cluster.
    fn namespace(self) -> &'a str {
        object::namespace(self.object()).unwrap_or_default()
    }

    /// Its uid; empty in files that were never in a cluster.
    fn uid(self) -> &'a str {
        object::uid(self.object())
    }

    /// Its key.
    fn key(self) -> ObjectKey {
        ObjectKey {
            group: Self::GROUP.to_owned(),
            kind: Self::KIND.to_owned(),
            namespace: object::namespace(self.object()).map(str::to_owned),
            name: self.name().to_owned(),
        }
    }

    /// An annotation.
    fn annotation(self, name: &str) -> Option<&'a str> {
        object::annotation(self.object(), name)
    }

    /// A label.
    fn label(self, name: &str) -> Option<&'a str> {
        object::label(self.object(), name)
    }

    /// Is somebody deleting it?
    fn is_being_deleted(self) -> bool {
        self.object().pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }
}

/// Declares a view.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident, $group:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name<'a>(&'a serde_json::Value);

        impl<'a> crate::view::View<'a> for $name<'a> {
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;

            fn of(object: &'a serde_json::Value) -> Self {
                Self(object)
            }

            fn object(self) -> &'a serde_json::Value {
                self.0
            }
        }
    };
}
pub(crate) use view;

/// The items of a list at a pointer; none if there is no list.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// A string field of a value.
pub(crate) fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number at a pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}
