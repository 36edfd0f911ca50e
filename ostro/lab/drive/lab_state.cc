#include "ostro/lab/drive/lab_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"

namespace ostro::lab {

const char* action_name(Action action) {
  constexpr const char* kNames[] = {"done", "run", "resume", "audit", "wait", "failed", "left"};
  return kNames[static_cast<size_t>(action)];
}

size_t LabState::done() const {
  return static_cast<size_t>(std::count_if(steps.begin(), steps.end(),
                                           [](const StepState& s) { return s.action == Action::kSkip; }));
}

size_t LabState::left_out() const {
  return static_cast<size_t>(std::count_if(steps.begin(), steps.end(),
                                           [](const StepState& s) { return s.action == Action::kLeft; }));
}

bool LabState::is_done() const { return done() + left_out() == steps.size(); }

std::string LabState::done_text(const char* verb) const {
  return fmt::format("{} of {} steps {}done{}", done(), steps.size(), verb,
                     left_out() == 0 ? "" : fmt::format(", {} left out", left_out()));
}

std::string LabState::hash() const {
  auto json = nlohmann::json::object();
  for (const StepState& state : steps) json[state.step->name] = {state.fingerprint, state.content};
  return sha256_hex(json.dump());
}

const StepState* LabState::find(const std::string& step) const {
  for (const StepState& state : steps)
    if (state.step->name == step) return &state;
  return nullptr;
}

std::string short_hash(const std::string& hash) { return hash.substr(0, 12); }

}  // namespace ostro::lab
