// A word of an array and what it adds to a fingerprint (N14).

DEVICE u64 fingerprint_mix(u64 index, u64 word, u64 k, u64 m1, u64 m2) {
  u64 x = word ^ (index * k);
  x *= m1;
  x ^= x >> 32;
  x *= m2;
  return x ^ (x >> 29);
}

// Adds word number `index` to the two sums.
DEVICE void add_word(u64& sum0, u64& sum1, u64 index, u64 word) {
  sum0 += fingerprint_mix(index, word, 0x767891433a2f877du, 0x3fd5a02d9e3d4385u, 0xd91b0b73b755caa3u);
  sum1 += fingerprint_mix(index, word, 0xfca36a40cf18ce43u, 0xc13f61c4b95866cbu, 0x5108c6bc88663951u);
}

// Word `word` of a row of `length` elements.
DEVICE u64 fingerprint_word(u64 from, i64 element_bytes, i64 length, i64 row, i64 word) {
  const i64 per_word = 8 / element_bytes;
  u64 x = 0;
  for (i64 k = 0; k < per_word && word * per_word + k < length; ++k) {
    const i64 at = row * length + word * per_word + k;
    const u64 bits = element_bytes == 1   ? (u64)AT(const u8, from)[at]
                     : element_bytes == 2 ? (u64)AT(const u16, from)[at]
                     : element_bytes == 4 ? (u64)AT(const u32, from)[at]
                                          : AT(const u64, from)[at];
    x |= bits << (8 * element_bytes * k);
  }
  return x;
}

// The number of the first word in the whole array.
DEVICE i64 first_word(const FingerprintArgs& a, i64 per_word) {
  i64 first = integer_of(a.origin[a.rank]) / per_word;
  for (i64 k = 0; k < a.rank; ++k) first += integer_of(a.origin[k]) * a.origin_stride[k] * a.whole_words;
  return first;
}
// Adds the i-th word, of `words` in a row.
DEVICE void add_word_of_row(u64& sum0, u64& sum1, const FingerprintArgs& a, i64 first, i64 words, i64 i) {
  const i64 row = i / words, word = i % words;
  add_word(sum0, sum1, (u64)(first + offset_in(a.row_axes, row) * a.whole_words + word),
           fingerprint_word(a.from, a.element_bytes, a.length, row, word));
}
