#include "routines/fingerprint.cuh"
// Fingerprints of arrays (N14), word by word.

// Each thread takes words that are a.threads apart; a block adds its sum to the result, which is zero before.
BLOCK_KERNEL(fingerprint_words, FingerprintArgs) {
  SHARED(u64, parts, 2 * 8);
  const i64 per_word = 8 / a.element_bytes, words = (a.length + per_word - 1) / per_word, total = a.rows * words;
  const i64 first = first_word(a, per_word);
  u64 sum0 = 0, sum1 = 0;
  if (a.in_a_line) {
    // The numbers of the words are as far apart as the words, which lie in memory as they are added.
    const u64* const from = AT(const u64, a.from);
#pragma unroll 8
    for (i64 i = global_thread(); i < total; i += a.threads) {
      const u64 x = from[i];
      add_word(sum0, sum1, (u64)(first + i), x);
    }
  } else {
    for (i64 i = global_thread(); i < total; i += a.threads) add_word_of_row(sum0, sum1, a, first, words, i);
  }
  for (int d = 16; d >= 1; d /= 2) {
    sum0 += SHUFFLE_DOWN64(sum0, d);
    sum1 += SHUFFLE_DOWN64(sum1, d);
  }
  if (THREAD % 32 == 0) parts[THREAD / 32 * 2] = sum0, parts[THREAD / 32 * 2 + 1] = sum1;
  BARRIER();
  if (THREAD >= 2) return;
  u64 sum = 0;
  for (int warp = 0; warp < THREADS / 32; ++warp) sum += parts[warp * 2 + THREAD];
  ATOMIC_ADD64(AT(u64, a.to) + THREAD, sum);
}
