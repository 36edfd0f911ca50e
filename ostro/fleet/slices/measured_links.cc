#include "ostro/fleet/slices/measured_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "ostro/base/sha256.h"
#include "ostro/fleet/slices/found_slices.h"
#include "ostro/fleet/slices/slices.h"

namespace ostro::fleet {
namespace {

constexpr std::array<size_t, 3> kLinkBytes = {size_t{64} << 10, size_t{1} << 20, size_t{8} << 20};
constexpr double kLongEnough = 0.02;  // seconds
constexpr size_t kMostHostsTold = 8;  // of a slice

// What each worker tells all others first.
struct Word {
  std::array<char, 24> machine{};
  double limit = 0;
};

Result<std::vector<Word>> tell_all(runtime::Collectives& group, const Word& own) {
  std::vector<Word> words(static_cast<size_t>(group.size()));
  std::vector<int64_t> peers;
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    peers.push_back(rank);
    send.push_back(std::as_bytes(std::span(&own, 1)));
    receive.push_back(std::as_writable_bytes(std::span(&words[static_cast<size_t>(rank)], 1)));
  }
  RETURN_IF_ERROR(group.exchange(peers, send, receive));
  return words;
}

Status swap(runtime::Collectives& group, int64_t peer, std::span<const std::byte> send,
            std::span<std::byte> receive) {
  return group.exchange(std::span(&peer, 1), std::span(&send, 1), std::span(&receive, 1));
}

// Both ends get the same: bytes a second each way, by the end that took longer.
Result<double> rate_of_link(runtime::Collectives& group, int64_t peer,
                            const std::function<double()>& seconds) {
  double own = 0, other = 0;
  const auto agree = [&] {
    return swap(group, peer, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(&other, 1)));
  };
  RETURN_IF_ERROR(agree());  // both are here
  double rate = 0;
  for (const size_t bytes : kLinkBytes) {
    std::vector<std::byte> send(bytes), receive(bytes);
    const double begin = seconds();
    RETURN_IF_ERROR(swap(group, peer, send, receive));
    own = seconds() - begin;
    RETURN_IF_ERROR(agree());
    const double took = std::max({own, other, 1e-9});
    rate = static_cast<double>(bytes) / took;
    if (took >= kLongEnough) break;
  }
  return rate;
}

// The machines of the workers, in the order of their first ranks.
struct Machines {
  std::vector<size_t> of;              // by rank
  std::vector<int64_t> first, second;  // ranks by machine; second: -1, if it has one worker
  std::vector<std::string> slice;      // that one of its workers has; "": none
  Machines(const std::vector<Word>& words, const std::vector<std::string>& slices) {
    std::map<std::array<char, 24>, size_t> numbers;
    for (size_t rank = 0; rank < words.size(); ++rank) {
      const auto [at, is_new] = numbers.emplace(words[rank].machine, first.size());
      of.push_back(at->second);
      if (is_new) {
        first.push_back(static_cast<int64_t>(rank));
        second.push_back(-1);
        slice.emplace_back();
      } else if (second[at->second] < 0) {
        second[at->second] = static_cast<int64_t>(rank);
      }
      if (slice[at->second].empty()) slice[at->second] = slices[rank];
    }
  }
  size_t count() const { return first.size(); }
};

// The machine that a machine measures with in a round of a tournament in which each pair meets once; itself
// when it pauses.
size_t opponent(size_t machine, size_t round, size_t machines) {
  const size_t seats = machines + machines % 2, last = seats - 1;
  size_t other = machine == last ? last : (round + last - machine) % last;
  if (machine == last) {  // the one that would meet itself: 2 x = round (mod last)
    for (other = 0; (2 * other) % last != round % last;) ++other;
  } else if (other == machine) {
    other = last;
  }
  return other < machines ? other : machine;
}

std::string rate_text(double rate) {
  return rate >= 0.95e9 ? fmt::format("{:.1f} GB/s", rate / 1e9) : fmt::format("{:.3g} MB/s", rate / 1e6);
}

