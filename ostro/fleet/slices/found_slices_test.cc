// Slices that are found by measuring: the rule on rates, and what workers measure over links of given rates.
#include "ostro/fleet/slices/found_slices.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "ostro/dist/loop_collectives.h"
#include "ostro/fleet/slices/measured_links.h"
#include "ostro/fleet/slices/slice_search.h"
#include "ostro/runtime/forwarded_collectives.h"

namespace ostro::fleet {
namespace {

using Names = std::vector<std::string>;
constexpr const char* kPrefix = "measured-";

FoundSlices found_by(const Names& known, const std::vector<LinkRate>& rates, double limit) {
  return find_slices(known, rates, limit, kPrefix);
}

// All links of machines whose site is a letter: `near` inside a site, `far` between two.
std::vector<LinkRate> sites(const std::string& letters, double near, double far) {
  std::vector<LinkRate> out;
  for (size_t a = 0; a < letters.size(); ++a)
    for (size_t b = a + 1; b < letters.size(); ++b)
      out.push_back(
          {a, b, (letters[a] == letters[b] ? near : far) * (1 + 0.01 * static_cast<double>(a + b))});
  return out;
}

TEST_CASE("found slices: links that are four times slower separate machines, and others do not") {
  const FoundSlices two = found_by(Names(5), sites("ababa", 1e9, 1e7), 0);
  CHECK(two.names == Names{"measured-1", "measured-2", "measured-1", "measured-2", "measured-1"});
  CHECK(two.limit == doctest::Approx(0.25 * 1e9 * 1.02).epsilon(0.03));
  CHECK(found_by(Names(4), sites("aabb", 1e9, 0.26e9), 0).names == Names(4, "measured-1"));
  CHECK(found_by(Names(4), sites("aabb", 1e9, 0.2e9), 0).names ==
        Names{"measured-1", "measured-1", "measured-2", "measured-2"});
  // One slow link of many separates no machine, and does not hide those that do.
  std::vector<LinkRate> rates = sites("aaabbb", 1e9, 1e7);
  rates[0].rate = 1e5;
  CHECK(found_by(Names(6), rates, 0).names ==
        Names{"measured-1", "measured-1", "measured-1", "measured-2", "measured-2", "measured-2"});
  // Two machines with one link are separated only where workers inside them are much closer.
  CHECK(found_by(Names(2), {{0, 1, 1e7}}, 0).names == Names(2, "measured-1"));
  CHECK(found_by(Names(2), {{0, 0, 1e9}, {1, 1, 2e9}, {0, 1, 1e7}}, 0).names ==
        Names{"measured-1", "measured-2"});
  // Machines of sites: what separates is the slowest step.
  std::vector<LinkRate> nested = sites("aabb", 1e8, 1e6);
  for (size_t machine = 0; machine < 4; ++machine) nested.push_back({machine, machine, 1e10});
  CHECK(found_by(Names(4), nested, 0).names == Names{"measured-1", "measured-1", "measured-2", "measured-2"});
  const FoundSlices one = found_by(Names(1), {}, 0);
  CHECK(one.names == Names{"measured-1"});
  CHECK(one.limit == 0);
}

TEST_CASE("found slices: later machines come to those that are there, or make another") {
  const Names known{"west", "measured-1", "", "", "", ""};
  const std::vector<LinkRate> rates{{2, 0, 9e8}, {2, 1, 1e9}, {2, 3, 1e7}, {3, 0, 1e7},
                                    {3, 1, 2e7}, {4, 0, 1e7}, {4, 1, 1e7}, {4, 2, 1e7},
                                    {4, 3, 1e9}, {5, 4, 1e8}, {5, 0, 3e8}};
  CHECK(found_by(known, rates, 2.5e8).names ==
        Names{"west", "measured-1", "measured-1", "measured-2", "measured-2", "west"});
  // Without a limit of before it follows from the rates: here it is lower, and the last one brings others
  // along.
  CHECK(found_by(known, rates, 0).names == Names{"west", "measured-1", "measured-1", "west", "west", "west"});
  // Slices that have names are never joined.
  CHECK(found_by({"west", "east"}, {{0, 1, 1e9}}, 1e3).names == Names{"west", "east"});
  // Two that are fast to each other and to one slice each: the faster link decides for each.
  CHECK(found_by({"a", "b", "", ""}, {{2, 0, 9e8}, {3, 1, 8e8}, {2, 3, 7e8}}, 1e8).names ==
        Names{"a", "b", "a", "b"});
}

// The links of workers, on a clock of each worker that exchanges move on.
class TimedLinks final : public runtime::ForwardedCollectives {
 public:
  TimedLinks(runtime::Collectives& group, std::function<double(int64_t, int64_t)> rate)
      : ForwardedCollectives(group), rate_(std::move(rate)) {}
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    for (size_t i = 0; i < peers.size(); ++i)
      if (peers[i] != rank()) now_ += static_cast<double>(send[i].size()) / rate_(rank(), peers[i]);
    return ForwardedCollectives::exchange(peers, send, receive);
  }
  double now() const { return now_; }

