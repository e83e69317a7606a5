//! The table in the machine's memory: in huge pages, and its place for a session fetched ahead.
//!
//! What a request among a million sessions waits for is not the cache line so much as the page: every lookup is in
//! another one of 4 KiB, and to find that in the page tables takes as long as the line itself. Half of it is saved
//! where the table lies in pages of 2 MiB, and most of the rest passes while a signature is checked.

#![allow(
    unsafe_code,
    reason = "the standard library has neither the processor's prefetch instruction nor an allocator's trait without it"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr::NonNull,
};

use nix::sys::mman::{MmapAdvise, madvise};

use super::{SessionId, SessionTable, record::Entry};

/// The system's allocator, but for big hash tables: those get huge pages of their own.
struct HugeTables;

#[global_allocator]
static ALLOCATOR: HugeTables = HugeTables;

/// A huge page, of the processors that the gateway usually runs on.
const HUGE: usize = 2 << 20;

/// What hashbrown aligns a table to, and hardly anything else: bodies and lists, which grow in place, stay out.
const TABLE_ALIGN: usize = 16;

/// The whole huge pages that a block gets; `None` for one that is no table, or would waste more than it uses.
fn huge_pages(block: Layout) -> Option<Layout> {
    let is_big_table = block.align() >= TABLE_ALIGN && block.size() >= HUGE / 2;
    block.align_to(HUGE).ok().filter(|_| is_big_table).map(|aligned| aligned.pad_to_align())
}

// SAFETY: every block is `System`'s, with its own layout or with that of `huge_pages`, which is no smaller and aligned
// no less. Which one follows from the caller's layout alone, so that it is freed by the layout it was made by.
unsafe impl GlobalAlloc for HugeTables {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(pages) = huge_pages(layout) else {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: no smaller than the caller's, so not of size 0.
        let block = unsafe { System.alloc(pages) };
        if let Some(start) = NonNull::new(block) {
            // Where the kernel has no huge pages to give, the block is as good as any: no error matters.
            // SAFETY: the pages are this block's and hold nothing yet; the advice changes no content anyway.
            let _ = unsafe { madvise(start.cast(), pages.size(), MmapAdvise::MADV_HUGEPAGE) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `alloc` or `realloc` made it by this layout.
        unsafe { System.dealloc(block, huge_pages(layout).unwrap_or(layout)) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if huge_pages(layout).is_none() {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promise.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block is at least that long.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size, rounded up to the alignment, does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if huge_pages(layout).is_none() && huge_pages(wanted).is_none() {
            // SAFETY: it is `System`'s by this layout.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller promises a size above 0.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both are that long, and different blocks; the old one is not used again.
            unsafe {
                moved.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

/// A cache line, of the processors that the gateway usually runs on.
const LINE: usize = 64;

/// How many buckets are fetched: the first of the ID's probe sequence, and the one where it is if that was taken.
/// One misses a quarter of the sessions; to ask the control bytes for the very one would wait for them.
const BUCKETS: usize = 2;

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
        prefetch(end.cast::<u8>().wrapping_add(first), 1);
        prefetch(end.wrapping_sub(first + BUCKETS).cast(), BUCKETS * size_of::<(SessionId, Entry)>());
    }
}

/// Asks for the cache lines of a piece of memory. It may be any: where nothing is, nothing happens.
fn prefetch(start: *const u8, size: usize) {
    let into_line = start.addr() % LINE;
    for offset in (0..into_line + size).step_by(LINE) {
        prefetch_line(start.wrapping_sub(into_line).wrapping_add(offset));
    }
}

fn prefetch_line(address: *const u8) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_tables_get_whole_huge_pages_and_nothing_else_does() {
        let pages =
            |size, align| huge_pages(Layout::from_size_align(size, align).unwrap()).map(|of| of.size());
        assert_eq!(pages(HUGE / 2 - 1, 16), None, "would waste more than it uses");
        assert_eq!(pages(HUGE / 2, 16), Some(HUGE));
        assert_eq!(pages(HUGE + 1, 16), Some(2 * HUGE));
        assert_eq!(pages(64 << 20, 1), None, "a body");
        assert_eq!(pages(64 << 20, 8), None, "a list");
    }

    #[test]
    fn a_block_keeps_its_bytes_whichever_way_it_grows_and_shrinks() {
        let sizes = [1 << 10, HUGE / 2, HUGE * 2, HUGE / 2 + 1, 1 << 10];
        // SAFETY: no size is 0; every block is given back by the layout that it has.
        unsafe {
            let mut layout = Layout::from_size_align(sizes[0], TABLE_ALIGN).unwrap();
            let mut block = ALLOCATOR.alloc(layout);
            block.write_bytes(7, layout.size());
            for size in sizes {
                block = ALLOCATOR.realloc(block, layout, size);
                let kept = layout.size().min(size);
                layout = Layout::from_size_align(size, TABLE_ALIGN).unwrap();
                assert!(std::slice::from_raw_parts(block, kept).iter().all(|byte| *byte == 7), "{size}");
                assert_eq!(huge_pages(layout).is_some(), size >= HUGE / 2);
                assert!(huge_pages(layout).is_none() || block.addr().is_multiple_of(HUGE), "{size}");
                block.write_bytes(7, size);
            }
            ALLOCATOR.dealloc(block, layout);
            let zeros = Layout::from_size_align(HUGE, TABLE_ALIGN).unwrap();
            let block = ALLOCATOR.alloc_zeroed(zeros);
            assert!(std::slice::from_raw_parts(block, HUGE).iter().all(|byte| *byte == 0));
            ALLOCATOR.dealloc(block, zeros);
        }
    }
}
