#include "ostro/simulate/step/options.h"

#include <fmt/format.h>

#include <cmath>

namespace ostro::simulate {
namespace {

using O = SimulateOptions;

constexpr int64_t kMostHosts = 16'384;
constexpr double kMostHours = 24 * 366;

constexpr Rate kRates[] = {
    {"flops", &O::flops, "FLOP/s", "that a host reaches in the leaf program", false},
    {"memory_gbytes", &O::memory_gbytes, "GB/s",
     "of memory that sums of gradients, updates and fingerprints read and write", false},
    {"leaf_seconds", &O::leaf_seconds, "s", "of one leaf, measured; 0: from --flops", true},
    {"add_seconds", &O::add_seconds, "s",
     "of adding the gradients of all parameters, measured; 0: from --memory_gbytes", true},
    {"update_seconds", &O::update_seconds, "s",
     "of updating all parameters, measured; 0: from --memory_gbytes", true},
    {"print_seconds", &O::print_seconds, "s",
     "of the fingerprints of all parameters, measured; 0: from --memory_gbytes", true},
    {"cores", &O::cores, "cores", "that the hosts of one machine share; a host uses one at most", false},
    {"spread", &O::spread, "", "by which the speeds of hosts differ (standard deviation of the logarithm)",
     true},
    {"jitter", &O::jitter, "", "by which the times of one host differ from step to step", true},
    {"inner_gbit", &O::inner_gbit, "Gbit/s", "of the link of each machine, each way", false},
    {"inner_latency_us", &O::inner_latency_us, "us", "of a message inside a slice", true},
    {"outer_gbit", &O::outer_gbit, "Gbit/s", "of the link of each slice to the others, each way", false},
    {"outer_latency_us", &O::outer_latency_us, "us", "of a message to another slice or to the coordinator",
     true},
    {"connection_gbit", &O::connection_gbit, "Gbit/s",
     "of one connection between slices; a pair of hosts has trainer.mesh.slice_connections; 0: no limit",
     true},
    {"loopback_gbytes", &O::loopback_gbytes, "GB/s",
     "that a host with a core of its own sends while it receives as much; 0: not counted", true},
    {"message_us", &O::message_us, "us", "of a core for each message that a host sends and the one it gets",
     true},
    {"connect_us", &O::connect_us, "us", "of a core for each connection when an epoch forms", true},
    {"coordinator_gbit", &O::coordinator_gbit, "Gbit/s", "of the coordinator's link", false},
    {"store_gbytes", &O::store_gbytes, "GB/s", "of the store of checkpoints, all hosts together", false},
    {"mtbf_hours", &O::mtbf_hours, "h", "between failures of one host, on average; 0: never", true},
    {"slice_mtbf_hours", &O::slice_mtbf_hours, "h",
     "between losses of one slice as a whole, on average; 0: never", true},
    {"notice_seconds", &O::notice_seconds, "s",
     "until the coordinator notices a loss: 5 when a machine is silent, 0 when a process ends", true},
    {"replace_minutes", &O::replace_minutes, "min", "until another host comes in place of a lost one", true},
    {"prepare_seconds", &O::prepare_seconds, "s", "in which a host makes its programs for a new epoch", true},
    {"hours", &O::hours, "h", "of the run that are simulated; 0: only a step", true},
};

Status bad(const char* name, double value, const std::string& use) {
  return invalid_argument(fmt::format("--{}: {:g}; use {}", name, value, use));
}

}  // namespace

std::span<const Rate> rates() { return kRates; }

Status check_options(const SimulateOptions& o) {
  if (o.hosts < 1 || o.hosts > kMostHosts)
    return bad("hosts", static_cast<double>(o.hosts), fmt::format("1 to {}", kMostHosts));
  if (o.slices < 1 || o.slices > o.hosts)
    return bad("slices", static_cast<double>(o.slices), fmt::format("1 to the number of hosts, {}", o.hosts));
  if (o.hosts % o.slices != 0) {
    const int64_t each = o.hosts / o.slices;
    return invalid_argument(
        fmt::format("--hosts {} cannot be divided into --slices {} of one size; use {} or {} hosts, or a "
                    "number of slices that divides {}",
                    o.hosts, o.slices, each * o.slices, (each + 1) * o.slices, o.hosts));
  }
  if (o.hosts_per_machine < 1 || o.hosts_per_machine > o.hosts)
    return bad("hosts_per_machine", static_cast<double>(o.hosts_per_machine),
               fmt::format("1 to the number of hosts, {}", o.hosts));
  const int64_t slice = o.hosts / o.slices;
  if (o.machines() > 1 && o.slices > 1 && slice % o.hosts_per_machine != 0)
    return invalid_argument(fmt::format(
        "--hosts_per_machine {} does not divide the {} hosts of a slice, so that a machine would be in "
        "two slices; use a number that divides {}, or {} for all on one machine",
        o.hosts_per_machine, slice, slice, o.hosts));
  if (o.min_workers < 1 || o.min_workers > o.hosts)
    return bad("min_workers", static_cast<double>(o.min_workers),
               fmt::format("1 to the number of hosts, {}", o.hosts));
  for (const Rate& rate : kRates) {
    const double value = o.*rate.value;
    if (!std::isfinite(value) || value < 0 || (value == 0 && !rate.may_be_zero))
      return bad(rate.name, value, rate.may_be_zero ? "0 or more" : "a number above 0");
  }
  if (o.hours > kMostHours) return bad("hours", o.hours, fmt::format("at most {}", kMostHours));
  if (o.spread > 1) return bad("spread", o.spread, "at most 1");
  if (o.jitter > 1) return bad("jitter", o.jitter, "at most 1");
  return Status();
}

}  // namespace ostro::simulate
