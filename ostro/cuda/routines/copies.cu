#include "routines/elements.cuh"
// Moves elements without arithmetic: runs of neighbours as one element, words of zeros.

// A thread writes four words, or the bytes of a last word that is not whole.
KERNEL(fill_words, FillWordsArgs) {
  const i64 words = a.to % 8 == 0 ? a.bytes / 8 : 0, first = BLOCK_X * THREADS * 4 + THREAD;
#pragma unroll
  for (int e = 0; e < 4; ++e)
    if (first + e * THREADS < words) AT(u64, a.to)[first + e * THREADS] = 0;
  for (i64 i = words * 8 + global_thread(); i < a.bytes; i += a.threads) AT(u8, a.to)[i] = 0;
}

// The offsets of point i of the space in both arrays.
template <typename Index>
DEVICE void run_offsets(const RunsArgs& a, Index i, i64& from, i64& to) {
  for (i64 k = a.axes.rank - 1; k > 0; --k) {
    const Index size = (Index)a.axes.size[k], at = i % size;
    from += at * a.axes.stride[k];
    to += at * a.to_stride[k];
    i /= size;
  }
  if (a.axes.rank == 0) return;
  from += i * a.axes.stride[0];
  to += i * a.to_stride[0];
}

KERNEL(copy_runs, RunsArgs) {
  const i64 i = global_thread();
  if (i >= a.count) return;
  i64 from = 0, to = 0;
  if (i < 0x7fffffff)
    run_offsets<u32>(a, (u32)i, from, to);
  else
    run_offsets<i64>(a, i, from, to);
  move_element(a.to, to, a.from, from, a.element_bytes);
}
