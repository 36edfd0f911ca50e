// AlertRules: when a run needs a person. They compare what is seen of it with what was seen before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/run/report/meters.h"

namespace ostro::monitor {

// What there may be alerts of: a session that ended because a number was not finite; one that ended with
// another error; no step for long; a worker that was lost; a disk that is nearly full.
inline constexpr std::array<const char*, 5> kAlerts = {"not_finite", "failed", "stalled", "worker_lost",
                                                       "disk_nearly_full"};

struct AlertOptions {
  int64_t stall_factor = 20;        // 0: no alert of steps that do not come
  double disk_free = 1e9;           // bytes; 0: no alert of the disk
  double least_stall_seconds = 60;  // that may pass without an alert
  double first_step_seconds = 900;  // the same before the first step of a session: there is no median yet
};

// What is seen of a run at one moment.
struct Sight {
  std::optional<run::Meters> meters;
  bool trains = false;  // a step is expected
  // For how many seconds the meters have shown no other step. It is a time of the clock of those that look:
  // times in the meters are of another machine's.
  double still = 0;
  int64_t lost_count = 0;  // workers lost so far, and the reason of the last
  std::string last_loss;
  double disk_free = -1;  // bytes; below 0: not known
  std::string outcome;    // of the session that ended: "failed: ..."; "": it goes on, or ended well
};

struct Alert {
  std::string name;  // one of kAlerts
  std::string text;  // for a person
};

// Not thread-safe.
class AlertRules {
 public:
  explicit AlertRules(const AlertOptions& options) : options_(options) {}

  // The alerts that this sight gives and none before it did. The cause of an alert must go before it is given
  // again.
  std::vector<Alert> look(const Sight& sight);
  // Whether its cause was there at the last look; nothing where the cause is a moment: a worker was lost.
  std::optional<bool> is_active(const std::string& name) const;

 private:
  std::optional<std::string> stalled(const Sight& sight) const;
  std::optional<std::string> disk_is_full(const Sight& sight) const;

  const AlertOptions options_;
  bool stalled_ = false, disk_ = false, ended_ = false, not_finite_ = false;
  int64_t lost_ = 0;
};

}  // namespace ostro::monitor
