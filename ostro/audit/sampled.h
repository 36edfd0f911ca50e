// Sample: a sampled audit of a run, which replays steps that a challenge draws. Its cost, and its chance to
// find false steps, are known before the work. One thread per engine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/audit/verify.h"

namespace ostro::audit {

struct Sample {
  std::string challenge, head;  // head: the run hash
  int64_t steps = 0;            // the steps of the chain, from which it draws
  int64_t before = 0;           // steps done before the chain's first one: for a fork, those of its parent
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
  std::vector<int64_t> also = {};  // steps of the chain that are replayed whether they are drawn or not
  std::function<void(const Sample&)> on_priced;            // before the work
  std::function<void(int64_t done, int64_t all)> on_step;  // steps replayed, of those planned
};

// Returns the numbers of steps, ascending, after which the run has a state that the chain names: its
// beginning, and the checkpoints that are there with their moments. Reads no arrays.
Result<std::vector<int64_t>> states_of(io::FileSystem& fs, const std::string& run_directory,
                                       const chain::Chain& chain);

// Returns the finding that an error of a replay stands for: that of finding_of(), or kIncomplete when the
// state that the replay begins with was left out of the record.
Finding finding_of_replay(io::FileSystem& fs, const std::string& run_directory, const chain::Chain& chain,
                          const Error& error);

// Draws the steps, plans the replay and estimates its cost. `states` are those of states_of(). Errors: those
// of drawn_steps and Replay::estimate.
Result<Sample> price_sample(Replay& replay, const SampleRequest& request, const std::vector<int64_t>& states);
// The same for the run in a directory, which it opens. Errors: also those of Replay::open and states_of.
Result<Sample> price_sample(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                            const VerifyOptions& options, const SampleRequest& request,
                            const models::ModelChoices& models);
// Does what price_sample does, then replays the stretches until a step differs. The callbacks of `request`
// are called, on_begin and on_step of `options` are not. Errors: also those of Replay::stretch.
Result<Sample> replay_sample(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                             VerifyOptions options, const SampleRequest& request,
                             const std::vector<int64_t>& states, const models::ModelChoices& models);

// The text for people before the work: the steps that are drawn, the cost, and the chance to find false
// steps. Ends with a newline.
std::string price_text(const Sample& sample);
// The beginning of a sentence about the finished work: "20 drawn steps and 67 before them replayed, ..."
std::string replayed_text(const Sample& sample);
// Lines that say what the audit has shown and what it has not.
std::string shown_text(const Sample& sample);
// One JSON object.
std::string sample_json(const Sample& sample);

// "41 s of CPU time (0.0114 CPU-hours), 21 s on this machine".
std::string cost_text(const Cost& cost);

// Returns the folder of the record when `path` is a published bundle (it has bundle.json), else `path`.
Result<std::string> record_folder(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::audit
