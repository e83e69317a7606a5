//! The statistics, rounding as numpy, pandas and Python's `statistics` do.

/// numpy's sum: in order up to 8 numbers, then 8 partial sums, and halves above 128, so that errors stay small.
pub(super) fn sum(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    const BLOCK: usize = 128;
    if values.len() < LANES {
        return values.iter().sum();
    }
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (left, right) = values.split_at(half - half % LANES);
        return sum(left) + sum(right);
    }
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let total = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(total, |total, value| total + value)
}

/// A count as a divisor.
pub(super) fn count(n: usize) -> f64 {
    n as f64
}

/// The numbers that are not NaN.
pub(super) fn present(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|x| !x.is_nan()).collect()
}

/// The mean; NaN if there are none. A missing number is a NaN: it counts nowhere.
pub(super) fn mean(values: &[f64]) -> f64 {
    // Zeros in the places of the missing, for they decide which numbers are added first.
    let filled: Vec<f64> = values.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
    sum(&filled) / count(present(values).len())
}

/// The sample's standard deviation (n - 1); NaN below two numbers. A missing number is a NaN.
pub(super) fn std(values: &[f64]) -> f64 {
    let n = present(values).len();
    if n < 2 {
        return f64::NAN;
    }
    let mean = mean(values);
    let squares: Vec<f64> =
        values.iter().map(|x| if x.is_nan() { 0.0 } else { (mean - x) * (mean - x) }).collect();
    (sum(&squares) / count(n - 1)).sqrt()
}

/// The largest; NaN if there are none.
pub(super) fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// The smallest; NaN if there are none.
pub(super) fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::min)
}

/// The median: the mean of the middle two if their number is even; NaN if there are none.
pub(super) fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), middle.checked_sub(1).and_then(|before| sorted.get(before))) {
        (Some(high), Some(low)) if sorted.len().is_multiple_of(2) => (low + high) / 2.0,
        (Some(high), _) => *high,
        (None, _) => f64::NAN,
    }
}

/// The number below which the part `q` (0 to 1) lies, between two numbers in proportion; NaN if there are none.
pub(super) fn quantile(values: &[f64], q: f64) -> f64 {
    let sorted = sorted(values);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = count(last) * q;
    let below = place.floor() as usize;
    let (Some(low), Some(high)) = (sorted.get(below), sorted.get((below + 1).min(last))) else {
        return f64::NAN;
    };
    let part = place - place.floor();
    // From the nearer end, so that the rounding is numpy's.
    if part < 0.5 { low + (high - low) * part } else { high - (high - low) * (1.0 - part) }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = present(values);
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The sum, rounded only at the end: partial sums that do not overlap lose nothing (Shewchuk 1997).
pub(super) fn exact_sum(values: &[f64]) -> f64 {
    let mut parts: Vec<f64> = Vec::new();
    for value in values {
        let mut x = *value;
        let mut kept = Vec::with_capacity(parts.len() + 1);
        for part in parts {
            let (large, small) = if x.abs() < part.abs() { (part, x) } else { (x, part) };
            let high = large + small;
            let low = small - (high - large);
            if low != 0.0 {
                kept.push(low);
            }
            x = high;
        }
        kept.push(x);
        parts = kept;
    }
    parts.iter().rev().sum()
}

/// The standard deviation of the numbers as a whole population (n).
pub(super) fn population_std(values: &[f64]) -> f64 {
    let n = count(values.len());
    let mean = exact_sum(values) / n;
    let squares: Vec<f64> = values.iter().map(|x| (x - mean) * (x - mean)).collect();
    (exact_sum(&squares) / n).sqrt()
}

/// Where the middle 95% of numbers like these lie around their mean: Student's t, n - 1 degrees of freedom.
///
/// `error` is the standard error of the mean. None below two numbers.
pub(super) fn confidence_95(mean: f64, error: f64, n: usize) -> Option<(f64, f64)> {
    if n < 2 {
        return None;
    }
    let reach = if error == 0.0 { 0.0 } else { error * super::student::quantile_975(n - 1) };
    Some((mean - reach, mean + reach))
}

#[cfg(test)]
mod tests;
