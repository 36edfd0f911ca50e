#include "ostro/audit/sampled.h"

#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/audit/record/initial.h"
#include "ostro/audit/sample/draw.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/io/files/path.h"

namespace ostro::audit {
namespace {

// The report of all stretches so far, and that of one more.
void join(VerifyReport& all, VerifyReport&& one) {
  all.equal = one.equal;
  all.start_step = one.start_step;
  all.last_step = one.last_step;
  all.entries += one.entries;
  all.different_step = one.different_step;
  all.what = std::move(one.what);
  all.recorded = std::move(one.recorded);
  all.replayed = std::move(one.replayed);
  all.unproven = std::move(one.unproven);
  all.names.merge(one.names);
}

}  // namespace

Result<std::vector<int64_t>> states_of(io::FileSystem& fs, const std::string& directory,
                                       const chain::Chain& chain) {
  std::vector<int64_t> states = {chain::entry_step(chain.links.front().entry)};
  ASSIGN_OR_RETURN(const auto entries, checkpoint::list_checkpoints(
                                           fs, io::join_path(directory, checkpoint::kCheckpointsFolder)));
  for (const auto& entry : entries)
    if (entry.step > states.back() && chain.find_checkpoint(entry.step) != nullptr) {
      const auto opened = checkpoint::Checkpoint::open(fs, entry.path);
      if (!opened.ok() || !lacks_moments(fs, *opened)) states.push_back(entry.step);
    }
  return states;
}

Finding finding_of_replay(io::FileSystem& fs, const std::string& directory, const chain::Chain& chain,
                          const Error& error) {
  const Status beginning = check_initial(fs, directory, chain.genesis());
  if (beginning.ok() || beginning.error().message() != error.message()) return finding_of(error);
  return {error.code() == ErrorCode::kNotFound ? Verdict::kIncomplete : finding_of(error).verdict,
          error.message()};
}

Result<Sample> price_sample(Replay& replay, const SampleRequest& request,
                            const std::vector<int64_t>& states) {
  const chain::Chain& chain = replay.run().chain;
  Sample sample;
  sample.challenge = request.challenge;
  sample.head = chain.head();
  sample.steps = chain.last_step() - states.front();
  sample.before = states.front();
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> drawn,
      drawn_steps(sample.head, request.challenge, states.front() + 1, chain.last_step(), request.count));
  sample.plan = plan_sample(states, drawn, request.also);
  ASSIGN_OR_RETURN(sample.estimate, replay.estimate(sample.plan));
  return sample;
}

Result<Sample> price_sample(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                            const VerifyOptions& options, const SampleRequest& request,
                            const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(const auto replay, Replay::open(fs, engine, directory, options, models));
  ASSIGN_OR_RETURN(const auto states, states_of(fs, directory, replay->run().chain));
  return price_sample(*replay, request, states);
}

Result<Sample> replay_sample(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                             VerifyOptions options, const SampleRequest& request,
                             const std::vector<int64_t>& states, const models::ModelChoices& models) {
  int64_t before = 0, all = 0;
  options.on_begin = {};
  options.on_step = [&](int64_t step, int64_t first, int64_t) {
    if (request.on_step) request.on_step(before + step - first + 1, all);
  };
  ASSIGN_OR_RETURN(const auto replay, Replay::open(fs, engine, directory, options, models));
  ASSIGN_OR_RETURN(Sample sample, price_sample(*replay, request, states));
  all = sample.plan.steps();
  if (request.on_priced) request.on_priced(sample);
  const CostMeter meter;
  for (const Stretch& stretch : sample.plan.stretches) {
    ASSIGN_OR_RETURN(VerifyReport report, replay->stretch(stretch.from, stretch.to));
    before = sample.replayed += report.last_step - report.start_step;
    join(sample.report, std::move(report));
    if (!sample.report.equal) break;
  }
  sample.spent = meter.spent();
  return sample;
}

Result<std::string> record_folder(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const bool is_bundle, fs.exists(io::join_path(path, "bundle.json")));
  return is_bundle ? io::join_path(path, "record") : path;
}

}  // namespace ostro::audit
