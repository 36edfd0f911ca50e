#include "routines/elements.cuh"
// Moves elements without arithmetic: one thread an element.

KERNEL(fill_zero, FillArgs) {
  const i64 i = global_thread();
  if (i < a.bytes) AT(u8, a.to)[i] = 0;
}

KERNEL(copy_elements, CopyArgs) {
  const i64 i = global_thread();
  if (i >= a.count) return;
  i64 from = offset_in(a.from_axes, i), to = offset_in(a.to_axes, i);
  if (a.starts != 0) {
    i64 start = AT(const i32, a.starts)[offset_in(a.start_axes, i)];
    start = start < 0 ? 0 : start > a.limit ? a.limit : start;
    from += start * a.from_step;
    to += start * a.to_step;
  }
  move_element(a.to, to, a.from, from, a.element_bytes);
}

KERNEL(dequantize, DequantizeArgs) {
  const i64 i = global_thread();
  if (i >= a.before * a.rows * a.after) return;
  const i64 row = i / a.after, column = i % a.after;
  const i64 group = row / a.rows * a.groups + row % a.rows / (a.rows / a.groups);
  store_float(a.to, a.type, i, (float)AT(const i8, a.matrix)[i] * load_float(a.scales, a.type, group * a.after + column));
}
