//! Codes SCN03xx: whether one name means one image, between releases and on nodes.

table! {}
