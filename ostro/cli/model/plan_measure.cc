#include "ostro/cli/model/plan_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "ostro/base/profile.h"
#include "ostro/train/step/step.h"

namespace ostro::cli {
namespace {

constexpr int kLeastRuns = 3, kMostRuns = 50;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLeastTime{1};

std::string key(const std::string& program, const std::string& place, const std::string& name) {
  return fmt::format("{} {} {}", program, place, name);
}

// Rows of one leaf: every token counts, the tokens go through the vocabulary.
train::BatchArrays made_up_batch(const train::CanonicalPrograms& programs, int64_t vocab) {
  train::BatchArrays batch;
  const ir::Block& body = programs.leaf.body;
  for (const size_t i : train::signatures_of(programs).leaf_params.batch) {
    runtime::Buffer b = runtime::Buffer::zeros(body.shape(body.params[i]));
    const bool segments = programs.leaf.param_names[i].find("segment") != std::string::npos;
    for (int64_t k = 0; k < b.shape().count() && !segments; ++k) {
      const auto at = static_cast<size_t>(k);
      if (b.shape().dtype == ir::DType::i32)
        b.mutable_as<int32_t>()[at] = static_cast<int32_t>(k * 7919 % vocab);
      else if (b.shape().dtype == ir::DType::f32)
        b.mutable_as<float>()[at] = 1;
    }
    batch.push_back(std::move(b));
  }
  return batch;
}

}  // namespace

runtime::Measured PlanTimes::of(const std::string& program) const {
  return {limits, [this, program](const std::string& place, const std::string& name) {
            const auto found = seconds.find(key(program, place, name));
            return found == seconds.end() ? -1.0 : found->second;
          }};
}

Result<PlanTimes> measure_plans(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                runtime::Inspector& inspector, const std::string& remat, int64_t vocab) {
  PlanTimes times;
  ASSIGN_OR_RETURN(times.limits, inspector.limits());
  ASSIGN_OR_RETURN(const auto runner, train::make_step_runner(programs, engine, remat));
  ASSIGN_OR_RETURN(train::State state, train::initial_state(programs, engine, 0));
  const train::BatchArrays batch = made_up_batch(programs, vocab);
  std::vector<float> still(train::signatures_of(programs).update_params.scalars.size(), 1.0f);
  still[0] = 0;  // the learning rate
  RETURN_IF_ERROR(runner->run(state, batch, still));
  if (!start_profile()) return busy("a profile is on in this process");
  Status failed;
  const Clock::time_point start = Clock::now();
  for (int i = 0; failed.ok() && i < kMostRuns; ++i) {
    if (i >= kLeastRuns && Clock::now() - start >= kLeastTime) break;
    if (auto result = runner->run(state, batch, still); !result.ok()) failed = result.error();
  }
  const std::vector<ProfileTrack> tracks = stop_profile();
  RETURN_IF_ERROR(failed);
  std::map<std::string, std::vector<int64_t>> runs;
  for (const ProfileTrack& track : tracks)
    for (const SpanRecord& span : track.spans) {
      const auto& details = span.label->details;
      if (span.part || details.size() < 2 || details[1].first != "plan_step") continue;
      runs[key(details[0].second, details[1].second, span.label->name)].push_back(span.end - span.begin);
    }
  for (auto& [where, ns] : runs) {
    std::nth_element(ns.begin(), ns.begin() + static_cast<int64_t>(ns.size() / 2), ns.end());
    times.seconds[where] = static_cast<double>(ns[ns.size() / 2]) * 1e-9;
  }
  return times;
}

}  // namespace ostro::cli
