//! The word that was probably meant. Knows no command.

use crate::limits::NAME_BYTES_MAX;

/// The candidate that takes the fewest edits from `word`, if they are few for its length.
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let (edits, near) = candidates
        .iter()
        .map(|candidate| (edit_distance(word, candidate), *candidate))
        .min_by_key(|(edits, _)| *edits)?;
    (edits <= near.len().div_ceil(3) && edits < near.len()).then_some(near)
}

/// Levenshtein's distance in bytes, ASCII case aside. Words longer than a name are far from everything.
fn edit_distance(a: &str, b: &str) -> usize {
    const MAX: usize = NAME_BYTES_MAX;
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() > MAX || b.len() > MAX {
        return usize::MAX;
    }
    let mut row: [usize; MAX + 1] = core::array::from_fn(|index| index);
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(!from.eq_ignore_ascii_case(to));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let words = ["status", "version", "databases"];
        assert_eq!(nearest("statsu", &words), Some("status"));
        assert_eq!(nearest("VERSON", &words), Some("version"));
        assert_eq!(nearest("tables", &words), None);
        assert_eq!(nearest("", &words), None);
        assert_eq!(nearest("x", &[]), None);
        assert_eq!(nearest("x", &["="]), None);
    }
}
