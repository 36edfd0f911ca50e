#include "ostro/simulate/step/step_links.h"

#include <algorithm>
#include <map>

#include "ostro/simulate/step/units.h"

namespace ostro::simulate {

using Level = Exchange::Level;

double LinkLoad::longest() const {
  double seconds = between;
  for (const auto& [slice, busy] : machines) seconds = std::max(seconds, busy);
  return seconds;
}

void LinkLoad::scale(double by) {
  between *= by;
  for (auto& [slice, busy] : machines) busy *= by;
}

int64_t StepLinks::bytes_of(int64_t rank, const Exchange& exchange, Level level) const {
  if (exchange.traffic == nullptr || (exchange.level != Level::kBoth && exchange.level != level)) return 0;
  const Traffic& t = plan_.work(rank).*exchange.traffic;
  return level == Level::kInside ? t.inside : t.between;
}

double StepLinks::core_seconds(int64_t rank, const Exchange& exchange) const {
  if (exchange.traffic == nullptr) return o_.message_us * kMicro;
  const Traffic& t = plan_.work(rank).*exchange.traffic;
  const auto bytes = static_cast<double>(bytes_of(rank, exchange, Level::kInside) +
                                         bytes_of(rank, exchange, Level::kBetween));
  const double share =
      t.bytes() > 0 && exchange.level != Level::kBoth ? bytes / static_cast<double>(t.bytes()) : 1;
  return exchange.share * (share * static_cast<double>(t.messages) * o_.message_us * kMicro +
                           (o_.loopback_gbytes > 0 ? bytes / (o_.loopback_gbytes * kGiga) : 0));
}

LinkLoad StepLinks::load(const std::vector<int64_t>& members, const Exchange& exchange) const {
  LinkLoad out;
  if (machines_ == 1) return out;
  const bool far = plan_.slices > 1 && (exchange.whole || exchange.level == Level::kBetween);
  int64_t exchanges = 1;
  std::map<int64_t, std::pair<int64_t, double>> machines;  // the slice, and bytes that leave the machine
  std::map<int64_t, double> slices;                        // bytes that leave the slice
  double most = 0;                                         // that a host sends to others
  for (const int64_t rank : members) {
    const auto inside = static_cast<double>(bytes_of(rank, exchange, Level::kInside));
    const auto between = static_cast<double>(bytes_of(rank, exchange, Level::kBetween));
    if (exchange.traffic != nullptr)
      exchanges = std::max(exchanges, (plan_.work(rank).*exchange.traffic).exchanges);
    const int64_t slice = plan_.slice_of[static_cast<size_t>(rank)];
    auto& machine = machines[machine_of(rank)];
    machine.first = slice;
    machine.second += between + inside * leaves_machine(exchange.whole && !plan_.two_levels
                                                            ? plan_.hosts
                                                            : plan_.slice_sizes[static_cast<size_t>(slice)]);
    slices[slice] += between;
    most = std::max(most, between);
  }
  std::map<int64_t, double> links;
  for (const auto& [machine, load] : machines)
    links[load.first] = std::max(links[load.first], load.second * kBitsAByte / (o_.inner_gbit * kGiga));
  out.machines.assign(links.begin(), links.end());
  for (const auto& [slice, bytes] : slices)
    out.between = std::max(out.between, bytes * kBitsAByte / (o_.outer_gbit * kGiga));
  // A host sends to one of each other slice.
  if (o_.connection_gbit > 0 && plan_.slices > 1)
    out.between = std::max(out.between, most * kBitsAByte /
                                            (static_cast<double>((plan_.slices - 1) * plan_.connections) *
                                             o_.connection_gbit * kGiga));
  // What goes in pieces, or beside the work of the leaf program, goes at once.
  const bool at_once = exchange.traffic == &HostWork::in_leaves ||
                       (plan_.overlaps && (exchange.traffic == &HostWork::parameters ||
                                           exchange.traffic == &HostWork::gradients));
  out.latency = kMicro * (far ? o_.outer_latency_us : o_.inner_latency_us) *
                static_cast<double>(at_once ? 1 : exchanges);
  return out;
}

// The share of what a host sends in a group of this size that leaves its machine.
double StepLinks::leaves_machine(int64_t group) const {
  const int64_t here = std::min(o_.hosts_per_machine, group);
  return group <= 1 ? 0 : static_cast<double>(group - here) / static_cast<double>(group - 1);
}

}  // namespace ostro::simulate
