//! Codes SCN05xx: whether what is claimed of an image is in the image.

table! {}
