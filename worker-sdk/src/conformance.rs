//! Does a resources server keep the contract of episode sessions? Drives any server by its URL.
