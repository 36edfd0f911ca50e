// The forms of a Sample.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "ostro/audit/sample/draw.h"
#include "ostro/audit/sampled.h"
#include "ostro/chain/clock_text.h"

namespace ostro::audit {
namespace {

std::string seconds_text(double seconds) {
  constexpr double kLong = 100;
  return seconds < kLong ? fmt::format("{:.3g} s", seconds) : chain::duration_text(seconds);
}

// "3, 17, 22"; of many the first.
std::string list_text(std::span<const int64_t> numbers) {
  constexpr size_t kMany = 24;
  const auto shown = numbers.subspan(0, std::min(numbers.size(), kMany));
  return fmt::format("{}{}", fmt::join(shown, ", "), shown.size() < numbers.size() ? ", ..." : "");
}

// The chance to find a run with `count` false steps. Rounded down; what f64 lacks of 2.50 % counts as 2.50 %,
// but nothing is certain that is not.
std::string chance_text(const Sample& s, int64_t count) {
  const auto drawn = static_cast<int64_t>(s.plan.drawn.size());
  const double shown = std::floor(chance_to_find(s.steps, count, drawn) * 10000 + 1e-9);
  const bool is_certain = drawn + count > s.steps;
  return fmt::format("{:.2f} %", (is_certain ? shown : std::min(shown, 9999.0)) / 100);
}

std::string count_text(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string before_text(const Sample& s) {
  if (s.before == 0) return "";
  return fmt::format(
      "not shown: steps 1 to {}, which are of the run that this fork goes on with; check that run, too\n",
      s.before);
}

}  // namespace

std::string cost_text(const Cost& cost) {
  return fmt::format("{} of CPU time ({:.3g} CPU-hours), {} on this machine", seconds_text(cost.cpu),
                     cost.cpu / 3600, seconds_text(cost.time));
}

std::string price_text(const Sample& s) {
  std::vector<int64_t> begins;
  for (const Stretch& stretch : s.plan.stretches) begins.push_back(stretch.from);
  std::string out =
      fmt::format("drawn: {} of {}, by the challenge \"{}\" and the run hash {}: {}\n", s.plan.drawn.size(),
                  count_text(s.steps, "step"), s.challenge, s.head, list_text(s.plan.drawn));
  out += fmt::format("to be replayed: {} in all, from the states after step {}\n",
                     count_text(s.plan.steps(), "step"), list_text(begins));
  out += fmt::format(
      "cost: about {}, measured on parts of these steps; beside it all checkpoints and the token store are "
      "read and hashed\n",
      cost_text(s.estimate));
  out += before_text(s);
  out +=
      "chance, at least, to find a run with so many false steps; those that are replayed before a drawn step "
      "add to it:\n";
  for (const int64_t part : kThousandths) {
    const int64_t count = false_steps_of(s.steps, part);
    out += fmt::format("  {:>4} % ({}): {}\n", static_cast<double>(part) / 10, count_text(count, "step"),
                       chance_text(s, count));
  }
  return out;
}

std::string replayed_text(const Sample& s) {
  const auto drawn = static_cast<int64_t>(s.plan.drawn.size());
  std::string out = fmt::format(
      "{} replayed, {} chain entries compared",
      s.replayed == drawn
          ? count_text(drawn, "drawn step")
          : fmt::format("{} and {} before them", count_text(drawn, "drawn step"), s.replayed - drawn),
      s.report.entries);
  if (s.replayed < s.steps)
    out += fmt::format("; {} of {} steps were not replayed", s.steps - s.replayed, s.steps);
  return out;
}

std::string shown_text(const Sample& s) {
  std::string out =
      fmt::format("drawn by the challenge \"{}\": {}\ncost: {}; about {} of CPU time was estimated\n",
                  s.challenge, list_text(s.plan.drawn), cost_text(s.spent), seconds_text(s.estimate.cpu));
  if (!s.report.equal) return out;
  out +=
      "shown: batch, loss, leaves and state of these steps, and the checkpoints at them, follow from the "
      "checkpoint before them, the programs, the configuration and the data\n";
  out += before_text(s);
  if (s.replayed == s.steps) return out;
  out +=
      "not shown: the other steps. So many false ones among all would have been found with at least this "
      "chance:";
  for (const int64_t part : kThousandths) {
    const int64_t count = false_steps_of(s.steps, part);
    out += fmt::format("{} {} {}", part == kThousandths[0] ? "" : ",", count, chance_text(s, count));
  }
  return out + "\n";
}

std::string sample_json(const Sample& s) {
  nlohmann::ordered_json j = {{"challenge", s.challenge},
                              {"run_hash", s.head},
                              {"steps", s.steps},
                              {"before", s.before},
                              {"drawn", s.plan.drawn}};
  j["stretches"] = nlohmann::ordered_json::array();
  for (const Stretch& stretch : s.plan.stretches) j["stretches"].push_back({stretch.from, stretch.to});
  j["to_be_replayed"] = s.plan.steps();
  j["estimated_cpu_seconds"] = s.estimate.cpu;
  j["estimated_seconds"] = s.estimate.time;
  j["chances"] = nlohmann::ordered_json::array();
  for (const int64_t part : kThousandths) {
    const int64_t count = false_steps_of(s.steps, part);
    j["chances"].push_back(
        {{"fraction", static_cast<double>(part) / 1000},
         {"false_steps", count},
         {"chance", chance_to_find(s.steps, count, static_cast<int64_t>(s.plan.drawn.size()))}});
  }
  if (s.replayed > 0) {
    j["replayed"] = s.replayed;
    j["entries"] = s.report.entries;
    j["cpu_seconds"] = s.spent.cpu;
    j["seconds"] = s.spent.time;
  }
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ostro::audit