 private:
  const std::function<double(int64_t, int64_t)> rate_;
  double now_ = 0;
};

struct Asked {
  MeasuredSlices found;
  int64_t bytes = 0;  // of all workers
  int asked = 0;
  bool agree = true;  // all say whether slices differ
};

// Workers of machines (a letter each); links inside a machine have 5 GB/s. `names`: "?" and then a guess, or
// a slice.
Asked ask(const std::string& machines, const Names& names, const MeasuredSlices& before,
          const std::function<double(char, char)>& rate) {
  const auto workers = static_cast<int64_t>(machines.size());
  KnownSlices known{names, std::vector<bool>(names.size()), before.limit, before.fastest};
  known.names.resize(machines.size());
  known.guessed.resize(machines.size(), true);
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].starts_with("?")) known.guessed[i] = true, known.names[i].erase(0, 1);
  Asked out;
  std::mutex mutex;
  const auto letter = [&](int64_t rank) { return machines[static_cast<size_t>(rank)]; };
  const Status done = dist::run_workers({{{"data", workers}}}, [&](runtime::Collectives& c) -> Status {
    TimedLinks links(
        c, [&](int64_t a, int64_t b) { return letter(a) == letter(b) ? 5e9 : rate(letter(a), letter(b)); });
    Names hosts;
    for (const char machine : machines) hosts.emplace_back(1, machine);
    ASSIGN_OR_RETURN(
        const MeasuredSlices found,
        measure_links(links, std::string(1, letter(c.rank())), hosts, known,
                      before.limit > 0 ? "measured-2." : "measured-1.", [&] { return links.now(); }));
    const std::scoped_lock lock(mutex);
    out.bytes += c.bytes_sent();
    const bool differs = out.found.differs;
    if (c.rank() == 0) out.found = found;
    if (out.asked++ > 0 && found.differs != differs) out.agree = false;
    if (c.rank() != 0) out.found.differs = found.differs;
    return Status();
  });
  REQUIRE_MESSAGE(done.ok(), done.error().message());
  CHECK(out.agree);
  return out;
}

double far_from_m(char a, char b) { return (a < 'm') == (b < 'm') ? 1e9 : 1e7; }

TEST_CASE("measured links: workers find the slices, and those that come later theirs") {
  const Asked first = ask("abyazb", {}, {}, far_from_m);
  CHECK(first.found.differs);
  CHECK(first.found.names == Names{"measured-1.1", "measured-1.1", "measured-1.2", "measured-1.1",
                                   "measured-1.2", "measured-1.1"});
  CHECK(first.found.limit == doctest::Approx(2.5e8));
  CHECK(first.found.fastest == doctest::Approx(1e9));
  CHECK(first.found.text ==
        "2 slices by measured rates: measured-1.1 (a b), measured-1.2 (y z); links inside have 1.0 GB/s or "
        "more; links between have 10 MB/s or less");
  // Of the slow links 1 MiB is enough to know them; the fast ones carry 9 MiB each way.
  CHECK(first.bytes < 2 * (int64_t{4} * (10 << 20) + int64_t{4} * (2 << 20)));
  // One comes to each slice, and one to neither; links between those that are known are not measured again.
  const Asked later =
      ask("abyczq",
          {"measured-1.1", "measured-1.1", "measured-1.2", "?measured-1.1", "measured-1.2", "?measured-1.1"},
          first.found, [](char a, char b) { return a == 'q' || b == 'q' ? 1e7 : far_from_m(a, b); });
  CHECK(later.found.names == Names{"measured-1.1", "measured-1.1", "measured-1.2", "measured-1.1",
                                   "measured-1.2", "measured-2.1"});
  CHECK(later.found.differs);
  CHECK_FALSE(later.found.anew);
  CHECK(later.bytes < 2 * (int64_t{2} * (10 << 20) + int64_t{7} * (2 << 20)));
  // The control: with equal links all are in one slice, and the epoch may stay as it is.
  const Asked equal = ask("abyazb", {}, {}, [](char, char) { return 4e9; });
  CHECK_FALSE(equal.found.differs);
  CHECK(equal.found.names == Names(6, "measured-1.1"));
  // One that comes to where it was put ends no epoch; one that comes elsewhere does.
  for (const char* guess : {"?x", "?y"}) {
    const Asked joined = ask("abcd", {"x", "x", guess, "y"}, first.found,
                             [](char a, char b) { return a == 'd' || b == 'd' ? 1e7 : 1e9; });
    CHECK(joined.found.names == Names{"x", "x", "x", "y"});
    CHECK(joined.found.differs == (guess[1] == 'y'));
  }
  const Asked alone = ask("aaa", {}, {}, far_from_m);
  CHECK_FALSE(alone.found.differs);
  CHECK(alone.found.limit == 0);
}

