//! Tables of specs, indexed by dense ids.

pub(crate) fn put<T>(table: &mut Vec<Option<T>>, index: usize, value: Option<T>) {
    if table.len() <= index {
        table.resize_with(index + 1, || None);
    }
    table[index] = value;
}
