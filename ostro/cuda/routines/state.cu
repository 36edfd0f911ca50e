#include "routines/fingerprint.cuh"
// Reductions of whole arrays of a training state: sums of squares by boxes (N13), fingerprints (N14).

// One block of 64 threads a box; thread l adds the elements r of the box with r mod 64 = l.
BLOCK_KERNEL(box_sumsq, BoxArgs) {
  i64 low[MOST_AXES], size[MOST_AXES], rest = BLOCK_X, count = 1;
  for (i64 k = a.rank - 1; k >= 0; --k) {
    const i64 box = rest % a.boxes[k];
    rest /= a.boxes[k];
    const i64 begin = box * a.length[k], end = begin + a.length[k];
    low[k] = begin < a.size[k] ? begin : a.size[k];
    size[k] = (end < a.size[k] ? end : a.size[k]) - low[k];
    count *= size[k];
  }
  double lane = 0;
  for (i64 r = THREAD; r < count; r += 64) {
    i64 at = 0, left = r;
    for (i64 k = a.rank - 1; k >= 0; --k) {
      at += (low[k] + left % size[k]) * a.stride[k];
      left /= size[k];
    }
    const double x = (double)AT(const float, a.from)[at];
    lane = lane + x * x;
  }
  const double sum = row_sum64(lane);
  if (THREAD == 0) AT(double, a.to)[BLOCK_X] = sum;
}

// One thread takes many words, and adds its sum to the result, which is zero before.
KERNEL(fingerprint, FingerprintArgs) {
  const i64 per_word = 8 / a.element_bytes, words = (a.length + per_word - 1) / per_word, total = a.rows * words;
  const i64 each = 64, begin = global_thread() * each, end = begin + each < total ? begin + each : total;
  if (begin >= total) return;
  const i64 first = integer_of(a.origin[a.row_axes.rank]) / per_word;
  u64 sum0 = 0, sum1 = 0;
  for (i64 i = begin; i < end; ++i) {
    const i64 row = i / words, word = i % words;
    i64 whole_row = offset_in(a.row_axes, row);
    for (i64 k = 0; k < a.row_axes.rank; ++k) whole_row += integer_of(a.origin[k]) * a.row_axes.stride[k];
    const u64 index = (u64)(whole_row * a.whole_words + first + word);
    add_word(sum0, sum1, index, fingerprint_word(a.from, a.element_bytes, a.length, row, word));
  }
  ATOMIC_ADD64(AT(u64, a.to), sum0);
  ATOMIC_ADD64(AT(u64, a.to) + 1, sum1);
}
