//! Codes SCN02xx: whether what a release refers to has been published and can be pulled.

table! {}
