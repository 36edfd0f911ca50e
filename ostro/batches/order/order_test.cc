// Orders are permutations: bijective for awkward lengths, not linear, uniform, and new in every epoch.
#include "ostro/batches/order/order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "ostro/numerics/permutation.h"

namespace ostro::batches {
namespace {

data::Shuffle blocks(int64_t io_block_size, int64_t window_blocks) {
  return {std::variant<data::BlockShuffle>(data::BlockShuffle{io_block_size, window_blocks})};
}

const std::vector<std::pair<const char*, data::Shuffle>> kShuffles = {
    {"full", {true}},
    {"era 7", {int64_t{7}}},
    {"blocks of 3 in windows of 2", blocks(3, 2)},
    {"blocks of 4 in windows of 4", blocks(4, 4)},
    {"blocks of 256 in windows of 512", blocks(256, 512)},
};

// Rank over GF(2) of rows of bits.
int rank_of(std::vector<std::vector<uint64_t>> rows) {
  int rank = 0;
  const size_t columns = rows[0].size() * 64;
  for (size_t column = 0; column < columns; ++column) {
    const auto bit = [&](const std::vector<uint64_t>& row) { return row[column / 64] >> (column % 64) & 1; };
    const auto begin = rows.begin() + rank;
    const auto pivot = std::find_if(begin, rows.end(), bit);
    if (pivot == rows.end()) continue;
    std::swap(*begin, *pivot);
    for (auto row = std::next(begin); row != rows.end(); ++row)
      if (bit(*row))
        for (size_t i = 0; i < row->size(); ++i) (*row)[i] ^= (*begin)[i];
    ++rank;
  }
  return rank;
}

// How many independent combinations of the 2^bits outputs' bits are affine functions of the input's bits: the
// rows (1, x, f(x)) of many x have full rank when there is none.
template <typename F>
int affine_combinations(int bits, const F& f) {
  std::vector<std::vector<uint64_t>> rows;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (uint64_t i = 0; i < 400; ++i) {
    const uint64_t x = (i * 0x9e3779b97f4a7c15u >> 20) & mask;
    rows.push_back({1 | x << 1, static_cast<uint64_t>(f(static_cast<int64_t>(x)))});
  }
  return 1 + 2 * bits - rank_of(rows);
}

// Chi-square of counts against equal ones.
double chi_square(const std::vector<int64_t>& counts, int64_t total) {
  const double expected = static_cast<double>(total) / static_cast<double>(counts.size());
  double sum = 0;
  for (const int64_t count : counts)
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
  return sum;
}

// Chi-squared of the first values in 256 windows of [0, n), and of their lowest 8 bits.
template <typename F>
std::pair<double, double> spread(int64_t n, int64_t values, const F& f) {
  std::vector<int64_t> windows(256), low(256);
  for (int64_t i = 0; i < values; ++i) {
    const int64_t y = f(i);
    ++windows[static_cast<size_t>(static_cast<double>(y) / static_cast<double>(n) * 256)];
    ++low[static_cast<size_t>(y % 256)];
  }
  return {chi_square(windows, values), chi_square(low, values)};
}

TEST_CASE("order: one to one for awkward lengths, in every epoch another" *
          doctest::test_suite("one-thread")) {
  for (const auto& [name, shuffle] : kShuffles) {
    CAPTURE(name);
    for (const int64_t n :
         {1,  2,  3,  4,  5,   6,   7,   8,   9,   11,   12,   13,   15,   16,   17,    31,   32,
          33, 63, 64, 65, 127, 251, 255, 257, 509, 1021, 1023, 1024, 1025, 4093, 16383, 16385}) {
      const SequenceOrder order(data_key(3), n, shuffle);
      std::vector<std::vector<int64_t>> epochs(2);
      for (int64_t e = 0; e < 2 * n; ++e) epochs[static_cast<size_t>(e / n)].push_back(order(e));
      for (const auto& epoch : epochs) {
        std::vector<bool> seen(static_cast<size_t>(n));
        for (const int64_t s : epoch) {
          REQUIRE((s >= 0 && s < n));
          REQUIRE_MESSAGE(!seen[static_cast<size_t>(s)], n);
          seen[static_cast<size_t>(s)] = true;
        }
      }
      if (n > 16) CHECK_MESSAGE(epochs[0] != epochs[1], n);
      // Many at once: the same, also where epochs and eras meet.
      std::vector<int64_t> many, expected = epochs[0];
      for (int64_t e = 0; e < 2 * n; ++e) many.push_back(e);
      expected.insert(expected.end(), epochs[1].begin(), epochs[1].end());
      order.map(many);
      CHECK_MESSAGE(many == expected, n);
    }
  }
}

TEST_CASE("order: a thousand million sequences, sampled" * doctest::test_suite("one-thread")) {
  constexpr int64_t kN = 1'000'000'000, kSamples = 200'000;
  for (const auto& [name, shuffle] : kShuffles) {
    CAPTURE(name);
    const SequenceOrder order(data_key(3), kN, shuffle);
    std::vector<int64_t> values, hashed;
    for (int64_t i = 0; i < kSamples; ++i) {
      const int64_t position = i * 4999;
      values.push_back(order(kN + position));
      hashed.push_back(
          static_cast<int64_t>(numerics::fold_in(data_key(4), static_cast<uint32_t>(position)).word0 % kN));
      REQUIRE((values.back() >= 0 && values.back() < kN));
    }
    const auto repeats = [](std::vector<int64_t> v) {
      std::sort(v.begin(), v.end());
      return v.end() - std::unique(v.begin(), v.end());
    };
    CHECK(repeats(values) == 0);
    CHECK(repeats(hashed) > 5);  // what a function that is no permutation would show
  }
  const numerics::Permutation p(data_key(3), kN);
  for (int64_t i = 0; i < 2000; ++i) CHECK(p.inverse(p(i * 499'979)) == i * 499'979);
}

TEST_CASE("order: no combination of output bits is an affine function of the input bits" *
          doctest::test_suite("one-thread")) {
  for (const int bits : {8, 13, 20, 30}) {
    CAPTURE(bits);
    const int64_t n = int64_t{1} << bits;
    const SequenceOrder order(data_key(5), n, {true});
    CHECK(affine_combinations(bits, order) == 0);
    // Negative control: the test finds a linear congruence and an xor of shifts.
    const auto congruence = [n](int64_t x) { return (x * 1664525 + 1013904223) % n; };
    CHECK(affine_combinations(bits, congruence) > 0);
    CHECK(affine_combinations(bits, [n](int64_t x) { return (x ^ (x >> 3) ^ 5) % n; }) == bits);
  }
  // Also within the window and among the blocks of a block shuffle.
  CHECK(affine_combinations(16, SequenceOrder(data_key(5), 1 << 16, blocks(1 << 8, 1 << 8))) == 0);
  const SequenceOrder far(data_key(5), 1 << 28, blocks(1 << 8, 1 << 8));
  CHECK(affine_combinations(20, [&far](int64_t x) { return far(x << 8) >> 8; }) == 0);
}

TEST_CASE("order: uniform over windows and low bits, neither more nor less even than chance" *
          doctest::test_suite("one-thread")) {
  // 255 degrees of freedom: mean 255, standard deviation 22.6. Bounds at six of them.
  constexpr double kLow = 255 - 6 * 22.6, kHigh = 255 + 6 * 22.6;
  for (const int64_t n :
       {int64_t{1} << 20, int64_t{1'000'003}, (int64_t{1} << 21) - 1, int64_t{1'000'000'000}}) {
    CAPTURE(n);
    for (const uint64_t seed : {1, 2}) {
      const SequenceOrder order(data_key(seed), n, {true});
      const auto [windows, low] = spread(n, 32768, order);
      CHECK((windows > kLow && windows < kHigh));
      CHECK((low > kLow && low < kHigh));
    }
    // A linear congruence is far too even.
    const auto [windows, low] = spread(n, 32768, [n](int64_t x) { return (x * 1664525 + 1013904223) % n; });
    CHECK((windows < kLow || windows > kHigh || low < kLow || low > kHigh));
  }
}

TEST_CASE("order: epochs are as unlike as chance has it" * doctest::test_suite("one-thread")) {
  constexpr int64_t kN = 4099;
  for (const auto& [name, shuffle] : kShuffles) {
    if (std::holds_alternative<int64_t>(shuffle.value)) continue;  // within 7 neighbours much stays
    CAPTURE(name);
    const SequenceOrder order(data_key(9), kN, shuffle);
    int64_t same = 0;
    for (int64_t i = 0; i < kN; ++i) same += order(i) == order(kN + i);
    CHECK(same < 64);  // 1 for a full shuffle, more when whole blocks stay
  }
}

TEST_CASE("order: a window of a block shuffle reads few blocks, and the short block is anywhere" *
          doctest::test_suite("one-thread")) {
  constexpr int64_t kBlock = 16, kWindow = 8, kN = 16 * 100 + 5;
  const SequenceOrder order(data_key(1), kN, blocks(kBlock, kWindow));
  std::set<int64_t> places;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    for (int64_t begin = 0; begin < kN; begin += kBlock * kWindow) {
      std::set<int64_t> touched;
      for (int64_t i = begin; i < std::min(begin + kBlock * kWindow, kN); ++i) {
        const int64_t s = order(epoch * kN + i);
        touched.insert(s / kBlock);
        if (s == kN - 1) places.insert(begin);
      }
      CHECK(touched.size() <= static_cast<size_t>(kWindow) + 2);
    }
  }
  CHECK(places.size() > 8);
}

TEST_CASE("order: simulated epoching keeps a share of the sequences, the same in every epoch" *
          doctest::test_suite("one-thread")) {
  data::DataOptions options;
  options.target_budget = 1000, options.experiment_budget = 250;
  for (const auto& [name, shuffle] : kShuffles) {
    CAPTURE(name);
    options.shuffle = shuffle;
    const Subset subset(data_key(1), 4001, options);
    CHECK(subset.size() == 1000);
    std::set<int64_t> kept;
    for (int64_t i = 0; i < subset.size(); ++i) kept.insert(subset(i));
    CHECK(kept.size() == 1000);
    CHECK((*kept.begin() >= 0 && *kept.rbegin() < 4001));
    // With a shuffle, the subset is taken from all over the set.
    const bool spread = !std::holds_alternative<int64_t>(shuffle.value);
    CHECK((*kept.rbegin() > 3000) == spread);
  }
  options.target_budget = options.experiment_budget = std::nullopt;
  CHECK(Subset(data_key(1), 4001, options).size() == 4001);
}

}  // namespace
}  // namespace ostro::batches
