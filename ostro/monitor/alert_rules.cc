#include "ostro/monitor/alert_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/base/units.h"

namespace ostro::monitor {
namespace {

constexpr const char* kNotFinite = "failed: not finite";  // as the training loop ends such a session
constexpr double kCheckpoints = 2;                        // that must have room
constexpr double kPauses = 2;                             // of the longest that there was

double mib_of(double bytes) { return mib(static_cast<int64_t>(bytes)); }

}  // namespace

std::optional<std::string> AlertRules::stalled(const Sight& sight) const {
  if (options_.stall_factor == 0 || !sight.trains || !sight.meters) return std::nullopt;
  const run::Meters& m = *sight.meters;
  const bool has_median = m.median_seconds > 0;
  const double limit = !has_median ? options_.first_step_seconds
                                   : std::max({options_.least_stall_seconds,
                                               static_cast<double>(options_.stall_factor) * m.median_seconds,
                                               kPauses * m.longest_pause});
  if (sight.still <= limit) return std::nullopt;
  if (!has_median)
    return fmt::format("no step has ended for {:.0f} s; the session began after step {}", sight.still,
                       m.step);
  return fmt::format("no step has ended for {:.0f} s after step {}; the median of steps is {:.2f} s",
                     sight.still, m.step, m.median_seconds);
}

std::optional<std::string> AlertRules::disk_is_full(const Sight& sight) const {
  if (options_.disk_free <= 0 || sight.disk_free < 0) return std::nullopt;
  const double checkpoints = sight.meters ? kCheckpoints * sight.meters->last_save_bytes : 0;
  if (sight.disk_free >= std::max(options_.disk_free, checkpoints)) return std::nullopt;
  return fmt::format(
      "{:.1f} MiB are free on the disk of the run; {}", mib_of(sight.disk_free),
      sight.disk_free < options_.disk_free
          ? fmt::format("less than trainer.alert_disk_free, {:.1f} MiB", mib_of(options_.disk_free))
          : fmt::format("two checkpoints take {:.1f} MiB", mib_of(checkpoints)));
}

std::vector<Alert> AlertRules::look(const Sight& sight) {
  std::vector<Alert> out;
  const auto raise = [&](const char* name, const std::optional<std::string>& text, bool& active) {
    if (text && !active) out.push_back({name, *text});
    active = text.has_value();
  };
  raise("stalled", stalled(sight), stalled_);
  raise("disk_nearly_full", disk_is_full(sight), disk_);
  if (sight.lost_count > lost_)
    out.push_back(
        {"worker_lost", fmt::format("{} worker{} lost; the last: {}", sight.lost_count - lost_,
                                    sight.lost_count - lost_ == 1 ? " was" : "s were", sight.last_loss)});
  lost_ = sight.lost_count;
  const bool failed = sight.outcome.starts_with("failed");
  const bool not_finite = failed && sight.outcome.starts_with(kNotFinite);
  raise("not_finite",
        not_finite ? std::optional("a step gave a number that is not finite; the state before it is saved")
                   : std::nullopt,
        not_finite_);
  raise("failed", failed && !not_finite ? std::optional(sight.outcome) : std::nullopt, ended_);
  return out;
}

std::optional<bool> AlertRules::is_active(const std::string& name) const {
  if (name == "worker_lost") return std::nullopt;
  return (name == "stalled" && stalled_) || (name == "disk_nearly_full" && disk_) ||
         (name == "failed" && ended_) || (name == "not_finite" && not_finite_);
}

}  // namespace ostro::monitor
