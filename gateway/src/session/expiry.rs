//! Timers: which sessions are to be looked at, and when, without scanning the table.
//!
//! A hierarchical wheel: 7 levels of 64 buckets, each level's buckets 64 times as long as the one's below. A session
//! sits in one bucket. What comes out when a bucket's time comes is to be looked at: not every one is due (the
//! higher levels' buckets are long, and use does not move a timer), the others are set again by the table.

use std::{
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Millis, SessionId};

/// A session's place in its wheel. Kept in the record; checked against the ID, so that a stale one does no harm.
pub(super) type TimerHandle = u32;

/// No timer set.
pub(super) const NO_TIMER: TimerHandle = u32::MAX;

/// The wheels' resolution.
pub(super) const TICK: Millis = 100;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 7;
const MAX_TICK: u64 = (1 << (BITS * LEVELS as u32)) - 1;
const WHEELS: usize = 16;
const END: u32 = u32::MAX;

/// The timers of one table, in several wheels so that cores seldom meet.
#[derive(Debug)]
pub(super) struct Timers {
    wheels: Box<[Mutex<Wheel>]>,
    hasher: foldhash::fast::RandomState,
}

impl Timers {
    pub(super) fn new() -> Self {
        Self {
            wheels: (0..WHEELS).map(|_| Mutex::default()).collect(),
            hasher: foldhash::fast::RandomState::default(),
        }
    }

    /// Sets or moves a session's timer. It comes out at the deadline or up to [`TICK`] later, never earlier than due
    /// unless as one that is to be set again.
    pub(super) fn set(&self, id: &SessionId, timer: &mut TimerHandle, deadline: Millis) {
        self.wheel(id).set(id, timer, deadline);
    }

    /// Takes a session's timer out.
    pub(super) fn clear(&self, id: &SessionId, timer: TimerHandle) {
        self.wheel(id).clear(id, timer);
    }

    /// Calls `look` for every session whose time may have come. No lock is held meanwhile.
    pub(super) fn each_due(&self, now: Millis, mut look: impl FnMut(SessionId)) {
        const AT_ONCE: usize = 256;
        let mut due = Vec::new();
        for wheel in &self.wheels {
            loop {
                lock(wheel).take_due(now, AT_ONCE, &mut due);
                if due.is_empty() {
                    break;
                }
                due.drain(..).for_each(&mut look);
            }
        }
    }

    fn wheel(&self, id: &SessionId) -> MutexGuard<'_, Wheel> {
        lock(&self.wheels[self.hasher.hash_one(id) as usize % WHEELS])
    }

    /// How many timers are set.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.wheels.iter().map(|wheel| lock(wheel).len()).sum()
    }
}

fn lock(wheel: &Mutex<Wheel>) -> MutexGuard<'_, Wheel> {
    // A wheel is whole after every call, whatever panicked.
    wheel.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A timer, in the list of its bucket or in the list of free ones.
#[derive(Debug)]
struct Node {
    /// `None`: free.
    id: Option<SessionId>,
    previous: u32,
    next: u32,
    bucket: u16,
}

#[derive(Debug)]
struct Wheel {
    /// The tick up to which everything has come out, but for what is left in the buckets that hold it.
    now: u64,
    heads: [[u32; SLOTS]; LEVELS],
    /// A bit for every bucket that is not empty.
    occupied: [u64; LEVELS],
    nodes: Vec<Node>,
    free: u32,
}

impl Default for Wheel {
    fn default() -> Self {
        Self { now: 0, heads: [[END; SLOTS]; LEVELS], occupied: [0; LEVELS], nodes: Vec::new(), free: END }
    }
}

impl Wheel {
    fn set(&mut self, id: &SessionId, timer: &mut TimerHandle, deadline: Millis) {
        let tick = deadline.div_ceil(TICK).clamp(self.now + 1, MAX_TICK);
        if self.is(id, *timer) {
            self.unlink(*timer);
        } else {
            *timer = self.allocate(id.clone());
        }
        self.link(*timer, self.bucket(tick));
    }

