#include "ostro/audit/record/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/record/traced_programs.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/origin.h"
#include "ostro/checkpoint/tensor.h"
#include "ostro/io/files/path.h"
#include "ostro/models/foreign_model.h"
#include "ostro/train/programs/run_flops.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::audit {
namespace {

// A program.ir is larger than the model's code makes it only by its names; it comes from outside.
constexpr int64_t kMaxProgramBytes = int64_t{1} << 30;

// The programs in the file, which must be those of the chain.
Result<train::CanonicalPrograms> read_programs(io::FileSystem& fs, const std::string& path,
                                               const std::string& hash) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMaxProgramBytes));
  auto programs = train::parse_programs(text);
  if (!programs.ok()) return program_file_error(path, programs.error());
  if (train::programs_hash(*programs) != hash)
    return corrupt(fmt::format("{} is not the program of the chain ({} there, {} here)", path, hash,
                               train::programs_hash(*programs)));
  return programs;
}

// The programs of a period: those of its configuration, which must be the chain's and those of the file.
Result<train::CanonicalPrograms> programs_of(io::FileSystem& fs, const std::string& path,
                                             const Period& period, const train::TrainConfig& config,
                                             const std::optional<chain::RunRecord>& record,
                                             bool stored_programs, RecordedRun& run) {
  ASSIGN_OR_RETURN(train::CanonicalPrograms stored, read_programs(fs, path, period.program_hash));
  // A stand-in for the model has no functions to trace: its caller checks the programs alone.
  if (dynamic_cast<const models::ForeignModel*>(&config.model_options()) != nullptr) return stored;
  ASSIGN_OR_RETURN(train::CanonicalPrograms traced, traced_programs(config, run.tokenizer->vocab_size()));
  const Status its_own = check_traced(traced, period, record);
  if (its_own.ok()) {
    // Names are in no hash, but checkpoints and exports have them.
    if (const Status names = check_same_arrays(stored, traced, path); !names.ok())
      return corrupt(names.error().message() + " from the configuration");
    return traced;
  }
  if (!stored_programs || its_own.error().code() != ErrorCode::kUnsupported) return its_own.error();
  RETURN_IF_ERROR(check_same_arrays(stored, traced, path));
  run.unproven = its_own.error().message();
  return stored;
}

Status add_period(io::FileSystem& fs, const std::string& directory, const Period& period, int64_t end,
                  const std::optional<chain::RunRecord>& record, bool stored_programs, RecordedRun& run) {
  const bool is_first = run.periods.empty();
  const auto in_place = [&](const Error& e) {
    return e.with_context(
        fmt::format("{}/{}: {}", directory, chain::kChainFile,
                    is_first ? "the genesis" : fmt::format("the amend after step {}", period.first)));
  };
  const auto wrong = [&](const Error& e) { return in_place(corrupt(e.message())); };
  auto config = config_of_period(run.config, period.config);
  if (!config.ok()) return wrong(config.error());
  const Status allowed = is_first ? config->check_leaf_examples(period.first)
                                  : check_amend(run.periods.back().config, *config, period.first);
  if (!allowed.ok()) return wrong(allowed.error());
  const std::string& options = run.chain.genesis().numerics_options;
  if (is_first && options != train::numerics_options(*config))
    return wrong(corrupt(fmt::format("numerics_options are {}, but a run with trainer.mp {} has {}", options,
                                     config->trainer.mp, train::numerics_options(*config))));
  if (const int64_t length = config->trainer.num_train_steps; end > length)
    return wrong(corrupt(fmt::format("trainer.num_train_steps is {}, but {} steps are done", length, end)));
  const std::string path = io::join_path(directory, program_file(run.chain.genesis(), period.program_hash));
  auto programs = programs_of(fs, path, period, *config, record, stored_programs, run);
  if (!programs.ok()) return programs.error();
  // Names and shapes become paths and sizes: what no checkpoint could hold is not run.
  RETURN_IF_ERROR(checkpoint::validate(
      train::state_tensors(train::state_arrays(*programs), train::cell_boxes(*config)), path));
  train::ParameterList model = train::signatures_of(*programs).model;
  run.periods.push_back({period, std::move(*config), std::move(*programs)});
  if (is_first)
    run.paths = std::move(model.paths), run.shapes = std::move(model.shapes);
  else if (run.paths != model.paths || run.shapes != model.shapes)
    return wrong(corrupt("its program has other parameters"));
  return {};
}

}  // namespace

Error program_file_error(const std::string& path, const Error& error) {
  const bool is_unknown = error.code() == ErrorCode::kUnsupported;
  return Error(is_unknown ? ErrorCode::kUnsupported : ErrorCode::kCorrupt,
               fmt::format("{}: {}", path, error.message()));
}

const OpenedPeriod& RecordedRun::period_after(int64_t step) const {
  size_t i = periods.size() - 1;
  while (i > 0 && periods[i].period.first > step) --i;
  return periods[i];
}

Result<RecordedRun> open_recorded(io::FileSystem& fs, const std::string& directory,
                                  models::ModelChoices models, bool stored_programs) {
  const std::string config_path = chain::config_file(fs, directory),
                    chain_path = io::join_path(directory, chain::kChainFile);
  RecordedRun run;
  ASSIGN_OR_RETURN(run.chain, chain::read_chain(fs, chain_path));
  const chain::GenesisEntry& genesis = run.chain.genesis();
  RETURN_IF_ERROR(chain::check_computable(genesis, directory));
  ASSIGN_OR_RETURN(const std::string yaml, fs.read_file(config_path));
  ASSIGN_OR_RETURN(run.config, train::parse_train_config(yaml, config_path, std::move(models)));
  ASSIGN_OR_RETURN(const std::vector<Period> periods, periods_of(run.config, run.chain, chain_path));
  // A process that died behind the chain's last amend may have left the config before it: programs before
  // kAmendedConfigFile did.
  const std::string written = train::canonical_text(run.config);
  if (std::none_of(periods.begin(), periods.end(), [&](const Period& p) { return p.config == written; }))
    return corrupt(fmt::format("{} is not the config of the chain: {}", config_path,
                               fmt::join(chain::object_differences(periods.back().config, written), "; ")));
  ASSIGN_OR_RETURN(run.tokenizer, train::open_run_tokenizer(fs, directory, run.config, genesis));
  std::optional<chain::RunRecord> record;
  if (auto read = chain::read_record(fs, io::join_path(directory, chain::kRecordFile)); read.ok())
    record = std::move(*read);
  for (size_t k = 0; k < periods.size(); ++k)
    RETURN_IF_ERROR(add_period(fs, directory, periods[k],
                               k + 1 < periods.size() ? periods[k + 1].first : run.chain.last_step(), record,
                               stored_programs, run));
  if (genesis.origin && run.config.trainer.initialize_from)
    RETURN_IF_ERROR(chain::check_origin(fs, *genesis.origin, *run.config.trainer.initialize_from));
  return run;
}

double recorded_flops(const RecordedRun& run) {
  double flops = 0;
  for (size_t k = 0; k < run.periods.size(); ++k) {
    const OpenedPeriod& period = run.periods[k];
    const int64_t end = k + 1 < run.periods.size() ? run.periods[k + 1].period.first : run.chain.last_step();
    flops += train::run_flops(period.programs, period.config, end) -
             train::run_flops(period.programs, period.config, period.period.first);
  }
  return flops;
}

}  // namespace ostro::audit
