// Shares by measured speed: what they are, and when they change.
#include "ostro/fleet/shares/share_rule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace ostro::fleet {
namespace {

double last_done(const std::vector<int64_t>& counts, const std::vector<double>& seconds) {
  double most = 0;
  for (size_t place = 0; place < counts.size(); ++place)
    most = std::max(most, static_cast<double>(counts[place]) * seconds[place]);
  return most;
}

// The soonest end of all ways to share leaves out.
double soonest(int64_t leaves, const std::vector<double>& seconds) {
  double best = 1e300;
  std::vector<int64_t> counts;
  const int64_t least = leaves >= static_cast<int64_t>(seconds.size()) ? 1 : 0;
  const std::function<void(int64_t)> choose = [&](int64_t left) {
    if (counts.size() + 1 == seconds.size()) {
      if (left < least) return;
      counts.push_back(left);
      best = std::min(best, last_done(counts, seconds));
      counts.pop_back();
      return;
    }
    for (int64_t count = least; count <= left; ++count) {
      counts.push_back(count);
      choose(left - count);
      counts.pop_back();
    }
  };
  choose(leaves);
  return best;
}

TEST_CASE("shares: consecutive leaves, each once; for other numbers of leaves they are even") {
  const LeafShares shares({1, 0, 4, 2});
  CHECK(shares.fits(7, 4));
  CHECK_FALSE(shares.fits(8, 4));
  CHECK_FALSE(shares.fits(7, 3));
  int64_t next = 0;
  for (int64_t place = 0; place < 4; ++place) {
    const train::LeafRange own = shares.range(7, 4, place);
    CHECK(own.begin == next);
    next = own.end;
  }
  CHECK(next == 7);
  CHECK(shares.counts(7, 4) == std::vector<int64_t>{1, 0, 4, 2});
  for (const LeafShares& even : {LeafShares(), shares})
    CHECK(even.counts(8, 4) == std::vector<int64_t>{2, 2, 2, 2});
  CHECK(LeafShares().counts(7, 3) == std::vector<int64_t>{2, 2, 3});
  CHECK(LeafShares().is_even());
  CHECK_FALSE(shares.is_even());
}

TEST_CASE("shares: no range of leaves needs more sums than most_partials says") {
  for (int64_t leaves = 1; leaves <= 70; ++leaves)
    for (int64_t begin = 0; begin < leaves; ++begin)
      for (int64_t end = begin + 1; end <= leaves; ++end) {
        int64_t finished = 0, partials = 0;
        for (const train::Subtree& node : train::subtrees(leaves, {begin, end}))
          partials = std::max(partials, finished++ + train::live_partials(node.count));
        CHECK(partials <= most_partials(leaves));
      }
}

TEST_CASE("fastest_counts: no other shares are done sooner; each worker keeps a leaf") {
  CHECK(fastest_counts(7, {0.01, 0.02, 0.04}) == std::vector<int64_t>{4, 2, 1});
  CHECK(fastest_counts(8, {1, 1, 1, 1}) == std::vector<int64_t>{2, 2, 2, 2});
  CHECK(fastest_counts(6, {1, 1000, 1000}) == std::vector<int64_t>{4, 1, 1});
  CHECK(fastest_counts(2, {3, 1, 1}) == std::vector<int64_t>{0, 1, 1});
  std::mt19937 rng(11);
  for (int i = 0; i < 300; ++i) {
    const int64_t leaves = std::uniform_int_distribution<int64_t>(1, 12)(rng);
    std::vector<double> seconds(std::uniform_int_distribution<size_t>(1, 4)(rng));
    for (double& s : seconds) s = std::uniform_real_distribution<double>(0.1, 2)(rng);
    const std::vector<int64_t> counts = fastest_counts(leaves, seconds);
    CHECK(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == leaves);
    CHECK(last_done(counts, seconds) == soonest(leaves, seconds));
  }
}

TEST_CASE("with_fewer_sums: fewer partial sums, and nobody is done later than allowed") {
  CHECK(with_fewer_sums({3, 5}, {0.02, 0.01}, 0.06) == std::vector<int64_t>{2, 6});
  CHECK(with_fewer_sums({3, 5}, {0.02, 0.01}, 0.05) == std::vector<int64_t>{3, 5});
  CHECK(with_fewer_sums({3, 3, 2}, {1, 1, 1}, 4) == std::vector<int64_t>{4, 2, 2});
  const auto sums = [](const std::vector<int64_t>& counts) {
    const int64_t leaves = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    size_t all = 0;
    for (int64_t begin = 0; const int64_t count : counts) {
      all += train::subtrees(leaves, {begin, begin + count}).size();
      begin += count;
    }
    return all;
  };
  std::mt19937 rng(12);
  size_t before = 0, then = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> seconds(std::uniform_int_distribution<size_t>(2, 6)(rng));
    for (double& s : seconds) s = std::uniform_real_distribution<double>(0.1, 2)(rng);
    const int64_t leaves = std::uniform_int_distribution<int64_t>(6, 40)(rng);
    const std::vector<int64_t> fastest = fastest_counts(leaves, seconds);
    const double most = 1.05 * last_done(fastest, seconds);
    const std::vector<int64_t> counts = with_fewer_sums(fastest, seconds, most);
    CHECK(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == leaves);
    CHECK(*std::min_element(counts.begin(), counts.end()) >= 1);
    CHECK(last_done(counts, seconds) <= most);
    CHECK(sums(counts) <= sums(fastest));
    before += sums(fastest), then += sums(counts);
  }
  CHECK(then < before);
}

