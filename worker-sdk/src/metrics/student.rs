//! The one quantile of Student's t that is needed: 97.5%, by whole degrees of freedom.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use super::stats::count;

/// The normal distribution's 97.5% quantile.
const NORMAL: f64 = 1.959_963_984_540_054;

/// From here on four terms of the expansion around the normal quantile are exact to the last digits.
const MANY: usize = 500;

/// The value below which 97.5% of Student's t lie, with `freedom` (1 and more) degrees of freedom.
pub(super) fn quantile_975(freedom: usize) -> f64 {
    if freedom >= MANY { expansion(count(freedom)) } else { solve(freedom) }
}

/// Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5).
fn expansion(freedom: f64) -> f64 {
    let x = NORMAL;
    let g1 = (x.powi(3) + x) / 4.0;
    let g2 = (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0;
    let g3 = (3.0 * x.powi(7) + 19.0 * x.powi(5) + 17.0 * x.powi(3) - 15.0 * x) / 384.0;
    let g4 = (79.0 * x.powi(9) + 776.0 * x.powi(7) + 1482.0 * x.powi(5) - 1920.0 * x.powi(3) - 945.0 * x)
        / 92160.0;
    x + (g1 + (g2 + (g3 + g4 / freedom) / freedom) / freedom) / freedom
}

/// Halves the angle's range until two neighbouring numbers are left.
fn solve(freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    loop {
        let angle: f64 = f64::midpoint(low, high);
        if angle <= low || angle >= high {
            return angle.tan() * count(freedom).sqrt();
        }
        if within(angle, freedom) < 0.95 { low = angle } else { high = angle }
    }
}

/// The probability of |t| < tan(angle) * sqrt(freedom): a finite sum (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn within(angle: f64, freedom: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = !freedom.is_multiple_of(2);
    let mut term = if odd { cosine } else { 1.0 };
    let mut total = 0.0;
    let mut power = if odd { 1 } else { 0 };
    while power + 2 <= freedom {
        total += term;
        term *= cosine * cosine * count(power + 1) / count(power + 2);
        power += 2;
    }
    if odd { FRAC_2_PI * (angle + sine * total) } else { sine * total }
}

#[cfg(test)]
mod tests;
