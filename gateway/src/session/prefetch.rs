//! Fetching ahead: the table's place for a session, while something else is computed.

#![allow(
    unsafe_code,
    reason = "the processor's prefetch instruction has no safe wrapper in the standard library"
)]

use super::{SessionId, SessionTable, record::Entry};

/// A cache line, of the processors that the gateway usually runs on.
const LINE: usize = 64;

/// How many buckets are fetched: the first of the ID's probe sequence, and the one where it is if that was taken.
const BUCKETS: usize = 2;

/// How many lines they lie in, wherever they begin.
const LINES: usize = (BUCKETS * size_of::<(SessionId, Entry)>()).div_ceil(LINE) + 1;

impl SessionTable {
    /// Begins to fetch a session's place in the table into the cache, so that a request for it a moment later does not
    /// wait for memory: among a million sessions it would, for as long as checking a signature takes.
    ///
    /// Has no other effect, and does not wait, so the ID may be anyone's invention.
    pub fn expect(&self, id: &SessionId) {
        let hash = self.sessions.hash_usize(id);
        let shard = &self.sessions.shards()[self.sessions.determine_shard(hash)];
        let Some(table) = shard.try_read() else { return };
        // As hashbrown lays it out: a byte for every bucket behind the end of the buckets, which are in reverse order.
        let (end, first) = (table.data_end().as_ptr().cast_const(), hash & (table.buckets() - 1));
        drop(table);
        prefetch(end.cast::<u8>().wrapping_add(first));
        let lowest = end.wrapping_sub(first + BUCKETS).cast::<u8>();
        let aligned = lowest.wrapping_sub(lowest.addr() % LINE);
        for line in 0..LINES {
            prefetch(aligned.wrapping_add(line * LINE));
        }
    }
}

/// Asks for the cache line at an address. The address may be any: where nothing is, nothing happens.
fn prefetch(address: *const u8) {
    // SAFETY: the instruction is a hint. It reads nothing that the program sees, writes nothing, and never faults.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
