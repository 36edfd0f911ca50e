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
#include "ostro/fleet/slices/slice_search.h"
#include "ostro/fleet/slices/slices.h"

namespace ostro::fleet {
namespace {

constexpr std::array<size_t, 3> kLinkBytes = {size_t{64} << 10, size_t{1} << 20, size_t{8} << 20};
constexpr double kLongEnough = 0.02;  // seconds
constexpr size_t kMostHostsTold = 8;  // of a slice

// A hash of its text, which each worker tells all others first.
using Machine = std::array<char, 24>;

Result<std::vector<Machine>> tell_all(runtime::Collectives& group, const Machine& own) {
  std::vector<Machine> all(static_cast<size_t>(group.size()));
  std::vector<int64_t> peers;
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    peers.push_back(rank);
    send.push_back(std::as_bytes(std::span(own)));
    receive.push_back(std::as_writable_bytes(std::span(all[static_cast<size_t>(rank)])));
  }
  RETURN_IF_ERROR(group.exchange(peers, send, receive));
  return all;
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
  std::vector<Inside> inside;
  Machines(const std::vector<Machine>& by_rank, const KnownSlices& known) {
    std::map<Machine, size_t> numbers;
    std::vector<bool> fresh;  // it has a worker without a slice
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      const auto [at, is_new] = numbers.emplace(by_rank[rank], first.size());
      const size_t machine = at->second;
      of.push_back(machine);
      if (is_new) {
        first.push_back(static_cast<int64_t>(rank));
        second.push_back(-1);
        slice.emplace_back();
        inside.push_back(Inside::kOne);
      } else if (second[machine] < 0) {
        second[machine] = static_cast<int64_t>(rank);
      }
      fresh.resize(first.size());
      if (known.guessed[rank])
        fresh[machine] = true;
      else if (slice[machine].empty())
        slice[machine] = known.names[rank];
      if (second[machine] >= 0) inside[machine] = fresh[machine] ? Inside::kNew : Inside::kSeveral;
    }
  }
};

// Worker 0 sends bytes to all others, and the others take them.
Status from_first(runtime::Collectives& group, std::span<std::byte> bytes) {
  if (group.rank() != 0) return swap(group, 0, {}, bytes);
  std::vector<int64_t> peers;
  for (int64_t rank = 1; rank < group.size(); ++rank) peers.push_back(rank);
  const std::vector<std::span<const std::byte>> send(peers.size(), bytes);
  const std::vector<std::span<std::byte>> receive(peers.size());
  return peers.empty() ? Status() : group.exchange(peers, send, receive);
}

// Links that are measured together, by ranks, and their rates. Ends are different workers.
struct Round {
  std::vector<std::array<int64_t, 2>> ends;
  std::vector<double> rates;
};

// Measures those of this worker in their order, and tells worker 0 the rates: the lower end of each does.
Status measure(runtime::Collectives& group, Round& round, const std::function<double()>& seconds) {
  round.rates.assign(round.ends.size(), 0);
  std::map<int64_t, std::vector<double>> rates;  // by who tells them
  for (size_t i = 0; i < round.ends.size(); ++i) {
    const auto [a, b] = round.ends[i];
    std::vector<double>& told = rates[std::min(a, b)];
    told.push_back(0);
    if (group.rank() != a && group.rank() != b) continue;
    ASSIGN_OR_RETURN(told.back(), rate_of_link(group, group.rank() == a ? b : a, seconds));
  }
  if (group.rank() != 0) {
    const auto own = rates.find(group.rank());
    return own == rates.end() ? Status() : swap(group, 0, std::as_bytes(std::span(own->second)), {});
  }
  std::vector<int64_t> peers;
  std::vector<std::span<std::byte>> receive;
  for (auto& [rank, some] : rates)
    if (rank != 0) peers.push_back(rank), receive.push_back(std::as_writable_bytes(std::span(some)));
  const std::vector<std::span<const std::byte>> send(peers.size());
  if (!peers.empty()) RETURN_IF_ERROR(group.exchange(peers, send, receive));
  std::map<int64_t, size_t> taken;
  for (size_t i = 0; i < round.ends.size(); ++i) {
    const int64_t teller = std::min(round.ends[i][0], round.ends[i][1]);
    round.rates[i] = rates[teller][taken[teller]++];
  }
  return {};
}

