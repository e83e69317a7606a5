//! `status --watch`: the same again and again, in place where there is a terminal.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    thread::sleep,
    time::Duration,
};

/// Asks and shows every so often, until the process is ended or nobody reads any more. A first question without an answer
/// is a failure; later ones are shown, and asked again: the gateway may be about to come back.
pub(super) fn watch<E: Display>(ask: impl Fn() -> Result<String, E>, every: Duration) -> ExitCode {
    let mut out = io::stdout();
    let terminal = out.is_terminal();
    let mut first = true;
    loop {
        let shown = match ask() {
            Ok(text) => show(&mut out, &text, terminal, first),
            Err(error) if first => {
                eprintln!("gym-gateway: {error}");
                return ExitCode::FAILURE;
            }
            Err(error) if terminal => show(&mut out, &error.to_string(), terminal, first),
            Err(error) => {
                eprintln!("gym-gateway: {error}");
                Ok(())
            }
        };
        match shown {
            Ok(()) => {}
            // A reader that has seen enough is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("gym-gateway: cannot write: {error}");
                return ExitCode::FAILURE;
            }
        }
        first = false;
        sleep(every);
    }
}

fn show(out: &mut impl Write, text: &str, terminal: bool, first: bool) -> io::Result<()> {
    let frame = if terminal { frame(text, first) } else { format!("{}\n\n", text.trim_end()) };
    // In one piece, so that nobody sees half of it.
    out.write_all(frame.as_bytes())?;
    out.flush()
}

/// What a terminal has to be sent to show `text` and nothing else. The screen is cleared once; after that lines are
/// written over, which does not flicker.
fn frame(text: &str, first: bool) -> String {
    let mut frame = String::from(if first { "\x1b[2J\x1b[H" } else { "\x1b[H" });
    for line in text.trim_end().lines() {
        frame.push_str(line);
        frame.push_str("\x1b[K\n");
    }
    frame.push_str("\x1b[J");
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_leaves_nothing_of_the_one_before() {
        assert_eq!(frame("a\nb\n", true), "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(frame("a", false), "\x1b[Ha\x1b[K\n\x1b[J");
    }

    #[test]
    fn without_a_terminal_there_are_no_codes() {
        let mut out = Vec::new();
        show(&mut out, "a\nb\n", false, true).unwrap();
        assert_eq!(out, b"a\nb\n\n");
    }
}