// The shares after `steps` steps in which leaves take so long, and everything else `beside` seconds.
std::vector<int64_t> after(ShareKeeper& keeper, int steps, int64_t leaves, const std::vector<double>& seconds,
                           double beside = 0) {
  const auto workers = static_cast<int64_t>(seconds.size());
  for (int i = 0; i < steps; ++i) {
    (void)keeper.next(leaves);
    keeper.note(seconds, last_done(keeper.shares().counts(leaves, workers), seconds) + beside);
  }
  (void)keeper.next(leaves);
  return keeper.shares().counts(leaves, workers);
}

TEST_CASE("keeper: speeds of 4 : 2 : 1 are noticed after four steps, a worker that slows down later, too") {
  ShareKeeper keeper({0, 0, 0}, {});
  const std::vector<double> fast{0.01, 0.02, 0.04}, slowed{0.04, 0.02, 0.04};
  CHECK(after(keeper, 3, 7, fast) == std::vector<int64_t>{2, 2, 3});
  CHECK(after(keeper, 1, 7, fast) == std::vector<int64_t>{4, 2, 1});
  CHECK(after(keeper, 20, 7, fast) == std::vector<int64_t>{4, 2, 1});
  CHECK(keeper.leaf_seconds() == fast);
  CHECK(after(keeper, 2, 7, slowed) == std::vector<int64_t>{4, 2, 1});  // it may have been a pause
  CHECK(after(keeper, 1, 7, slowed) == std::vector<int64_t>{2, 4, 1});
  CHECK(after(keeper, 9, 7, fast) == std::vector<int64_t>{4, 2, 1});
}

TEST_CASE("keeper: one slow step changes nothing, nor do small differences, nor equal speeds") {
  ShareKeeper keeper({0, 0, 0}, {});
  CHECK(after(keeper, 8, 9, {1, 1.05, 0.97}) == std::vector<int64_t>{3, 3, 3});
  CHECK(after(keeper, 1, 9, {9, 1, 1}) == std::vector<int64_t>{3, 3, 3});
  CHECK(after(keeper, 8, 9, {1, 1, 1}) == std::vector<int64_t>{3, 3, 3});
  CHECK(after(keeper, 3, 9, {9, 1, 1}) != std::vector<int64_t>{3, 3, 3});
  // Where most of a step is the exchange, more partial sums cost more than what is gained.
  ShareKeeper sending({0, 0}, {});
  CHECK(after(sending, 9, 8, {0.02, 0.01}, 1) == std::vector<int64_t>{4, 4});
  ShareKeeper computing({0, 0}, {});
  CHECK(after(computing, 9, 8, {0.02, 0.01}, 0.001) == std::vector<int64_t>{2, 6});
}

