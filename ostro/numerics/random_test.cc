// Threefry and draws against known answers, the permutation's bijectivity, fingerprints.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "ostro/numerics/fingerprint.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/permutation.h"
#include "ostro/numerics/threefry.h"

namespace ostro::numerics {
namespace {

TEST_CASE("threefry: known answers of Random123 and of jax.random") {
  CHECK(threefry2x32({0, 0}, 0, 0) == Key{0x6b200159, 0x99ba4efe});
  CHECK(threefry2x32({~0u, ~0u}, ~0u, ~0u) == Key{0x1cb996fc, 0xbb002be7});
  CHECK(threefry2x32({0x13198a2e, 0x03707344}, 0x243f6a88, 0x85a308d3) == Key{0xc4923a9c, 0x483df7a0});
  const uint32_t seed0[] = {0xf29a4fa7, 0xfa843692, 0x55110e28, 0x77faa835};
  const uint32_t seed1701[] = {1111271205u, 2679469115u, 974515252u};
  for (uint64_t i = 0; i < 4; ++i) CHECK(random_bits(key_from_seed(0), i) == seed0[i]);
  for (uint64_t i = 0; i < 3; ++i) CHECK(random_bits(key_from_seed(1701), i) == seed1701[i]);
  // In the partitionable layout fold_in(key, i) holds the words of the draw at i: split(key(0)) of JAX.
  CHECK(fold_in(key_from_seed(0), 0u) == Key{1797259609u, 2579123966u});
  CHECK(fold_in(key_from_seed(0), 1u) == Key{928981903u, 3453687069u});
  CHECK(key_from_seed(0x0123456789abcdefu) == Key{0x01234567, 0x89abcdef});
}

TEST_CASE("fnv1a32: published answers") {
  CHECK(fnv1a32("") == 0x811c9dc5u);
  CHECK(fnv1a32("a") == 0xe40c292cu);
  CHECK(fnv1a32("foobar") == 0xbf9cf968u);
  CHECK(fold_in(Key{1, 2}, "params") == fold_in(Key{1, 2}, fnv1a32("params")));
}

TEST_CASE("uniform, normal, truncated normal: extremes, moments, golden over all 2^23 inputs") {
  HostArithmetic guard;
  CHECK(uniform_from_bits(0) == 0.0f);
  CHECK(uniform_from_bits(~0u) == 1.0f - 0x1p-23f);
  CHECK(std::fabs(random_normal(key_from_seed(42), 0) - -0.02830462f) < 1e-8f);  // jax.random.normal
  CHECK(truncated_normal_from_bits(0) == -3.0f);
  CHECK(truncated_normal_from_bits(~0u) <= 3.0f);
  Fingerprint normal, truncated;
  double sum = 0, squares = 0, truncated_squares = 0;
  float last = -INFINITY;
  bool ascending = true;
  for (uint32_t i = 0; i < 1u << 23; ++i) {
    const float x = normal_from_bits(i << 9), y = truncated_normal_from_bits(i << 9);
    normal.add_word(i, std::bit_cast<uint32_t>(x));
    truncated.add_word(i, std::bit_cast<uint32_t>(y));
    ascending = ascending && x >= last;
    last = x;
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
    truncated_squares += static_cast<double>(y) * static_cast<double>(y);
  }
  const double n = 0x1p23;
  CHECK(ascending);
  CHECK(std::fabs(sum / n) < 1e-5);
  CHECK(std::fabs(squares / n - 1.0) < 1e-5);
  CHECK(std::fabs(std::sqrt(truncated_squares / n) - 0.98658) < 1e-5);
  CHECK(normal.lane[0] == 0x11b96896c3261341u);
  CHECK(truncated.lane[0] == 0x4bb963076dc199afu);
}

TEST_CASE("permutation: a bijection for every small size, with its inverse") {
  for (int64_t n : {1, 2, 3, 4, 5, 7, 8, 16, 17, 100, 255, 256, 257, 1000, 4097}) {
    const Permutation p(key_from_seed(static_cast<uint64_t>(n)), n);
    std::vector<bool> seen(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t j = p(i);
      REQUIRE(j >= 0);
      REQUIRE(j < n);
      CHECK_FALSE(seen[static_cast<size_t>(j)]);
      seen[static_cast<size_t>(j)] = true;
      CHECK(p.inverse(j) == i);
    }
    std::vector<int64_t> all(static_cast<size_t>(n)), one_by_one;
    std::iota(all.begin(), all.end(), int64_t{0});
    for (const int64_t i : all) one_by_one.push_back(p(i));
    p.map(all);
    CHECK(all == one_by_one);
  }
  for (int64_t n : {int64_t{1} << 40, (int64_t{1} << 40) + 1, int64_t{1} << 62}) {
    const Permutation p(key_from_seed(9), n);
    for (int64_t i = 0; i < 200; ++i) {
      const int64_t at = n / 200 * i;
      CHECK(p.inverse(p(at)) == at);
      CHECK(p(at) < n);
    }
  }
}

TEST_CASE("permutation: keys matter, all orders of three occur, neighbours are scattered") {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Permutation p(key_from_seed(seed), 3);
    orders.insert({p(0), p(1), p(2)});
  }
  CHECK(orders.size() == 6);
  const int64_t n = 100000;
  const Permutation p(key_from_seed(1), n), q(key_from_seed(2), n);
  double jump = 0;
  int64_t equal = 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    jump += std::fabs(static_cast<double>(p(i + 1) - p(i)));
    equal += p(i) == q(i);
  }
  CHECK(std::fabs(jump / static_cast<double>(n) / (static_cast<double>(n) / 3) - 1.0) <
        0.02);        // random: n / 3
  CHECK(equal < 12);  // random: 1
  const Permutation golden(key_from_seed(0), 100);
  const int64_t expected[] = {62, 55, 53, 19, 73, 30, 86, 17};
  for (int64_t i = 0; i < 8; ++i) CHECK(golden(i) == expected[i]);
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& x) {
  return std::as_bytes(std::span<const T>(x));
}

