//! Finds the known name that a mistyped name was probably meant to be.

/// The nearest of the known names, if it differs by no more than a typing mistake.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let far = wrong.chars().count().div_ceil(3).max(2);
    known
        .into_iter()
        .map(|name| (distance(wrong, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= far)
        .map(|(_, name)| name)
}

/// Edit distance: insertions, deletions and replacements.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        let mut next = vec![before];
        for (right, above) in b.iter().zip(row.iter().skip(1)) {
            let cost = (diagonal + usize::from(left != *right)).min(above + 1).min(before + 1);
            diagonal = *above;
            before = cost;
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_its_name_but_another_word_none() {
        let known = ["slots", "store", "history_days"];
        assert_eq!(nearest("slot", known), Some("slots"));
        assert_eq!(nearest("history_day", known), Some("history_days"));
        assert_eq!(nearest("colour_of_the_sea", known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
