#include "ostro/lab/drive/lab_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"

namespace ostro::lab {

const char* action_name(Action action) {
  constexpr const char* kNames[] = {"done", "run", "resume", "audit", "wait", "failed", "left"};
  return kNames[static_cast<size_t>(action)];
}

size_t LabState::done() const {
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const StepState& s) { return s.is_settled(); }));
}

bool LabState::is_done() const { return done() == steps.size(); }

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
