#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ostro/kernels/fingerprint/kernels/fingerprint_kernels.h"
#include "ostro/machine/isa.h"
#include "ostro/numerics/fingerprint.h"

namespace ostro::kernels {
namespace {

FingerprintLane lane(int i) {
  const numerics::FingerprintConstants& c = numerics::kFingerprintLanes[i];
  return {c.index_factor, c.factor1, c.factor2};
}

TEST_CASE("fingerprint words: every kernel equals the definition, at any start, length and alignment") {
  const FingerprintLane lanes[2] = {lane(0), lane(1)};
  std::vector<FingerprintWords> kernels = {fingerprint_words_generic};
  if (machine::has_isa(machine::Isa::kAvx2)) kernels.push_back(fingerprint_words_avx2);
  if (machine::has_isa(machine::Isa::kAvx512)) kernels.push_back(fingerprint_words_avx512);
  uint64_t state = 1;
  const auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  std::vector<std::byte> data(8 * 600 + 8);
  for (std::byte& b : data) b = static_cast<std::byte>(next() >> 40);
  std::fill_n(data.begin(), 160, std::byte{0xff});  // the largest products and carries
  for (int64_t words : {0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 600})
    for (uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{12345678901}, ~uint64_t{0} - 20})
      for (size_t shift : {size_t{0}, size_t{4}}) {
        const uint64_t before[2] = {next(), next()};
        numerics::Fingerprint expected{{before[0], before[1]}};
        for (int64_t w = 0; w < words; ++w) {
          uint64_t word = 0;
          for (size_t i = 8; i-- > 0;)
            word = word << 8 | static_cast<uint64_t>(data[shift + 8 * static_cast<size_t>(w) + i]);
          expected.add_word(first + static_cast<uint64_t>(w), word);
        }
        for (const FingerprintWords kernel : kernels) {
          uint64_t sums[2] = {before[0], before[1]};
          kernel(lanes, first, reinterpret_cast<const char*>(data.data()) + shift, words, sums,
                 reinterpret_cast<const char*>(data.data()));
          CHECK(sums[0] == expected.lane[0]);
          CHECK(sums[1] == expected.lane[1]);
        }
      }
}

}  // namespace
}  // namespace ostro::kernels
