#include "ostro/base/watch/slow_leaf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>

#include "ostro/base/check.h"
#include "ostro/base/watch/pulse.h"

namespace ostro {
namespace {

using Seconds = std::chrono::duration<double>;

struct Slowness {
  int64_t rank = 0, step = 1;
  double factor = 1;
  std::optional<Seconds> lasts;
};

// Takes a number off the front of the text.
template <typename T>
bool take_number(std::string_view& text, T& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || !(value >= 0)) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<Slowness> parse_slowness(std::string_view entry) {
  Slowness out;
  if (!take_number(entry, out.rank) || !take(entry, ":")) return std::nullopt;
  if (take(entry, "x")) {
    if (!take_number(entry, out.factor) || !(out.factor >= 1 && out.factor <= 1e6)) return std::nullopt;
  } else {
    int64_t milliseconds = 0;
    if (!take_number(entry, milliseconds) || milliseconds < 1 || !take(entry, "ms")) return std::nullopt;
    out.lasts = std::chrono::milliseconds(milliseconds);
  }
  if (take(entry, "@") && !take_number(entry, out.step)) return std::nullopt;
  return entry.empty() ? std::optional(out) : std::nullopt;
}

const char* set_value() {
  const char* value = std::getenv("OSTRO_SIM_SLOW");
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// What the variable says of this worker in this step.
std::optional<Slowness> slowness_of(int64_t step, int64_t rank) {
  std::optional<Slowness> out;
  const char* value = set_value();
  for (std::string_view rest = value != nullptr ? value : ""; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<Slowness> entry = parse_slowness(rest.substr(0, comma));
    OSTRO_CHECK(entry.has_value(),
                "OSTRO_SIM_SLOW: \"{}\" is not RANK:HOW[@STEP], with HOW of base/watch/slow_leaf.h",
                rest.substr(0, comma));
    if (entry->rank == rank && entry->step <= step && (!out || entry->step >= out->step)) out = entry;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

}  // namespace

bool leaves_are_slow() { return set_value() != nullptr; }

double slow_leaf(int64_t step, int64_t rank, Seconds took) {
  const std::optional<Slowness> slow = slowness_of(step, rank);
  if (!slow) return took.count();
  const auto begin = std::chrono::steady_clock::now();
  pulse_beat();
  std::this_thread::sleep_for(slow->lasts ? *slow->lasts - took : took * (slow->factor - 1));
  pulse_beat();
  if (slow->lasts) return slow->lasts->count();
  return (took + Seconds(std::chrono::steady_clock::now() - begin)).count();
}

}  // namespace ostro