// All workers take the links of worker 0 and measure them; false: there are none.
Result<bool> measure_next(runtime::Collectives& group, Round& round, const std::function<double()>& seconds) {
  auto count = static_cast<int64_t>(round.ends.size());
  RETURN_IF_ERROR(from_first(group, std::as_writable_bytes(std::span(&count, 1))));
  if (count == 0) return false;
  round.ends.resize(static_cast<size_t>(count));
  RETURN_IF_ERROR(from_first(group, std::as_writable_bytes(std::span(round.ends))));
  RETURN_IF_ERROR(measure(group, round, seconds));
  return true;
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
    else if (rate > static_cast<double>(found.limit))
      inside = std::min(inside.value_or(rate), rate);
  if (inside) out += fmt::format("; links inside have {} or more", rate_text(*inside));
  if (between) out += fmt::format("; links between have {} or less", rate_text(*between));
  return fmt::format("{} {} by measured rates: {}", order.size(), order.size() == 1 ? "slice" : "slices",
                     out);
}

// Of worker 0: which links are measured, and what they say.
Result<MeasuredSlices> search(runtime::Collectives& group, const Machines& machines,
                              const std::vector<std::string>& hosts, const KnownSlices& known,
                              const std::string& prefix, const std::function<double()>& seconds) {
  SliceSearch search(machines.slice, machines.inside, static_cast<double>(known.limit),
                     static_cast<double>(known.fastest), prefix);
  const double begin = seconds();
  for (bool more = true; more;) {
    const auto pairs = seconds() - begin < kMostSecondsOfLinks ? search.next() : SliceSearch::Pairs();
    Round round;
    for (const auto& [a, b] : pairs)
      round.ends.push_back({machines.first[a], a == b ? machines.second[a] : machines.first[b]});
    ASSIGN_OR_RETURN(more, measure_next(group, round, seconds));
    std::vector<LinkRate> rates;
    for (size_t i = 0; more && i < pairs.size(); ++i)
      rates.push_back({pairs[i].first, pairs[i].second, round.rates[i]});
    if (more) search.measured(rates);
  }
  const FoundSlices by_machine = search.found();
  MeasuredSlices found;
  for (size_t rank = 0; rank < known.names.size(); ++rank) {
    const std::string& before = known.names[rank];
    const bool stays = !known.guessed[rank] && !(search.anew() && before.starts_with(kMeasuredPrefix));
    found.names.push_back(stays ? before : by_machine.names[machines.of[rank]]);
  }
  found.anew = search.anew();
  found.limit = static_cast<int64_t>(by_machine.limit);
  found.fastest = static_cast<int64_t>(search.fastest());
  if (!search.rates().empty()) found.text = text_of(found, machines, search.rates(), by_machine.names, hosts);
  const Slices before(known.names, group.size()), after(found.names, group.size());
  // Workers of one slice that are no neighbours come to other ranks.
  const std::set<std::string> distinct(found.names.begin(), found.names.end());
  found.differs = after.count() != static_cast<int64_t>(distinct.size());
  for (int64_t rank = 0; rank < group.size(); ++rank)
    found.differs = found.differs || before.of(rank) != after.of(rank);
  return found;
}

}  // namespace

Result<MeasuredSlices> measure_links(runtime::Collectives& group, const std::string& machine,
                                     const std::vector<std::string>& hosts, const KnownSlices& known,
                                     const std::string& prefix, const std::function<double()>& seconds) {
  Machine own{};
  const std::string hash = sha256_hex(machine);
  std::memcpy(own.data(), hash.data(), own.size());
  ASSIGN_OR_RETURN(const std::vector<Machine> all, tell_all(group, own));
  MeasuredSlices found;
  if (group.rank() == 0) {
    const Machines machines(all, known);
    ASSIGN_OR_RETURN(found, search(group, machines, hosts, known, prefix, seconds));
  } else {
    for (bool more = true; more;) {
      Round round;
      ASSIGN_OR_RETURN(more, measure_next(group, round, seconds));
    }
  }
  // The others learn whether to stay.
  std::byte differs{found.differs};
  RETURN_IF_ERROR(from_first(group, std::span(&differs, 1)));
  found.differs = differs != std::byte{0};
  return found;
}

}  // namespace ostro::fleet
