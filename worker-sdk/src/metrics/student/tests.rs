use super::*;

/// Degrees of freedom and scipy's `stats.t.ppf(0.975, freedom)`.
const SCIPY: &[(usize, f64)] = &[
    (1, 12.706204736174694),
    (2, 4.302652729749462),
    (3, 3.1824463052837078),
    (4, 2.7764451051977934),
    (5, 2.5705818356363146),
    (9, 2.262157162798205),
    (10, 2.228138851986274),
    (31, 2.039513446396408),
    (100, 1.9839715185235518),
    (250, 1.9694983934211532),
    (499, 1.9647293909876886),
    (500, 1.9647198374673676),
    (501, 1.9647103221754827),
    (1_000, 1.9623390808264083),
    (12_345, 1.9601561676005668),
    (1_000_000, 1.959966356814107),
];

#[test]
fn is_what_scipy_computes() {
    for (freedom, expected) in SCIPY {
        let found = quantile_975(*freedom);
        assert!((found / expected - 1.0).abs() < 1e-13, "{freedom}: {found} is not {expected}");
    }
}

#[test]
fn both_ways_of_computing_it_meet() {
    for freedom in [MANY - 1, MANY, MANY + 1] {
        let (a, b) = (solve(freedom), expansion(count(freedom)));
        assert!((a / b - 1.0).abs() < 1e-13, "{freedom}: {a} and {b}");
    }
}
