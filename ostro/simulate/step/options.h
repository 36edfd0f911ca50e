// SimulateOptions: the cluster that is simulated: its hosts, links, speeds and failures. A value; the errors
// of check_options() name the option.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::simulate {

// A rate of 0 with "never" or "not counted" in its help has no effect.
struct SimulateOptions {
  int64_t hosts = 1, slices = 1;  // workers; slices of equal size
  int64_t hosts_per_machine = 1;  // workers that share a machine, its cores and its link
  int64_t min_workers = 1;        // with fewer the run waits, and with fewer than the mesh needs
  int64_t seed = 1;

  // The speed of a host that has its cores alone.
  double flops = 1e14;         // FLOP/s in the leaf program
  double memory_gbytes = 400;  // GB/s of memory that sums, updates and fingerprints read and write
  // Measured seconds in place of these two rates; 0: not measured.
  double leaf_seconds = 0, add_seconds = 0, update_seconds = 0, print_seconds = 0;
  double cores = 1;  // of a machine; each of its hosts uses one of them at most
  double spread = 0.02, jitter = 0.01;

  double inner_gbit = 100, inner_latency_us = 20;
  double outer_gbit = 400, outer_latency_us = 1000;
  double connection_gbit = 0;  // of one connection between slices; 0: as the link
  double loopback_gbytes = 0, message_us = 5, connect_us = 200;
  double coordinator_gbit = 10;
  double store_gbytes = 20;

  double mtbf_hours = 10'000, slice_mtbf_hours = 0;
  double notice_seconds = 5, replace_minutes = 10, prepare_seconds = 30;
  double hours = 24;

  int64_t machines() const { return (hosts + hosts_per_machine - 1) / hosts_per_machine; }
};

// An option that is one number: its name, its unit and what it is.
struct Rate {
  const char* name;
  double SimulateOptions::* value;
  const char* unit;
  const char* help;
  bool may_be_zero;
};
std::span<const Rate> rates();

// Checks the options alone. Errors: kInvalidArgument with the option, its value and what to use.
Status check_options(const SimulateOptions& options);

}  // namespace ostro::simulate