std::string text_of(const MeasuredSlices& found, const Machines& machines, const std::vector<LinkRate>& rates,
                    const std::vector<std::string>& names, const std::vector<std::string>& hosts) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> members;  // hosts, by slice
  std::set<std::pair<std::string, size_t>> told;
  for (size_t rank = 0; rank < found.names.size(); ++rank) {
    const std::string& name = found.names[rank];
    const size_t machine = machines.of[rank];
    if (members.count(name) == 0) order.push_back(name);
    if (told.emplace(name, machine).second)
      members[name].push_back(hosts[static_cast<size_t>(machines.first[machine])]);
  }
  std::string out;
  for (const std::string& name : order) {
    std::vector<std::string>& of = members[name];
    const size_t more = of.size() > kMostHostsTold ? of.size() - kMostHostsTold : 0;
    of.resize(of.size() - more);
    out += fmt::format("{}{} ({}{})", out.empty() ? "" : ", ", name, fmt::join(of, " "),
                       more > 0 ? fmt::format(" and {} more machines", more) : "");
  }
  std::optional<double> inside, between;  // the slowest, the fastest
  for (const auto& [a, b, rate] : rates)
    if (names[a] != names[b])
      between = std::max(between.value_or(0), rate);
    else if (rate > found.limit)
      inside = std::min(inside.value_or(rate), rate);
  if (inside) out += fmt::format("; links inside have {} or more", rate_text(*inside));
  if (between) out += fmt::format("; links between have {} or less", rate_text(*between));
  return fmt::format("{} {} by measured rates: {}", order.size(), order.size() == 1 ? "slice" : "slices",
                     out);
}

}  // namespace

Result<MeasuredSlices> measure_links(runtime::Collectives& group, const std::string& machine,
                                     const std::vector<std::string>& hosts,
                                     const std::vector<std::string>& slices, double limit,
                                     const std::function<double()>& seconds) {
  Word own;
  const std::string hash = sha256_hex(machine);
  std::memcpy(own.machine.data(), hash.data(), own.machine.size());
  own.limit = limit;
  ASSIGN_OR_RETURN(const std::vector<Word> words, tell_all(group, own));
  const Machines machines(words, slices);
  const bool all = words[0].limit <= 0;
  const size_t self = machines.of[static_cast<size_t>(group.rank())], count = machines.count();
  std::vector<double> rates(count);  // from this machine
  if (all && machines.second[self] >= 0 &&
      (machines.first[self] == group.rank() || machines.second[self] == group.rank())) {
    const int64_t peer = machines.first[self] == group.rank() ? machines.second[self] : machines.first[self];
    ASSIGN_OR_RETURN(rates[self], rate_of_link(group, peer, seconds));
  }
  const bool measures = machines.first[self] == group.rank();
  for (size_t round = 0; measures && round + 1 < count + count % 2; ++round) {
    const size_t other = opponent(self, round, count);
    if (other == self || (!all && !machines.slice[self].empty() && !machines.slice[other].empty())) continue;
    ASSIGN_OR_RETURN(rates[other], rate_of_link(group, machines.first[other], seconds));
  }
  // Worker 0 is the first of its machine.
  MeasuredSlices found;
  if (group.rank() != 0) {
    if (measures) RETURN_IF_ERROR(swap(group, 0, std::as_bytes(std::span(rates)), {}));
  } else {
    std::vector<LinkRate> links;
    for (size_t from = 0; from < count; ++from) {
      std::vector<double> row = rates;
      if (from > 0)
        RETURN_IF_ERROR(swap(group, machines.first[from], {}, std::as_writable_bytes(std::span(row))));
      for (size_t to = 0; to <= from; ++to)
        if (row[to] > 0) links.push_back({from, to, row[to]});
    }
    const FoundSlices by_machine = find_slices(machines.slice, links, words[0].limit);
    for (size_t rank = 0; rank < slices.size(); ++rank)
      found.names.push_back(slices[rank].empty() ? by_machine.names[machines.of[rank]] : slices[rank]);
    found.limit = by_machine.limit;
    found.text = text_of(found, machines, links, by_machine.names, hosts);
    const Slices before(slices, group.size()), after(found.names, group.size());
    // Workers of one slice that are no neighbours come to other ranks.
    const std::set<std::string> distinct(found.names.begin(), found.names.end());
    found.differs = after.count() != static_cast<int64_t>(distinct.size());
    for (int64_t rank = 0; rank < group.size(); ++rank)
      found.differs = found.differs || before.of(rank) != after.of(rank);
  }
  // The others learn whether to stay.
  const std::byte mine{found.differs};
  std::byte told{};
  for (int64_t rank = 1; rank < group.size(); ++rank)
    if (group.rank() == 0) RETURN_IF_ERROR(swap(group, rank, std::span(&mine, 1), {}));
  if (group.rank() != 0) {
    RETURN_IF_ERROR(swap(group, 0, {}, std::span(&told, 1)));
    found.differs = told != std::byte{0};
  }
  return found;
}

}  // namespace ostro::fleet
