//! Codes SCN04xx: references that become live only under a condition.

table! {}
