//! Amounts by row and resource, in one block of memory.

use crate::amount::Amount;
use crate::ids::ResourceId;

/// See the module. A resource that the table has never heard of has the amount nothing.
#[derive(Debug, Default, Clone)]
pub(super) struct ResourceTable {
    /// Resources per row.
    width: usize,
    cells: Vec<Amount>,
}

impl ResourceTable {
    /// Nothing of `width` resources in each of `rows` rows.
    pub(super) fn new(rows: usize, width: usize) -> Self {
        Self { width, cells: vec![Amount::ZERO; rows * width] }
    }

    /// Becomes what [`ResourceTable::new`] makes, in the memory it has.
    pub(super) fn reset(&mut self, rows: usize, width: usize) {
        self.width = width;
        self.cells.clear();
        self.cells.resize(rows * width, Amount::ZERO);
    }

    /// All amounts of a row, by resource.
    pub(super) fn row(&self, row: usize) -> &[Amount] {
        self.cells.get(row * self.width..(row + 1) * self.width).unwrap_or_default()
    }

    pub(super) fn get(&self, row: usize, resource: ResourceId) -> Amount {
        self.row(row).get(resource.index()).copied().unwrap_or_default()
    }

    /// Adds, also what is negative.
    pub(super) fn add(&mut self, row: usize, resource: ResourceId, amount: Amount) {
        if resource.index() >= self.width {
            self.widen(resource.index() + 1);
        }
        if let Some(cell) = self.cells.get_mut(row * self.width + resource.index()) {
            cell.0 = cell.0.saturating_add(amount.0);
        }
    }

    fn widen(&mut self, width: usize) {
        let rows = self.cells.len().checked_div(self.width).unwrap_or_default();
        let mut wider = Self::new(rows, width);
        for row in 0..rows {
            let start = row * width;
            wider.cells[start..start + self.width].copy_from_slice(self.row(row));
        }
        *self = wider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_resource_widens_every_row() {
        let mut table = ResourceTable::new(2, 1);
        table.add(1, ResourceId(0), Amount(5));
        table.add(0, ResourceId(2), Amount(7));
        assert_eq!(table.row(0), [Amount(0), Amount(0), Amount(7)]);
        assert_eq!(table.row(1), [Amount(5), Amount(0), Amount(0)]);
    }
}