TEST_CASE("fingerprint: words, shards, and what must change it") {
  // Row of three f32: words (a | b << 32) and (c); the second row starts at index 2.
  const std::vector<uint32_t> x = {1, 2, 3, 4, 5, 6};
  Fingerprint by_hand;
  by_hand.add_word(0, uint64_t{1} | uint64_t{2} << 32);
  by_hand.add_word(1, 3);
  by_hand.add_word(2, uint64_t{4} | uint64_t{5} << 32);
  by_hand.add_word(3, 6);
  const Fingerprint whole = fingerprint_array(2, 3, 4, bytes_of(x));
  CHECK(whole == by_hand);
  CHECK(fingerprint_array(3, 2, 4, bytes_of(x)) != whole);  // the shape counts where words move
  const std::vector<uint16_t> halves = {1, 2, 3, 4, 5};
  Fingerprint packed;
  packed.add_word(0, 0x0004000300020001u);
  packed.add_word(1, 5);
  CHECK(fingerprint_array(1, 5, 2, bytes_of(halves)) == packed);
  const std::vector<uint8_t> flags = {1, 0, 1, 1, 0, 0, 0, 1, 1};
  Fingerprint flag_words;
  flag_words.add_word(0, 0x0100000001010001u);
  flag_words.add_word(1, 1);
  CHECK(fingerprint_array(1, 9, 1, bytes_of(flags)) == flag_words);

  std::vector<float> big(7 * 30);
  for (size_t i = 0; i < big.size(); ++i) big[i] = random_normal(key_from_seed(3), i);
  const Fingerprint all = fingerprint_array(7, 30, 4, bytes_of(big));
  Fingerprint parts;  // cut into columns [0, 16) and [16, 30), rows in any order
  for (int64_t row = 6; row >= 0; --row) {
    const auto bytes = bytes_of(big).subspan(static_cast<size_t>(row) * 120, 120);
    Fingerprint part;
    add_row_segment(part, row, 30, 4, 16, bytes.subspan(64));
    add_row_segment(part, row, 30, 4, 0, bytes.first(64));
    parts += part;
  }
  CHECK(parts == all);
  for (size_t i = 0; i < big.size(); i += 11) {  // one flipped bit
    std::vector<float> flipped = big;
    flipped[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(big[i]) ^ (1u << (i % 32)));
    const Fingerprint other = fingerprint_array(7, 30, 4, bytes_of(flipped));
    CHECK(other.lane[0] != all.lane[0]);
    CHECK(other.lane[1] != all.lane[1]);
  }
  std::swap(big[3], big[100]);
  CHECK(fingerprint_array(7, 30, 4, bytes_of(big)) != all);
}

}  // namespace
}  // namespace ostro::numerics
