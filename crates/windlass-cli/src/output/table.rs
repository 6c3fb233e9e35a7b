//! Columns under headings.

/// A table that is printed when it is complete, so that every column has the width of its longest cell.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, headings first. The last column is not padded.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max())
            .map(Option::unwrap_or_default)
            .collect();
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (cell, column) in row.iter().zip(widths) {
        text.push_str(cell);
        let padding = column.saturating_sub(width(cell)) + 2;
        text.extend(std::iter::repeat_n(' ', padding));
    }
    text.trim_end().to_owned()
}

/// Visible characters: colours take no room.
fn width(cell: &str) -> usize {
    let mut seen = 0;
    let mut in_colour = false;
    for letter in cell.chars() {
        match (in_colour, letter) {
            (false, '\x1b') => in_colour = true,
            (true, 'm') => in_colour = false,
            (true, _) => {}
            (false, _) => seen += 1,
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_and_without_colours() {
        let mut table = Table::new(&["id", "state"]);
        table.row(vec!["\x1b[31mab\x1b[0m".into(), "done".into()]);
        table.row(vec!["abcd".into(), "dead".into()]);
        let lines = table.lines();
        assert_eq!(lines[0], "id    state");
        assert_eq!(lines[1], "\x1b[31mab\x1b[0m    done");
        assert_eq!(lines[2], "abcd  dead");
    }
}