    fn clear(&mut self, id: &SessionId, timer: TimerHandle) {
        if self.is(id, timer) {
            self.unlink(timer);
            self.release(timer);
        }
    }

    /// Takes out up to `limit` of what is due to be looked at; all of it was taken if there is nothing in `out`.
    fn take_due(&mut self, now: Millis, limit: usize, out: &mut Vec<SessionId>) {
        let target = (now / TICK).min(MAX_TICK - 1);
        while out.len() < limit {
            match self.next_bucket() {
                Some((start, level, slot)) if start <= target => {
                    self.now = self.now.max(start);
                    self.drain(level, slot, limit, out);
                }
                _ => {
                    self.now = self.now.max(target);
                    return;
                }
            }
        }
    }

    fn drain(&mut self, level: usize, slot: usize, limit: usize, out: &mut Vec<SessionId>) {
        while out.len() < limit && self.heads[level][slot] != END {
            let timer = self.heads[level][slot];
            self.unlink(timer);
            out.extend(self.release(timer));
        }
    }

    /// The first bucket that is not empty, and the tick at which its time begins.
    fn next_bucket(&self) -> Option<(u64, usize, usize)> {
        let place = |level: usize| (self.now >> (BITS as usize * level)) as usize % SLOTS;
        // What is left of a bucket whose time has begun.
        let begun = (0..LEVELS).find(|level| self.occupied[*level] & (1 << place(*level)) != 0);
        if let Some(level) = begun {
            return Some((self.now, level, place(level)));
        }
        // Timers of a lower level are all within the bucket of the next higher one that holds the present.
        (0..LEVELS).find_map(|level| {
            let ahead = self.occupied[level] & (u64::MAX << place(level));
            if ahead == 0 {
                return None;
            }
            let slot = ahead.trailing_zeros() as usize;
            let shift = BITS as usize * level;
            let round = (self.now >> shift) & !(SLOTS as u64 - 1);
            Some(((round | slot as u64) << shift, level, slot))
        })
    }

    /// The bucket for a later tick: of the level where it first differs from the present.
    fn bucket(&self, tick: u64) -> u16 {
        let highest = 63 - ((self.now ^ tick) | 1).leading_zeros();
        let level = (highest / BITS) as usize;
        let slot = (tick >> (BITS as usize * level)) as usize % SLOTS;
        (level * SLOTS + slot) as u16
    }

    fn is(&self, id: &SessionId, timer: TimerHandle) -> bool {
        self.nodes.get(timer as usize).is_some_and(|node| node.id.as_ref() == Some(id))
    }

    fn allocate(&mut self, id: SessionId) -> TimerHandle {
        let node = Node { id: Some(id), previous: END, next: END, bucket: 0 };
        if self.free == END {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let timer = self.free;
        self.free = self.nodes[timer as usize].next;
        self.nodes[timer as usize] = node;
        timer
    }

    fn release(&mut self, timer: TimerHandle) -> Option<SessionId> {
        let free = self.free;
        let node = &mut self.nodes[timer as usize];
        node.next = free;
        self.free = timer;
        node.id.take()
    }

    fn link(&mut self, timer: TimerHandle, bucket: u16) {
        let (level, slot) = (bucket as usize / SLOTS, bucket as usize % SLOTS);
        let next = std::mem::replace(&mut self.heads[level][slot], timer);
        if let Some(next) = self.nodes.get_mut(next as usize) {
            next.previous = timer;
        }
        let node = &mut self.nodes[timer as usize];
        (node.previous, node.next, node.bucket) = (END, next, bucket);
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, timer: TimerHandle) {
        let Node { previous, next, bucket, .. } = self.nodes[timer as usize];
        if let Some(next) = self.nodes.get_mut(next as usize) {
            next.previous = previous;
        }
        if let Some(previous) = self.nodes.get_mut(previous as usize) {
            previous.next = next;
            return;
        }
        let (level, slot) = (bucket as usize / SLOTS, bucket as usize % SLOTS);
        self.heads[level][slot] = next;
        if next == END {
            self.occupied[level] &= !(1 << slot);
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.nodes.iter().filter(|node| node.id.is_some()).count()
    }
}

#[cfg(test)]
mod tests;
