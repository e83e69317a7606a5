//! What a walk goes over, and how far it is.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::order;
use crate::tasks::TaskRange;

const PAGE_SIZE: u32 = 100;

/// Which tasks of a split to walk over, and in what order.
///
/// The rows are cut into pages of nearly equal size, as many for each shard. Shard `i` of `n` gets the pages `i`, `i + n`,
/// `i + 2n`... of the order: every row is in one shard, and shards differ by no more rows than they have pages. A shuffle
/// draws the order of all pages from its seed, the same in all shards, and the order within each page; with a page size of
/// 1 it is one of single tasks, at a request each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    start: Option<i64>,
    stop: Option<i64>,
    shard: u32,
    shards: u32,
    seed: Option<u64>,
    page_size: u32,
}

impl Default for Walk {
    fn default() -> Self {
        Self { start: None, stop: None, shard: 0, shards: 1, seed: None, page_size: PAGE_SIZE }
    }
}

impl Walk {
    /// The whole split in its own order, in pages of up to 100.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only these rows.
    #[must_use]
    pub fn range(mut self, range: TaskRange) -> Self {
        (self.start, self.stop) = (range.start, range.stop);
        self
    }

    /// Only the part of shard `shard` (from 0) of `shards`.
    #[must_use]
    pub fn shard(mut self, shard: u32, shards: u32) -> Self {
        (self.shard, self.shards) = (shard, shards);
        self
    }

    /// In an order drawn from the seed: the same for the same seed, range, shards and page size.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How many tasks to ask for, and to keep, at a time. Default: 100.
    #[must_use]
    pub fn page_size(mut self, tasks: u32) -> Self {
        self.page_size = tasks;
        self
    }
}

/// How far a walk is; kept as JSON, say, it goes on with [`EnvTasks::resume`](super::EnvTasks::resume).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    env: String,
    pub(super) split: String,
    /// The split's size when the walk began.
    total: u64,
    walk: Walk,
    /// How many pages of the shard are done.
    pages: u64,
    /// How many tasks of the next one are.
    pub(super) tasks: u32,
}

/// A page: where it is among all pages of the walk, and its rows.
pub(super) struct Page {
    number: u64,
    pub(super) rows: Range<u64>,
}

/// Why a walk cannot begin or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPosition {
    /// There is no such shard.
    #[error("there is no shard {shard} of {shards}: shards are 0 to {shards} - 1")]
    Shard {
        /// The shard.
        shard: u32,
        /// Of how many.
        shards: u32,
    },
    /// Pages without tasks.
    #[error("a page must have one task at least")]
    PageSize,
    /// Further than the walk goes.
    #[error("the position is behind the walk's end")]
    BehindEnd,
    /// Of another environment.
    #[error("the position is one of {is}, not of {asked}")]
    OtherEnvironment {
        /// The environment that was asked to resume.
        asked: String,
        /// The position's.
        is: String,
    },
    /// The split has changed.
    #[error("the split {split} had {was} tasks when the walk began, and now has {is}; begin a new walk")]
    OtherSize {
        /// The split.
        split: String,
        /// How many tasks it had.
        was: u64,
        /// And has.
        is: u64,
    },
}

impl Position {
    pub(super) fn start(env: &str, split: &str, total: u64, walk: Walk) -> Self {
        Self { env: env.to_owned(), split: split.to_owned(), total, walk, pages: 0, tasks: 0 }
    }

    /// Whether it is one of this environment, whose split now has so many tasks.
    pub(super) fn fits(&self, env: &str, total: u64) -> Result<(), BadPosition> {
        if self.env.to_lowercase() != env.to_lowercase() {
            return Err(BadPosition::OtherEnvironment { asked: env.to_owned(), is: self.env.clone() });
        }
        if self.total != total {
            return Err(BadPosition::OtherSize { split: self.split.clone(), was: self.total, is: total });
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), BadPosition> {
        let Walk { shard, shards, page_size, .. } = self.walk;
        if shard >= shards {
            return Err(BadPosition::Shard { shard, shards });
        }
        if page_size == 0 {
            return Err(BadPosition::PageSize);
        }
        let page_has = self.page().map_or(0, |page| page.rows.end - page.rows.start);
        if self.pages > self.pages_of_shard() || u64::from(self.tasks) > page_has {
            return Err(BadPosition::BehindEnd);
        }
        Ok(())
    }

    /// How many tasks of the shard are still to come.
    pub(super) fn remaining(&self) -> u64 {
        let pages = (self.pages..self.pages_of_shard()).map(|at| self.page_at(at).rows);
        pages.map(|rows| rows.end - rows.start).sum::<u64>().saturating_sub(self.tasks.into())
    }

    /// The next page; `None` at the end.
    pub(super) fn page(&self) -> Option<Page> {
        (self.pages < self.pages_of_shard()).then(|| self.page_at(self.pages))
    }

    /// On to the next page.
    pub(super) fn turn(&mut self) {
        (self.pages, self.tasks) = (self.pages + 1, 0);
    }

    /// A page's tasks in the order in which they come.
    pub(super) fn ordered<T>(&self, page: &Page, mut tasks: Vec<T>) -> Vec<T> {
        if let Some(seed) = self.walk.seed {
            order::shuffle(seed, page.number, &mut tasks);
        }
        tasks
    }

    fn rows(&self) -> Range<u64> {
        TaskRange { start: self.walk.start, stop: self.walk.stop }.within(self.total)
    }

    fn pages_of_shard(&self) -> u64 {
        let rows = self.rows();
        let a_turn = u64::from(self.walk.page_size) * u64::from(self.walk.shards);
        (rows.end - rows.start).div_ceil(a_turn.max(1))
    }

    fn page_at(&self, at: u64) -> Page {
        let rows = self.rows();
        let shards = u64::from(self.walk.shards);
        let pages = self.pages_of_shard().saturating_mul(shards);
        let turn = at * shards + u64::from(self.walk.shard);
        let number = self.walk.seed.map_or(turn, |seed| order::place(seed, pages, turn));
        let (length, pages) = (u128::from(rows.end - rows.start), u128::from(pages.max(1)));
        // Below `length`, so it is a u64 again.
        let bound = |page: u64| u64::try_from(u128::from(page) * length / pages).unwrap_or(u64::MAX);
        Page { number, rows: rows.start + bound(number)..rows.start + bound(number + 1) }
    }
}

#[cfg(test)]
mod tests;
