//! Text from outside: which characters names refuse, and how text is shown.
//!
//! A character that a reader does not see, or that moves other characters, can make two names look the same,
//! forge a line of a log or reverse a sentence. So names refuse such characters. Texts that must be kept
//! unchanged (error texts, keys, hosts, payloads) keep them, and every terminal and every line of a text log
//! shows them escaped.

#[doc(hidden)]
pub mod percent;

use std::borrow::Cow;

/// Whether a character is refused in names and escaped where text is shown.
///
/// These are the control characters, the separators of lines and paragraphs, every character that Unicode
/// calls `Default_Ignorable_Code_Point` (zero width, bidirectional marks, overrides and isolates, variation
/// selectors, tags, fillers) and interlinear annotations. PostgreSQL has the same list in `check_name`; a
/// test compares them.
pub fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a text has such a character.
pub fn has_unsafe(text: &str) -> bool {
    // Nearly every name is plain ASCII.
    !text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) && text.chars().any(is_unsafe)
}

/// The text on one line, safe for a terminal: line breaks and tabs become spaces, other unsafe characters
/// their code.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !has_unsafe(text) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' => safe.push(' '),
            letter if is_unsafe(letter) => safe.extend(letter.escape_unicode()),
            letter => safe.push(letter),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_has_no_unsafe_character() {
        for letter in '\0'..=char::MAX {
            let text = format!("a{letter}b");
            let safe = shown(&text);
            assert!(!safe.chars().any(is_unsafe), "{safe:?}");
            assert_eq!(safe == text, !is_unsafe(letter), "{letter:?}");
        }
    }

    #[test]
    fn shown_text_names_what_it_hides() {
        assert_eq!(shown("a\u{202e}b\u{1b}[2J\nc"), r"a\u{202e}b\u{1b}[2J c");
        assert_eq!(shown("täglich → 日本 ❤"), "täglich → 日本 ❤");
    }

    #[test]
    fn every_way_to_hide_or_reorder_is_unsafe() {
        let hidden = [
            '\0',
            '\u{7f}',
            '\u{85}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{e0041}',
        ];
        assert_eq!(hidden.into_iter().filter(|letter| !is_unsafe(*letter)).collect::<Vec<_>>(), []);
        let seen = [' ', '~', '\u{a0}', 'é', 'ß', 'א', 'ع', 'क', '日', '\u{3000}', '❤', '😀', '\u{fffd}'];
        assert_eq!(seen.into_iter().filter(|letter| is_unsafe(*letter)).collect::<Vec<_>>(), []);
    }
}
