//! A dense table of amounts by row and resource.

use crate::amount::Amount;
use crate::ids::ResourceId;

/// Amounts by row and resource, in one allocation. A resource beyond the width has the amount zero.
#[derive(Debug, Default, Clone)]
pub(super) struct ResourceTable {
    /// Resources per row.
    width: usize,
    cells: Vec<Amount>,
}

impl ResourceTable {
    /// A table of zeros: `rows` rows of `width` resources.
    pub(super) fn new(rows: usize, width: usize) -> Self {
        Self { width, cells: vec![Amount::ZERO; rows * width] }
    }

    /// Resets the table to the result of [`ResourceTable::new`] without releasing memory.
    pub(super) fn reset(&mut self, rows: usize, width: usize) {
        self.width = width;
        self.cells.clear();
        self.cells.resize(rows * width, Amount::ZERO);
    }

    /// Amounts of a row, indexed by resource.
    pub(super) fn row(&self, row: usize) -> &[Amount] {
        self.cells.get(row * self.width..(row + 1) * self.width).unwrap_or_default()
    }

    pub(super) fn get(&self, row: usize, resource: ResourceId) -> Amount {
        self.row(row).get(resource.index()).copied().unwrap_or_default()
    }

    /// Adds an amount, which may be negative. Widens the table for a new resource.
    pub(super) fn add(&mut self, row: usize, resource: ResourceId, amount: Amount) {
        if resource.index() >= self.width {
            self.widen(resource.index() + 1);
        }
        if let Some(cell) = self.cells.get_mut(row * self.width + resource.index()) {
            // Amounts may be negative, so nothing is clipped at zero.
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
