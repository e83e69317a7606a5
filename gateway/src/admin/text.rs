//! Tables and durations for people.

/// Columns as wide as their widest cell, two spaces between; no blanks at the end of a line.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..headings.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = line(headings.to_vec());
    let body = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    [head].into_iter().chain(body).collect::<Vec<_>>().join("\n")
}

/// `4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}
