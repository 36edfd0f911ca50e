// Fingerprints of arrays (N14), word by word.

DEVICE u64 fingerprint_mix(u64 index, u64 word, u64 k, u64 m1, u64 m2) {
  u64 x = word ^ (index * k);
  x *= m1;
  x ^= x >> 32;
  x *= m2;
  return x ^ (x >> 29);
}

// Word i of the array, row after row.
DEVICE u64 fingerprint_word(const WordsArgs& a, i64 row, i64 word) {
  const i64 per_word = 8 / a.element_bytes;
  u64 x = 0;
  for (i64 k = 0; k < per_word && word * per_word + k < a.length; ++k) {
    const i64 at = row * a.length + word * per_word + k;
    const u64 bits = a.element_bytes == 1   ? (u64)AT(const u8, a.from)[at]
                     : a.element_bytes == 2 ? (u64)AT(const u16, a.from)[at]
                     : a.element_bytes == 4 ? (u64)AT(const u32, a.from)[at]
                                            : AT(const u64, a.from)[at];
    x |= bits << (8 * a.element_bytes * k);
  }
  return x;
}

// Each thread takes words that are a.threads apart; a block adds its sum to the result, which is zero before.
BLOCK_KERNEL(fingerprint_words, WordsArgs) {
  SHARED(u64, parts, 2 * 8);
  const i64 per_word = 8 / a.element_bytes, words = (a.length + per_word - 1) / per_word, total = a.rows * words;
  i64 first = integer_of(a.origin[a.rank]) / per_word;
  for (i64 k = 0; k < a.rank; ++k) first += integer_of(a.origin[k]) * a.origin_stride[k] * a.whole_words;
  u64 sum0 = 0, sum1 = 0;
  if (a.in_a_line) {
    // The numbers of the words are as far apart as the words, which lie in memory as they are added.
    const u64* const from = AT(const u64, a.from);
#pragma unroll 8
    for (i64 i = global_thread(); i < total; i += a.threads) {
      const u64 x = from[i], index = (u64)(first + i);
      sum0 += fingerprint_mix(index, x, 0x767891433a2f877du, 0x3fd5a02d9e3d4385u, 0xd91b0b73b755caa3u);
      sum1 += fingerprint_mix(index, x, 0xfca36a40cf18ce43u, 0xc13f61c4b95866cbu, 0x5108c6bc88663951u);
    }
  } else {
    for (i64 i = global_thread(); i < total; i += a.threads) {
      const i64 row = i / words, word = i % words;
      const u64 x = fingerprint_word(a, row, word);
      const u64 index = (u64)(first + offset_in(a.row_axes, row) * a.whole_words + word);
      sum0 += fingerprint_mix(index, x, 0x767891433a2f877du, 0x3fd5a02d9e3d4385u, 0xd91b0b73b755caa3u);
      sum1 += fingerprint_mix(index, x, 0xfca36a40cf18ce43u, 0xc13f61c4b95866cbu, 0x5108c6bc88663951u);
    }
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
