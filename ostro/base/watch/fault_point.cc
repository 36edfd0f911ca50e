#include "ostro/base/watch/fault_point.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/base/watch/pulse.h"

namespace ostro {
namespace {

constexpr std::string_view kPhases[] = {"leaf",   "exchange", "overlap",    "update", "renew",   "commit",
                                        "gather", "transfer", "checkpoint", "write",  "barrier", "connect"};
// Of silent faults.
constexpr std::string_view kSilentPhases[] = {"gradient", "received", "cell"};

bool known_phase(std::string_view phase) {
  return std::find(std::begin(kPhases), std::end(kPhases), phase) != std::end(kPhases);
}
bool silent_phase(std::string_view phase) {
  return std::find(std::begin(kSilentPhases), std::end(kSilentPhases), phase) != std::end(kSilentPhases);
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

enum class Action { kKill, kStop, kExit, kDelay, kGate, kFlip };

struct Fault {
  std::string text, phase;
  std::optional<int64_t> step, rank;  // none: any
  Action action = Action::kKill;
  int64_t value = 0;  // exit status, milliseconds, bit
  std::string file;   // of a gate
  std::atomic<bool> happened{false};

  bool is_at(std::string_view where, int64_t number, int64_t who) const {
    return phase == where && step.value_or(number) == number && rank.value_or(who) == who;
  }

  // Reads "PHASE:STEP:RANK:ACTION". Returns false if the text is no such entry.
  bool parse(std::string_view entry) {
    text = entry;
    std::string_view fields[4];
    for (int i = 0; i < 4; ++i) {
      const size_t colon = entry.find(':');
      if ((colon == std::string_view::npos) != (i == 3)) return false;
      fields[i] = entry.substr(0, colon);
      if (i < 3) entry.remove_prefix(colon + 1);
    }
    phase = fields[0];
    step = whole_number(fields[1]), rank = whole_number(fields[2]);
    const size_t equals = fields[3].find('=');
    const std::string_view name = fields[3].substr(0, equals);
    const bool has_value = equals != std::string_view::npos;
    const auto given = has_value ? whole_number(fields[3].substr(equals + 1)) : std::nullopt;
    if (name == "kill") action = Action::kKill;
    if (name == "stop") action = Action::kStop;
    if (name == "exit") action = Action::kExit;
    if (name == "delay") action = Action::kDelay;
    if (name == "gate") action = Action::kGate;
    if (name == "flip") action = Action::kFlip;
    if (name == "gate" && has_value) file = fields[3].substr(equals + 1);
    value = given.value_or(name == "flip" ? 0 : 1);
    const bool right = (name == "kill" || name == "stop") ? !has_value
                       : name == "exit"                   ? !has_value || (given && *given < 256)
                       : name == "delay"                  ? given.has_value()
                       : name == "gate"                   ? !file.empty()
                       : name == "flip"                   ? !has_value || given.has_value()
                                                          : false;
    const bool fits = action == Action::kFlip ? silent_phase(phase) : known_phase(phase);
    return right && fits && (step || fields[1] == "*") && (rank || fields[2] == "*");
  }
};

struct Faults {
  std::deque<Fault> entries;
  std::string once;  // OSTRO_FAULT_ONCE

  Faults() {
    const char* text = std::getenv("OSTRO_FAULT");
    if (text == nullptr || *text == '\0') return;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      OSTRO_CHECK(entries.emplace_back().parse(rest.substr(0, comma)),
                  "OSTRO_FAULT: \"{}\" is not PHASE:STEP:RANK:ACTION, with phases and actions of "
                  "base/watch/fault_point.h",
                  rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    if (const char* directory = std::getenv("OSTRO_FAULT_ONCE")) once = directory;
  }

  // Returns whether this entry has not happened yet, and marks it: in the process by a flag, among all
  // processes of OSTRO_FAULT_ONCE by a file that only one of them can create.
  bool first(size_t index) {
    if (entries[index].happened.exchange(true)) return false;
    if (once.empty()) return true;
    const std::string path = fmt::format("{}/{}.{}", once, index, entries[index].text);
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_CLOEXEC | O_WRONLY, 0666);
    OSTRO_CHECK(file >= 0 || errno == EEXIST, "OSTRO_FAULT_ONCE: cannot make {}: {}", path,
                std::strerror(errno));
    if (file >= 0) ::close(file);
    return file >= 0;
  }
};

Faults& armed_faults() {
  static Faults faults;
  return faults;
}

void act(const Fault& fault) {
  log_warning(fmt::format("fault {} in process {}", fault.text, ::getpid()));
  switch (fault.action) {
    case Action::kKill:
      ::kill(::getpid(), SIGKILL);
      while (true) ::pause();  // the signal may arrive a moment later; nothing may run after it
    case Action::kStop: ::kill(::getpid(), SIGSTOP); return;
    case Action::kExit: ::_exit(static_cast<int>(fault.value));
    case Action::kDelay: std::this_thread::sleep_for(std::chrono::milliseconds(fault.value)); return;
    case Action::kGate:          // wait_at_gate()
    case Action::kFlip: return;  // fault_bytes()
  }
}

int64_t step_of_gate(const std::string& path) {
  char text[32] = {};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t count = ::read(file, text, sizeof text);
  ::close(file);
  int64_t number = 0;
  if (count > 0) (void)std::from_chars(text, text + count, number);
  return number;
}

void wait_at_gate(const Fault& fault, const char* phase, int64_t step) {
  constexpr std::chrono::milliseconds kLook{20};
  while (step_of_gate(fault.file) < step) {
    pulse_phase(phase, step);
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

void fault_point(const char* phase, int64_t step, int64_t rank) {
  pulse_phase(phase, step);
  fault_aside(phase, step, rank);
}

void fault_aside(const char* phase, int64_t step, int64_t rank) {
  Faults& faults = armed_faults();
  if (faults.entries.empty()) [[likely]]
    return;
  OSTRO_CHECK(known_phase(phase), "fault_point(\"{}\") is no phase of base/watch/fault_point.h", phase);
  for (size_t i = 0; i < faults.entries.size(); ++i) {
    const Fault& fault = faults.entries[i];
    if (!fault.is_at(phase, step, rank)) continue;
    if (fault.action == Action::kGate)
      wait_at_gate(fault, phase, step);
    else if (faults.first(i))
      act(fault);
  }
}

bool silent_faults_armed() { return !armed_faults().entries.empty(); }

bool fault_bytes(const char* phase, int64_t step, int64_t rank, std::span<std::byte> bytes) {
  Faults& faults = armed_faults();
  if (faults.entries.empty() || bytes.empty()) [[likely]]
    return false;
  OSTRO_CHECK(silent_phase(phase), "fault_bytes(\"{}\") is no silent phase of base/watch/fault_point.h",
              phase);
  bool flipped = false;
  for (size_t i = 0; i < faults.entries.size(); ++i) {
    const Fault& fault = faults.entries[i];
    if (!fault.is_at(phase, step, rank) || !faults.first(i)) continue;
    log_warning(fmt::format("fault {} in process {}", fault.text, ::getpid()));
    const uint64_t bit = static_cast<uint64_t>(fault.value) % (bytes.size() * 8);
    bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    flipped = true;
  }
  return flipped;
}

}  // namespace ostro