TEST_CASE("measured links: what workers found who came first and alone does not stay when others come") {
  // A far pair, which nothing can be compared with.
  const Asked first = ask("az", {}, {}, far_from_m);
  CHECK(first.found.names == Names(2, "measured-1.1"));
  CHECK_FALSE(first.found.differs);
  // Near ones on both sides.
  const Asked near = ask("azby", {"measured-1.1", "measured-1.1", "?measured-1.1", "?measured-1.1"},
                         first.found, far_from_m);
  CHECK(near.found.anew);
  CHECK(near.found.names == Names{"measured-2.1", "measured-2.2", "measured-2.1", "measured-2.2"});
  CHECK(near.found.differs);
  // A second worker of a machine.
  const Asked second = ask("azz", {"measured-1.1", "measured-1.1", "?measured-1.1"}, first.found, far_from_m);
  CHECK(second.found.names == Names{"measured-2.1", "measured-2.2", "measured-2.2"});
  // Where the network is not slow, nothing inside a machine is measured, and nothing is said.
  const Asked quick = ask("az", {}, {}, [](char, char) { return 1.2e8; });
  const Asked third = ask("azz", {"measured-1.1", "measured-1.1", "?measured-1.1"}, quick.found,
                          [](char, char) { return 1.2e8; });
  CHECK(third.found.text.empty());
  CHECK(third.bytes < 1000);
  CHECK(third.found.names == Names(3, "measured-1.1"));
  // Two workers of each machine are no slices of their own there, either.
  CHECK(ask("aazz", {}, {}, [](char, char) { return 1.2e8; }).found.names == Names(4, "measured-1.1"));
  // What a launcher has named stays.
  CHECK(ask("azby", {"west", "measured-1.1", "?west", "?west"}, first.found, far_from_m).found.names ==
        Names{"west", "measured-2.1", "west", "measured-2.1"});
}

// Searches with given rates, and counts rounds: each machine is in one pair at a time.
size_t rounds_of(SliceSearch& search, size_t machines, const std::function<double(size_t, size_t)>& rate) {
  size_t rounds = 0, asked = 0;
  while (true) {
    const SliceSearch::Pairs pairs = search.next();
    if (pairs.empty()) return rounds;
    REQUIRE(++asked < 1000);
    std::vector<size_t> until(machines);
    std::vector<LinkRate> rates;
    for (const auto& [a, b] : pairs) {
      until[a] = until[b] = std::max(until[a], until[b]) + 1;
      rates.push_back({a, b, rate(a, b)});
    }
    rounds += *std::max_element(until.begin(), until.end());
    search.measured(rates);
  }
}

TEST_CASE("measured links: many machines find their slices in few rounds, and later ones in fewer") {
  for (const size_t sites : {1, 3, 8}) {
    constexpr size_t kMachines = 512;
    const auto rate = [&](size_t a, size_t b) {
      return (a % sites == b % sites ? 1e9 : 1e7) * (1 + 0.001 * static_cast<double>((a * 7 + b) % 11));
    };
    SliceSearch first(Names(kMachines), std::vector<Inside>(kMachines, Inside::kOne), 0, 0, kPrefix);
    const size_t rounds = rounds_of(first, kMachines, rate);
    CHECK_MESSAGE(rounds <= kMostPartners + 6 * (sites + 4),
                  sites << " sites: " << rounds);  // all pairs: 511
    Names names = first.found().names;
    for (size_t machine = 0; machine < kMachines; ++machine) CHECK(names[machine] == names[machine % sites]);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == sites);
    // Two of them come later, one from elsewhere with them.
    names[300].clear(), names[301].clear(), names[302].clear();
    SliceSearch later(names, std::vector<Inside>(kMachines, Inside::kOne), first.found().limit,
                      first.fastest(), "later-");
    const auto lonely = [&](size_t a, size_t b) { return a == 302 || b == 302 ? 1e7 : rate(a, b); };
    CHECK(rounds_of(later, kMachines, lonely) <= sites + 3);
    CHECK(later.found().names[300] == names[300 % sites]);
    CHECK(later.found().names[301] == names[301 % sites]);
    CHECK(later.found().names[302] == "later-1");
    CHECK_FALSE(later.anew());
    // Who is not measured in time counts for one of the largest slice.
    SliceSearch cut(names, std::vector<Inside>(kMachines, Inside::kOne), first.found().limit, 1e9, "later-");
    CHECK(cut.found().names[302] == names[0]);
  }
}

}  // namespace
}  // namespace ostro::fleet
