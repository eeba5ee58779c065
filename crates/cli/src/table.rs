//! Text tables: columns are as wide as their widest cell, and lines have no trailing spaces.

/// The cell of a value that is absent.
pub const ABSENT: &str = "-";

/// Between two columns.
const GAP: usize = 3;

/// Rows under a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with this header.
    #[must_use]
    pub fn with_header(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Adds a row. Line breaks in a cell become spaces.
    pub fn add(&mut self, cells: Vec<String>) {
        self.rows.push(cells.into_iter().map(|cell| on_one_line(&cell)).collect());
    }

    /// The lines of the table, each indented by so many spaces.
    #[must_use]
    pub fn render(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:<width$}{}", " ".repeat(GAP)));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn on_one_line(cell: &str) -> String {
    if cell.is_empty() {
        ABSENT.to_owned()
    } else {
        cell.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_an_empty_cell_is_a_dash() {
        let mut table = TextTable::with_header(&["NAME", "STATE"]);
        table.add(vec!["größer".to_owned(), String::new()]);
        table.add(vec!["b".to_owned(), "two\nlines".to_owned()]);
        let lines = "  NAME     STATE\n  größer   -\n  b        two lines\n";
        assert_eq!(table.render(2), lines);
    }
}
