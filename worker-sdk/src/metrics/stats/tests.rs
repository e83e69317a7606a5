use super::*;

#[test]
fn sums_of_a_kind_lose_less_than_one_by_one() {
    let values = vec![0.1; 100_000];
    let (found, one_by_one) = (sum(&values), values.iter().sum::<f64>());
    assert!((found - 10_000.0).abs() < (one_by_one - 10_000.0).abs() / 100.0, "{found}, {one_by_one}");
}

#[test]
fn exact_sums_lose_nothing() {
    assert_eq!(exact_sum(&[1e16, 1.0, -1e16, 1e-3]), 1.001);
    assert_eq!(exact_sum(&[0.1; 10]), 1.0);
    assert_eq!(exact_sum(&[]), 0.0);
}

#[test]
fn the_missing_count_nowhere() {
    let values = [f64::NAN, 1.0, f64::NAN, 4.0];
    assert_eq!(mean(&values), 2.5);
    assert_eq!(median(&values), 2.5);
    assert_eq!((min(&values), max(&values)), (1.0, 4.0));
    assert_eq!(std(&values), 4.5_f64.sqrt());
    assert!(std(&[f64::NAN, 1.0]).is_nan());
    assert!([mean(&[]), median(&[]), min(&[]), max(&[]), quantile(&[], 0.5)].iter().all(|x| x.is_nan()));
}

#[test]
fn quantiles_lie_between_neighbours() {
    let values = [4.0, 1.0, 3.0, 2.0];
    assert_eq!(quantile(&values, 0.25), 1.75);
    assert_eq!(quantile(&values, 0.75), 3.25);
    assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (1.0, 4.0));
}

#[test]
fn equal_numbers_leave_no_doubt() {
    assert_eq!(confidence_95(0.5, 0.0, 3), Some((0.5, 0.5)));
    assert_eq!(confidence_95(0.5, 0.0, 1), None);
}
