use super::*;

/// The rows of one shard, page by page.
fn pages(total: u64, walk: &Walk) -> Vec<Range<u64>> {
    let mut position = Position::start("env", "train", total, walk.clone());
    position.check().unwrap();
    let mut pages = Vec::new();
    while let Some(page) = position.page() {
        pages.push(page.rows);
        position.turn();
    }
    pages
}

#[test]
fn every_row_is_in_one_shard() {
    for total in [0, 1, 2, 7, 12, 100, 101, 1234] {
        for shards in [1, 2, 3, 5, 8, 200] {
            for (page_size, seed) in [(1, None), (5, None), (5, Some(7)), (100, Some(0)), (1, Some(9))] {
                let walk = Walk { page_size, seed, ..Walk::new() };
                let shards: Vec<_> =
                    (0..shards).map(|i| pages(total, &walk.clone().shard(i, shards))).collect();
                let mut rows: Vec<u64> = shards.iter().flatten().cloned().flatten().collect();
                rows.sort_unstable();
                assert!(rows.into_iter().eq(0..total), "{total} {walk:?}");
                let longest = shards.iter().flatten().map(|rows| rows.end - rows.start).max().unwrap_or(0);
                assert!(longest <= page_size.into(), "{total} {walk:?}");
                let sizes =
                    shards.iter().map(|pages| pages.iter().map(|rows| rows.end - rows.start).sum::<u64>());
                let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
                assert!(most - least <= shards[0].len() as u64, "{total} {walk:?}: {least} to {most}");
            }
        }
    }
}

#[test]
fn one_shard_in_order_is_the_split() {
    assert_eq!(pages(12, &Walk::new().page_size(5)), [0..4, 4..8, 8..12]);
    let range = TaskRange { start: Some(-5), stop: Some(-1) };
    assert_eq!(pages(12, &Walk::new().page_size(3).range(range)), [7..9, 9..11]);
    let first = TaskRange { start: None, stop: Some(3) };
    assert_eq!(pages(u64::MAX, &Walk::new().page_size(2).range(first)), [0..1, 1..3]);
}

#[test]
fn a_shuffle_is_over_all_pages() {
    let order = |seed| pages(1000, &Walk::new().page_size(10).shuffled(seed));
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    // A shard's pages change with the seed, too.
    let shard = |seed| pages(1000, &Walk::new().page_size(10).shard(0, 4).shuffled(seed));
    let sorted = |mut pages: Vec<Range<u64>>| {
        pages.sort_by_key(|rows| rows.start);
        pages
    };
    assert_ne!(sorted(shard(1)), sorted(shard(2)));
}

#[test]
fn what_remains_is_counted() {
    let mut position = Position::start("env", "train", 12, Walk::new().page_size(5));
    assert_eq!(position.remaining(), 12);
    position.tasks = 3;
    assert_eq!(position.remaining(), 9);
    position.turn();
    assert_eq!(position.remaining(), 8);
    for _ in 0..2 {
        position.turn();
    }
    assert_eq!((position.remaining(), position.page().is_none(), position.check()), (0, true, Ok(())));
}

#[test]
fn bad_walks_are_refused() {
    let at =
        |walk, pages, tasks| Position { pages, tasks, ..Position::start("env", "train", 12, walk) }.check();
    let walk = || Walk::new().page_size(5);
    assert_eq!(at(walk().shard(2, 2), 0, 0), Err(BadPosition::Shard { shard: 2, shards: 2 }));
    assert_eq!(at(walk().shard(0, 0), 0, 0), Err(BadPosition::Shard { shard: 0, shards: 0 }));
    assert_eq!(at(walk().page_size(0), 0, 0), Err(BadPosition::PageSize));
    assert_eq!(at(walk(), 0, 4), Ok(()));
    for (pages, tasks) in [(0, 5), (4, 0), (3, 1), (u64::MAX, 0)] {
        assert_eq!(at(walk(), pages, tasks), Err(BadPosition::BehindEnd), "{pages} {tasks}");
    }
    let position = Position::start("Env", "train", 12, walk());
    assert_eq!(position.fits("eNV", 12), Ok(()), "names are the same in any letter case");
    let other = BadPosition::OtherEnvironment { asked: "b".into(), is: "Env".into() };
    assert_eq!(position.fits("b", 12), Err(other));
    let other = BadPosition::OtherSize { split: "train".into(), was: 12, is: 13 };
    assert_eq!(position.fits("Env", 13), Err(other));
}
