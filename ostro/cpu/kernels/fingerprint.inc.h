// The loop of fingerprint_kernels.h, for a compiler to vectorise.
namespace ostro::cpu {
namespace {

inline void fingerprint_words(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                              uint64_t* sums) {
  const FingerprintLane a = lanes[0], b = lanes[1];
  uint64_t sum0 = 0, sum1 = 0;
  for (int64_t w = 0; w < words; ++w) {
    uint64_t word;
    __builtin_memcpy(&word, data + 8 * w, 8);
    const uint64_t index = first + static_cast<uint64_t>(w);
    uint64_t x = (word ^ (index * a.index_factor)) * a.factor1;
    x = (x ^ (x >> 32)) * a.factor2;
    sum0 += x ^ (x >> 29);
    uint64_t y = (word ^ (index * b.index_factor)) * b.factor1;
    y = (y ^ (y >> 32)) * b.factor2;
    sum1 += y ^ (y >> 29);
  }
  sums[0] += sum0;
  sums[1] += sum1;
}

}  // namespace
}  // namespace ostro::cpu
