// Sample: a sampled audit of a run, which replays steps that a challenge draws. What it costs and what it
// would find is known before the work.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/audit/verify.h"

namespace ostro::audit {

struct Sample {
  std::string challenge, head;  // head: the run hash
  int64_t steps = 0;            // of the chain
  int64_t before = 0;  // of a fork: the steps of the runs that it goes on with, of which none is drawn
  SamplePlan plan;
  Cost estimate;
  // The rest is there when the steps have been replayed.
  Cost spent;
  int64_t replayed = 0;  // steps; fewer than planned where one differed
  VerifyReport report;   // of all stretches together: entries, names, the difference
};

struct SampleRequest {
  int64_t count = 0;  // steps to draw; 0: no sampled audit
  std::string challenge;
  std::function<void(const Sample&)> on_priced;            // before the work
  std::function<void(int64_t done, int64_t all)> on_step;  // steps replayed, of those planned
};

// The steps after which the run has a state that the chain names, ascending: its beginning, and checkpoints
// that are there with their moments. The checkpoints' arrays are not read.
Result<std::vector<int64_t>> states_of(io::FileSystem& fs, const std::string& run_directory,
                                       const chain::Chain& chain);

// What an error of a replay shows. A beginning that was left out of the record is missing from it:
// incomplete.
Finding finding_of_replay(io::FileSystem& fs, const std::string& run_directory, const chain::Chain& chain,
                          const Error& error);

// Draws, plans and prices. `states` as states_of() gives them. Errors: of drawn_steps and Replay::estimate.
Result<Sample> price_sample(Replay& replay, const SampleRequest& request, const std::vector<int64_t>& states);
// The same for a run that nothing else is to be said of.
Result<Sample> price_sample(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                            const VerifyOptions& options, const SampleRequest& request,
                            const models::ModelChoices& models);
// Prices, replays, and stops at the first difference. The options' callbacks are not used.
Result<Sample> replay_sample(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                             VerifyOptions options, const SampleRequest& request,
                             const std::vector<int64_t>& states, const models::ModelChoices& models);

// For people. Before the work: what is drawn, what it costs, what it would find; ends with a newline.
std::string price_text(const Sample& sample);
// After it, in words without an end: "20 drawn steps and 67 before them replayed, ..."
std::string replayed_text(const Sample& sample);
// What was and what was not shown, in lines.
std::string shown_text(const Sample& sample);
// One JSON object.
std::string sample_json(const Sample& sample);

// "41 s of CPU time (0.0114 CPU-hours), 21 s on this machine".
std::string cost_text(const Cost& cost);

// The folder of the record in a published bundle (it has bundle.json), else `path` itself.
Result<std::string> record_folder(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::audit
