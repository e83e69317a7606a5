//! Bytes from a pipe to lines of text.

/// The longest piece that is handed on as one line, in bytes.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// Cuts a stream into lines. A line over [`MAX_LINE`] comes in pieces, never cut inside a character.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Takes the next bytes, and hands on the lines that they complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut line: impl FnMut(String)) {
        while let Some(end) = bytes.iter().position(|&b| b == b'\n') {
            self.take(&bytes[..end], &mut line);
            line(text(self.partial.strip_suffix(b"\r").unwrap_or(&self.partial)));
            self.partial.clear();
            bytes = &bytes[end + 1..];
        }
        self.take(bytes, &mut line);
    }

    /// Hands on what is left without a line's end.
    pub(crate) fn finish(&mut self, line: impl FnOnce(String)) {
        if !self.partial.is_empty() {
            line(text(&std::mem::take(&mut self.partial)));
        }
    }

    fn take(&mut self, bytes: &[u8], line: &mut impl FnMut(String)) {
        self.partial.extend_from_slice(bytes);
        while self.partial.len() > MAX_LINE {
            let cut = character_start(&self.partial, MAX_LINE);
            let rest = self.partial.split_off(cut);
            line(text(&std::mem::replace(&mut self.partial, rest)));
        }
    }
}

/// The last place at or before `at` where a character begins; `at` itself if the bytes there are no UTF-8.
fn character_start(bytes: &[u8], at: usize) -> usize {
    let continues = |&b: &u8| b & 0b1100_0000 == 0b1000_0000;
    let back = bytes[..=at].iter().rev().take_while(|b| continues(b)).count();
    if back < 4 { at - back } else { at }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.feed(chunk, |line| out.push(line));
        }
        lines.finish(|line| out.push(line));
        out
    }

    #[test]
    fn lines_are_cut_at_newlines_wherever_the_reads_fall() {
        assert_eq!(lines(&[b"one\ntw", b"o\r\n\nend"]), ["one", "two", "", "end"]);
        assert_eq!(lines(&[b"one\r", b"\ntwo\n"]), ["one", "two"]);
        assert!(lines(&[b""]).is_empty());
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(lines(&[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_line_of_the_longest_length_is_whole_and_a_longer_one_comes_in_pieces() {
        let longest = vec![b'x'; MAX_LINE];
        assert_eq!(lines(&[&longest, b"\n"]).len(), 1);
        let pieces = lines(&[&longest, &longest, b"y\nz\n"]);
        assert_eq!(pieces.iter().map(String::len).collect::<Vec<_>>(), [MAX_LINE, MAX_LINE, 1, 1]);
    }

    #[test]
    fn a_piece_never_ends_inside_a_character() {
        let mut text = "x".repeat(MAX_LINE - 2);
        text.push('€');
        text.push_str("end");
        let pieces = lines(&[text.as_bytes()]);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces.concat(), text);
    }

    #[test]
    fn long_nonsense_is_cut_too() {
        let pieces = lines(&[&vec![0x80; MAX_LINE + 10]]);
        assert_eq!(pieces.len(), 2);
    }
}
