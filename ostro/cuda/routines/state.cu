#include "routines/box.cuh"
#include "routines/fingerprint.cuh"
// Reductions of whole arrays of a training state: sums of squares by boxes (N13), fingerprints (N14).

// One block of 64 threads a box; thread l adds the elements r of the box with r mod 64 = l.
BLOCK_KERNEL(box_sumsq, BoxArgs) {
  const Box box = box_of(a, BLOCK_X);
  double lane = 0;
  for (i64 r = THREAD; r < box.count; r += 64) {
    const double x = (double)AT(const float, a.from)[box_offset(a, box, r)];
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
  const i64 first = first_word(a, per_word);
  u64 sum0 = 0, sum1 = 0;
  for (i64 i = begin; i < end; ++i) add_word_of_row(sum0, sum1, a, first, words, i);
  ATOMIC_ADD64(AT(u64, a.to), sum0);
  ATOMIC_ADD64(AT(u64, a.to) + 1, sum1);
}
