// A box of an array (N13) and the places of its elements.

// A box: its first element, its sizes, and how many elements it has.
struct Box {
  i64 first, count, size[MOST_AXES];
};
DEVICE Box box_of(const BoxArgs& a, i64 number) {
  Box box;
  box.first = 0, box.count = 1;
  for (i64 k = a.rank - 1; k >= 0; --k) {
    const i64 begin = number % a.boxes[k] * a.length[k], end = begin + a.length[k];
    number /= a.boxes[k];
    const i64 low = begin < a.size[k] ? begin : a.size[k];
    box.size[k] = (end < a.size[k] ? end : a.size[k]) - low;
    box.first += low * a.stride[k];
    box.count *= box.size[k];
  }
  return box;
}
DEVICE i64 box_offset(const BoxArgs& a, const Box& box, i64 r) {
  i64 at = box.first;
  if (r < 0x7fffffff) {
    u32 left = (u32)r;
    for (i64 k = a.rank - 1; k > 0; --k) {
      at += left % (u32)box.size[k] * a.stride[k];
      left /= (u32)box.size[k];
    }
    return a.rank == 0 ? at : at + left * a.stride[0];
  }
  for (i64 k = a.rank - 1; k > 0; --k) {
    at += r % box.size[k] * a.stride[k];
    r /= box.size[k];
  }
  return at + r * a.stride[0];
}