TEST_CASE("keeper: times from before count at the begin of an epoch; unknown ones are those of the median") {
  ShareKeeper known({0, 0, 0}, {0.01, 0, 0.04});
  const std::optional<LeafShares> shares = known.next(7);
  REQUIRE(shares);
  CHECK(shares->counts(7, 3) == fastest_counts(7, {0.01, 0.01, 0.04}));
  CHECK_FALSE(known.next(7));
  // Another number of leaves: at once, too.
  const std::optional<LeafShares> more = known.next(14);
  REQUIRE(more);
  CHECK(more->counts(14, 3) == fastest_counts(14, {0.01, 0.01, 0.04}));
  ShareKeeper unknown({0, 0, 0}, {0, 0, 0});
  CHECK_FALSE(unknown.next(7));
  ShareKeeper alone({0}, {0.5});
  CHECK_FALSE(alone.next(7));
}

// A state that begins again within an epoch keeps the shares that its workers have.
TEST_CASE("keeper: one that begins with unequal shares keeps them, or goes back to even ones") {
  const std::vector<double> fast{0.01, 0.02, 0.04}, equal{0.02, 0.02, 0.02};
  ShareKeeper keeper({0, 0, 0}, fast, LeafShares({4, 2, 1}));
  CHECK_FALSE(keeper.next(7));  // they are right
  ShareKeeper unknown({0, 0, 0}, {0, 0, 0}, LeafShares({4, 2, 1}));
  CHECK(after(unknown, 4, 7, equal) == std::vector<int64_t>{2, 2, 3});
  ShareKeeper even({0, 0, 0}, fast);
  CHECK(even.next(7));  // the control
}

TEST_CASE("keeper: slices keep their leaves where sending is dear; inside them speed decides") {
  const std::vector<double> seconds{0.01, 0.03, 0.02, 0.06};
  ShareKeeper cheap({0, 0, 1, 1}, {});
  CHECK(after(cheap, 5, 16, seconds) == fastest_counts(16, seconds));
  ShareKeeper dear({0, 0, 1, 1}, {});
  CHECK(after(dear, 5, 16, seconds, 0.12) == std::vector<int64_t>{6, 2, 6, 2});
  // Leaves that went to another slice would leave the groups of numerics.slice_partials.
  ShareKeeper rounded({0, 0, 1, 1}, {}, {}, true);
  CHECK(after(rounded, 5, 16, seconds) == std::vector<int64_t>{6, 2, 6, 2});
  ShareKeeper one_slice({0, 0, 0, 0}, {}, {}, true);
  CHECK(after(one_slice, 5, 16, seconds) == fastest_counts(16, seconds));
}

TEST_CASE("keeper: where sending is hidden beside leaves, dear shares are left, and tried again much later") {
  const std::vector<double> seconds{0.01, 0.03, 0.02, 0.06};
  // Sums of even slices are hidden; those of others make 60 steps `shown` seconds longer, and `later` others.
  const auto run = [&](double shown, double later) {
    ShareKeeper keeper({0, 0, 1, 1}, {});
    std::vector<std::vector<int64_t>> had;
    for (int64_t i = 0; i < 60 + ShareKeeper::kForgets; ++i) {
      if (keeper.next(16)) had.push_back(keeper.shares().counts(16, 4));
      const std::vector<int64_t> counts = keeper.shares().counts(16, 4);
      keeper.note(seconds, last_done(counts, seconds) + (counts[0] + counts[1] == 8 ? 0
                                                         : i < 60                   ? shown
                                                                                    : later));
    }
    return had;
  };
  using Had = std::vector<std::vector<int64_t>>;
  const std::vector<int64_t> inside{6, 2, 6, 2}, fast = fastest_counts(16, seconds);
  CHECK(run(0.12, 0.12) == Had{fast, inside, fast, inside});
  CHECK(run(0.12, 0) == Had{fast, inside, fast});  // the link was busy for a while
  // The control: where they are hidden, too, they stay.
  CHECK(run(0, 0) == Had{fast});
}

}  // namespace
}  // namespace ostro::fleet
