//! The messages of the seed/verify and Gymnasium protocols.
