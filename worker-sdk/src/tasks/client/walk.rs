//! The tasks of a walk, one by one.

use std::collections::VecDeque;
use std::fmt;

use futures_util::Stream;
use futures_util::stream::unfold;
use serde::de::DeserializeOwned;

use super::position::Page;
use super::{ClientError, EnvTasks, Position};

/// The tasks of a split, asked for page by page: no more than one page is in memory.
pub struct Tasks<T> {
    env: EnvTasks,
    position: Position,
    /// What is left of the page.
    page: VecDeque<Found<T>>,
}

/// A task and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// Its row in the split, for the episode's reset.
    pub index: u64,
    /// The task.
    pub task: T,
}

impl<T> Tasks<T> {
    pub(super) fn new(env: EnvTasks, position: Position) -> Self {
        Self { env, position, page: VecDeque::new() }
    }

    /// Behind the last task that was given.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// How many tasks are still to come.
    pub fn remaining(&self) -> u64 {
        self.position.remaining()
    }
}

impl<T: DeserializeOwned> Tasks<T> {
    /// The next task; `None` at the end. After an error the same page is asked for again. May be dropped where it waits.
    ///
    /// # Errors
    /// If a page cannot be had; if the server has fewer tasks than it counted.
    pub async fn next(&mut self) -> Option<Result<Found<T>, ClientError>> {
        loop {
            if let Some(found) = self.page.pop_front() {
                if self.page.is_empty() {
                    self.position.turn();
                } else {
                    self.position.tasks += 1;
                }
                return Some(Ok(found));
            }
            let page = self.position.page()?;
            match self.load(&page).await {
                Ok(tasks) => self.page = tasks,
                Err(error) => return Some(Err(error)),
            }
            if self.page.is_empty() {
                self.position.turn();
            }
        }
    }

    /// The same as a stream. It does not end at an error: whoever reads on asks again.
    pub fn into_stream(self) -> impl Stream<Item = Result<Found<T>, ClientError>> {
        unfold(self, |mut tasks| async move { tasks.next().await.map(|next| (next, tasks)) })
    }

    /// What is left of a page.
    async fn load(&self, page: &Page) -> Result<VecDeque<Found<T>>, ClientError> {
        let rows = &page.rows;
        if rows.is_empty() {
            return Ok(VecDeque::new());
        }
        let wrong =
            |why: String| ClientError::BadReply { url: format!("{}/task_range", self.env.name()), why };
        let bound =
            |row: u64| i64::try_from(row).map_err(|_| wrong(format!("no row {row} can be asked for")));
        let (start, stop) = (bound(rows.start)?, bound(rows.end)?);
        let tasks: Vec<T> = self.env.get_task_range(&self.position.split, Some(start), Some(stop)).await?;
        if tasks.len() as u64 != rows.end - rows.start {
            return Err(wrong(format!("{} tasks for the rows {start} to {stop} - 1", tasks.len())));
        }
        let found = rows.clone().zip(tasks).map(|(index, task)| Found { index, task }).collect();
        let done = usize::try_from(self.position.tasks).unwrap_or(usize::MAX);
        Ok(self.position.ordered(page, found).into_iter().skip(done).collect())
    }
}

impl<T> fmt::Debug for Tasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("position", &self.position).finish_non_exhaustive()
    }
}
