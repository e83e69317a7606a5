//! Orders drawn from a seed. Stored positions count in them, so they must never change.

/// The place of the `at`th of `count` in an order drawn from the seed, without keeping the order: a Feistel network over
/// the next power of four, walked on until it lands among the `count`.
pub(super) fn place(seed: u64, count: u64, at: u64) -> u64 {
    const ROUNDS: u64 = 8;
    let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
    let half = bits.div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut place = at;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for round in 0..ROUNDS {
            let mixed = mix(mix(seed ^ round.wrapping_mul(STEP)) ^ right) & mask;
            (left, right) = (right, left ^ mixed);
        }
        place = left << half | right;
        if place < count {
            return place;
        }
    }
}

/// Shuffles a page.
pub(super) fn shuffle<T>(seed: u64, page: u64, rows: &mut [T]) {
    let mut state = mix(seed) ^ mix(page.wrapping_add(STEP));
    for (last, left) in (1..rows.len()).rev().zip((2..=rows.len() as u64).rev()) {
        state = state.wrapping_add(STEP);
        // The high half of a product falls below the factor, so it is a usize again.
        let drawn = (u128::from(mix(state)) * u128::from(left)) >> 64;
        rows.swap(last, usize::try_from(drawn).unwrap_or(last));
    }
}

/// The steps of `SplitMix64`, and its mixing.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_each_place_once() {
        for count in [1, 2, 3, 4, 5, 16, 17, 100, 1000] {
            for seed in [0, 1, u64::MAX] {
                let mut places: Vec<u64> = (0..count).map(|at| place(seed, count, at)).collect();
                places.sort_unstable();
                assert!(places.into_iter().eq(0..count), "{count} from {seed}");
            }
        }
        assert!(place(7, u64::MAX, u64::MAX - 1) < u64::MAX);
    }

    #[test]
    fn seeds_draw_different_orders() {
        let order = |seed| (0..100).map(|at| place(seed, 100, at)).collect::<Vec<_>>();
        assert_ne!(order(0), (0..100).collect::<Vec<_>>());
        assert_ne!(order(0), order(1));
        // Every place comes first sometimes, and none always.
        let firsts: std::collections::BTreeSet<u64> = (0..200).map(|seed| place(seed, 5, 0)).collect();
        assert_eq!(firsts.len(), 5);
        let page = |seed, page| {
            let mut rows: Vec<u8> = (0..50).collect();
            shuffle(seed, page, &mut rows);
            rows
        };
        assert_ne!(page(0, 0), page(0, 1));
        assert_ne!(page(0, 0), page(1, 0));
        let mut rows = page(3, 4);
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..50));
    }

    #[test]
    fn orders_never_change() {
        let order: Vec<u64> = (0..10).map(|at| place(42, 10, at)).collect();
        let mut rows: Vec<u8> = (0..10).collect();
        shuffle(42, 3, &mut rows);
        assert_eq!(order, [2, 6, 7, 9, 1, 3, 0, 8, 5, 4]);
        assert_eq!(rows, [6, 4, 2, 7, 8, 3, 1, 5, 9, 0]);
    }
}
