#include "ostro/train/verify.h"

#include <fmt/format.h>

#include "ostro/checkpoint/catalog.h"
#include "ostro/train/batches.h"
#include "ostro/train/canonical.h"
#include "ostro/train/chain.h"
#include "ostro/train/fingerprints.h"
#include "ostro/train/run_data.h"
#include "ostro/train/snapshot.h"
#include "ostro/train/version.h"
#include "ostro/train/workers.h"

namespace ostro::train {
namespace {

struct Opened {
  TrainConfig config;
  Chain chain;
  CanonicalPrograms programs;
  std::vector<std::string> paths;
  std::vector<ir::Shape> shapes;
  DataAccess data;
};

Result<Opened> open_run(io::FileSystem& fs, const std::string& directory, const std::string& cache,
                        ModelChoices models) {
  ASSIGN_OR_RETURN(TrainConfig config, load_train_config(directory + "/config.yaml", {}, std::move(models)));
  ASSIGN_OR_RETURN(Chain chain, read_chain(fs, directory + "/" + kChainFile));
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(directory + "/program.ir"));
  auto programs = parse_programs(text);
  if (!programs.ok()) return programs.error().with_context(directory + "/program.ir");
  Opened out{std::move(config), std::move(chain), std::move(programs).value(), {}, {}, {}};
  const GenesisEntry& g = out.chain.genesis();
  if (g.numerics_version != kNumericsVersion)
    return unsupported(fmt::format("{}: numerics version {}; this program replays version {}", directory,
                                   g.numerics_version, kNumericsVersion));
  if (programs_hash(out.programs) != g.program_hash)
    return corrupt(fmt::format("{}/program.ir is not the program of the chain's genesis ({} there, {} here)",
                               directory, g.program_hash, programs_hash(out.programs)));
  ASSIGN_OR_RETURN(const std::string canonical, canonical_object(config::canonical_config(out.config)));
  if (canonical != g.config)
    return corrupt(fmt::format("{}/config.yaml is not the config of the chain's genesis", directory));
  const ir::Program& init = out.programs.init;
  out.paths = init.result_names;
  for (ir::ValueId v : init.body.results) out.shapes.push_back(init.body.shape(v));
  ASSIGN_OR_RETURN(out.data, open_run_data(fs, directory, out.config, g, cache));
  return out;
}

// The newest checkpoint at or before `step` that can be read and whose name is the chain's, else the initial
// state.
Result<State> state_before(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                           const Opened& run, int64_t step) {
  ASSIGN_OR_RETURN(const auto entries, checkpoint::list_checkpoints(fs, directory + "/checkpoints"));
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->step > step) continue;
    const std::string* name = run.chain.find_checkpoint(entry->step);
    if (name == nullptr) continue;  // a temporary checkpoint vouches for nothing
    ASSIGN_OR_RETURN(RestoredState restored, load_state(fs, entry->path, run.paths, run.shapes, false));
    if (restored.name != *name)
      return corrupt(fmt::format("{}: its state is {}, the chain's checkpoint of step {} is {}", entry->path,
                                 restored.name, entry->step, *name));
    return std::move(restored.state);
  }
  return initial_state(run.programs, engine, run.config.trainer.seed);
}

// Sets what differs between the recorded and the replayed entry of a step.
bool compare(const StepEntry& recorded, const StepEntry& replayed, VerifyReport* report) {
  auto differs = [&](const char* what, std::string a, std::string b) {
    if (a == b) return false;
    report->what = what;
    report->recorded = std::move(a);
    report->replayed = std::move(b);
    report->different_step = recorded.step;
    return true;
  };
  return !(differs("batch", recorded.batch, replayed.batch) ||
           differs("tokens", fmt::format("{}", recorded.tokens), fmt::format("{}", replayed.tokens)) ||
           differs("loss", hex_float(recorded.loss), hex_float(replayed.loss)) ||
           differs("leaves", recorded.leaves, replayed.leaves) ||
           differs("state", recorded.state, replayed.state));
}

}  // namespace

Result<VerifyReport> verify_run(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                                const VerifyOptions& options, ModelChoices models) {
  ASSIGN_OR_RETURN(const Opened run, open_run(fs, directory, options.cache, std::move(models)));
  const int64_t last = options.to_step.value_or(run.chain.last_step());
  if (options.from_step < 0 || options.from_step > last || last > run.chain.last_step())
    return invalid_argument(fmt::format("steps {} to {}: the chain of {} has steps 1 to {}",
                                        options.from_step, last, directory, run.chain.last_step()));
  ASSIGN_OR_RETURN(State state, state_before(fs, engine, directory, run, options.from_step));
  ASSIGN_OR_RETURN(const data::Loader loader, make_loader(run.config, run.data.stores));
  ASSIGN_OR_RETURN(const auto runner,
                   make_runner(run.programs, engine, "none", options.workers, run.config.numerics.cells));
  const auto& adam = std::get<optim::AdamOptions>(run.config.optimizer);
  const optim::Boxes boxes = cell_boxes(run.config);

  VerifyReport report;
  report.start_step = state.step;
  report.last_step = state.step;
  const int64_t first = state.step + 1;
  while (state.step < last) {
    const int64_t step = state.step + 1;
    ASSIGN_OR_RETURN(const data::Batch batch, loader.batch(state.step));
    ASSIGN_OR_RETURN(const StepResult result,
                     runner->run(state, to_arrays(batch),
                                 optim::adam_scalars(adam, state.step, run.config.trainer.num_train_steps)));
    const ChainLink* link = run.chain.find_step(step);
    if (link == nullptr) return corrupt(fmt::format("the chain has no entry for step {}", step));
    report.last_step = step;
    ++report.entries;
    if (!result.ok) {
      report.different_step = step;
      report.what = "loss";
      report.recorded = "finite";
      report.replayed = "not finite";
      return report;
    }
    if (!compare(std::get<StepEntry>(link->entry),
                 step_entry(step, result, data::batch_fingerprint(batch), run.paths, run.shapes), &report))
      return report;
    if (const std::string* name = run.chain.find_checkpoint(step)) {
      ++report.entries;
      const auto tensors = snapshot(state, run.paths, boxes);
      const std::string replayed = checkpoint::state_name(tensors, 2);
      if (replayed != *name) {
        report.different_step = step;
        report.what = "checkpoint";
        report.recorded = *name;
        report.replayed = replayed;
        return report;
      }
    }
    if (options.on_step) options.on_step(step, first, last);
  }
  report.equal = true;
  return report;
}

}  // namespace ostro::train
