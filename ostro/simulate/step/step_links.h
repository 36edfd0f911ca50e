// StepLinks: how long links and cores are busy with the exchanges of a step. Hosts of one machine share its
// link, those of one slice its link to others, and each pair of hosts in different slices has connections of
// its own. Pure functions of the plan and the options; any thread may call them.
#pragma once

#include <utility>
#include <vector>

#include "ostro/simulate/step/step_actions.h"

namespace ostro::simulate {

// Seconds of an exchange of a group.
struct LinkLoad {
  // By slice that sends: of the link of its machine that sends the most.
  std::vector<std::pair<int64_t, double>> machines;
  double between = 0;  // of the link of the slice that sends the most, or of a connection, if that is longer
  double latency = 0;  // afterwards, when links are free again

  double longest() const;  // with links of their own
  void scale(double by);   // all but the latency
};

class StepLinks {
 public:
  // Both must outlive it.
  StepLinks(const StepPlan& plan, const SimulateOptions& options)
      : plan_(plan),
        o_(options),
        machines_((plan.hosts + options.hosts_per_machine - 1) / options.hosts_per_machine) {}

  int64_t machines() const { return machines_; }
  int64_t machine_of(int64_t rank) const { return rank / o_.hosts_per_machine; }
  // Of the exchange with all of its bytes (share 1), of these hosts.
  LinkLoad load(const std::vector<int64_t>& members, const Exchange& exchange) const;
  // Of a core of the host, for its messages and, on loopback, for their bytes.
  double core_seconds(int64_t rank, const Exchange& exchange) const;

 private:
  int64_t bytes_of(int64_t rank, const Exchange& exchange, Exchange::Level level) const;
  double leaves_machine(int64_t group) const;

  const StepPlan& plan_;
  const SimulateOptions& o_;
  int64_t machines_;
};

}  // namespace ostro::simulate
