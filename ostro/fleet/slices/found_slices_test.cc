// Slices that are found by measuring: the rule on rates, and what workers measure over links of given rates.
#include "ostro/fleet/slices/found_slices.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <mutex>

#include "ostro/dist/loop_collectives.h"
#include "ostro/fleet/slices/measured_links.h"
#include "ostro/runtime/forwarded_collectives.h"

namespace ostro::fleet {
namespace {

using Names = std::vector<std::string>;

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
  const FoundSlices two = find_slices(Names(5), sites("ababa", 1e9, 1e7), 0);
  CHECK(two.names == Names{"measured-1", "measured-2", "measured-1", "measured-2", "measured-1"});
  CHECK(two.limit == doctest::Approx(0.25 * 1e9 * 1.02).epsilon(0.03));
  CHECK(find_slices(Names(4), sites("aabb", 1e9, 0.26e9), 0).names == Names(4, "measured-1"));
  CHECK(find_slices(Names(4), sites("aabb", 1e9, 0.2e9), 0).names ==
        Names{"measured-1", "measured-1", "measured-2", "measured-2"});
  // One slow link of many separates no machine, and does not hide those that do.
  std::vector<LinkRate> rates = sites("aaabbb", 1e9, 1e7);
  rates[0].rate = 1e5;
  CHECK(find_slices(Names(6), rates, 0).names ==
        Names{"measured-1", "measured-1", "measured-1", "measured-2", "measured-2", "measured-2"});
  // Two machines with one link are separated only where workers inside them are much closer.
  CHECK(find_slices(Names(2), {{0, 1, 1e7}}, 0).names == Names(2, "measured-1"));
  CHECK(find_slices(Names(2), {{0, 0, 1e9}, {1, 1, 2e9}, {0, 1, 1e7}}, 0).names ==
        Names{"measured-1", "measured-2"});
  // Machines of sites: what separates is the slowest step.
  std::vector<LinkRate> nested = sites("aabb", 1e8, 1e6);
  for (size_t machine = 0; machine < 4; ++machine) nested.push_back({machine, machine, 1e10});
  CHECK(find_slices(Names(4), nested, 0).names ==
        Names{"measured-1", "measured-1", "measured-2", "measured-2"});
  const FoundSlices one = find_slices(Names(1), {}, 0);
  CHECK(one.names == Names{"measured-1"});
  CHECK(one.limit == 0);
}

TEST_CASE("found slices: later machines come to those that are there, or make another") {
  const Names known{"west", "measured-1", "", "", "", ""};
  const std::vector<LinkRate> rates{{2, 0, 9e8}, {2, 1, 1e9}, {2, 3, 1e7}, {3, 0, 1e7},
                                    {3, 1, 2e7}, {4, 0, 1e7}, {4, 1, 1e7}, {4, 2, 1e7},
                                    {4, 3, 1e9}, {5, 4, 1e8}, {5, 0, 3e8}};
  CHECK(find_slices(known, rates, 2.5e8).names ==
        Names{"west", "measured-1", "measured-1", "measured-2", "measured-2", "west"});
  // Without a limit of before it follows from the rates: here it is lower, and the last one brings others
  // along.
  CHECK(find_slices(known, rates, 0).names ==
        Names{"west", "measured-1", "measured-1", "west", "west", "west"});
  // Slices that have names are never joined.
  CHECK(find_slices({"west", "east"}, {{0, 1, 1e9}}, 1e3).names == Names{"west", "east"});
  // Two that are fast to each other and to one slice each: the faster link decides for each.
  CHECK(find_slices({"a", "b", "", ""}, {{2, 0, 9e8}, {3, 1, 8e8}, {2, 3, 7e8}}, 1e8).names ==
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
};

// Workers of machines (a letter each); links inside a machine have 5 GB/s.
Asked ask(const std::string& machines, Names slices, double limit,
          const std::function<double(char, char)>& rate) {
  const auto workers = static_cast<int64_t>(machines.size());
  slices.resize(machines.size());
  Asked out;
  std::mutex mutex;
  const auto letter = [&](int64_t rank) { return machines[static_cast<size_t>(rank)]; };
  const Status done = dist::run_workers({{{"data", workers}}}, [&](runtime::Collectives& c) -> Status {
    TimedLinks links(
        c, [&](int64_t a, int64_t b) { return letter(a) == letter(b) ? 5e9 : rate(letter(a), letter(b)); });
    Names hosts;
    for (const char machine : machines) hosts.emplace_back(1, machine);
    ASSIGN_OR_RETURN(const MeasuredSlices found,
                     measure_links(links, std::string(1, letter(c.rank())), hosts, slices,
                                   c.rank() == 0 ? limit : 77, [&] { return links.now(); }));
    const std::scoped_lock lock(mutex);
    out.bytes += c.bytes_sent();
    if (c.rank() == 0) out.found = found;
    if (found.differs != out.found.differs && c.rank() != 0) out.found.text += " (others differ)";
    return Status();
  });
  REQUIRE_MESSAGE(done.ok(), done.error().message());
  return out;
}

TEST_CASE("measured links: workers find the slices, and those that come later theirs") {
  const auto rate = [](char a, char b) { return (a < 'm') == (b < 'm') ? 1e9 : 1e7; };
  const Asked first = ask("abyazb", {}, 0, rate);
  CHECK(first.found.differs);
  CHECK(first.found.names ==
        Names{"measured-1", "measured-1", "measured-2", "measured-1", "measured-2", "measured-1"});
  CHECK(first.found.limit == doctest::Approx(2.5e8));
  CHECK(first.found.text ==
        "2 slices by measured rates: measured-1 (a b), measured-2 (y z); links inside have 1.0 GB/s or more; "
        "links between have 10 MB/s or less");
  // Of the slow links 1 MiB is enough to know them; the fast ones carry 9 MiB each way.
  CHECK(first.bytes < 2 * (int64_t{4} * (10 << 20) + int64_t{4} * (2 << 20)));
  // One comes to each slice, and one to neither; links between those that are known are not measured again.
  const Asked later = ask("abyczq", {"measured-1", "measured-1", "measured-2", "", "measured-2", ""}, 2.5e8,
                          [&](char a, char b) { return a == 'q' || b == 'q' ? 1e7 : rate(a, b); });
  CHECK(later.found.names ==
        Names{"measured-1", "measured-1", "measured-2", "measured-1", "measured-2", "measured-3"});
  CHECK(later.found.differs);
  CHECK(later.bytes < 2 * (int64_t{2} * (10 << 20) + int64_t{7} * (2 << 20)));
  // The control: with equal links all are in one slice, and the epoch may stay as it is.
  const Asked equal = ask("abyazb", {}, 0, [](char, char) { return 4e9; });
  CHECK_FALSE(equal.found.differs);
  CHECK(equal.found.names == Names(6, "measured-1"));
  const Asked alone = ask("aaa", {}, 0, rate);
  CHECK_FALSE(alone.found.differs);
  CHECK(alone.found.limit == 0);
}

}  // namespace
}  // namespace ostro::fleet
