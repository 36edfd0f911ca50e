#include "ostro/run/loop/begin.h"

#include <fmt/format.h>

#include <utility>

#include "ostro/audit/record/initial.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/data/formats/shared_chat_template.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/lineage/maker.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/step/fingerprints.h"

namespace ostro::run {
namespace {

Status begin_state(const OpenedRun& run, const Environment& env, train::LiveState& state,
                   const chain::GenesisEntry& genesis) {
  if (!genesis.initial) return state.begin(run.config.trainer.seed);
  ASSIGN_OR_RETURN(const std::string path, audit::initial_checkpoint(env.fs, run.directory, genesis));
  ASSIGN_OR_RETURN(const train::CellsRead read, state.restore(path, genesis.step(), /*prints=*/false));
  return read.unfit.empty() ? Status() : corrupt(fmt::format("{}: {}", path, read.unfit));
}

Status write_config_file(const OpenedRun& run, io::FileSystem& fs) {
  return io::write_file_atomically(fs, run.file(chain::kConfigFile), config::resolved_yaml(run.config));
}

// config.yaml, which a run can do without, is brought up to the chain whenever the run goes on. Then what an
// amend left beside it is of no use.
Status renew_config_file(const OpenedRun& run, const Environment& env) {
  const std::string path = run.file(chain::kConfigFile);
  const auto text = env.fs.read_file(path);
  const auto written =
      text.ok() ? train::parse_train_config(*text, path, run.config.model.choices()) : text.error();
  const bool is_renewed =
      written.ok() && train::canonical_text(*written) == train::canonical_text(run.config);
  const std::string amended = run.file(chain::kAmendedConfigFile);
  ASSIGN_OR_RETURN(const bool is_left, env.fs.exists(amended));
  // Of an amend that adds data, the file before it lacks the places of the data.
  if (!is_renewed || is_left) RETURN_IF_ERROR(write_config_file(run, env.fs));
  if (!is_left) return Status();
  failpoint("amended_config");
  return env.fs.remove(amended);
}

}  // namespace

Result<Resumption> restore_newest(train::LiveState& first_state, Resumption from,
                                  const std::function<Result<train::LiveState*>(const Resumption&)>& renew,
                                  const std::function<Result<Resumption>(int64_t before)>& plan) {
  train::LiveState* state = &first_state;
  std::string first;  // what is wrong with the newest
  int64_t tried = 0;
  while (!from.checkpoint.empty()) {
    ASSIGN_OR_RETURN(const train::CellsRead read, state->restore(from.checkpoint, from.step, !from.named));
    std::string how = "damaged", why = read.unfit;
    if (why.empty() && !from.named)
      if (const Status fits = from.check_prints(read.prints); !fits.ok())
        how = "refused", why = fits.error().message();
    if (why.empty()) return from;
    ++tried;
    const std::string warning =
        fmt::format("checkpoint {} is {} and is passed over: {}", from.checkpoint, how, why);
    log_warning(warning);
    if (first.empty()) first = warning;
    const std::string path = from.checkpoint, config = train::canonical_text(from.config);
    ASSIGN_OR_RETURN(from, plan(from.step));
    if (from.checkpoint.empty() || train::canonical_text(from.config) == config) continue;
    if (state->is_shared())  // the others have the config that they were told
      return corrupt(
          fmt::format("{}; the one before it, {}, is from before an amend; move {} away and start "
                      "the same command again",
                      warning, from.checkpoint, path));
    ASSIGN_OR_RETURN(state, renew(from));
  }
  if (first.empty()) return from;
  return corrupt(
      fmt::format("none of the {} checkpoints can be used; the newest: {}. Restore one from a copy, or "
                  "move the folder away to begin again from the first step",
                  tried, first));
}

namespace {

// Fingerprints of single leaves are of use only with those of the others beside them. What the file has of
// steps that are done again goes away, even where no leaves are kept any more.
Status keep_leaves(const OpenedRun& run, io::FileSystem& fs, ChainKeeper& keeper) {
  const std::string path = run.file(chain::kLeavesFile);
  const int64_t step = keeper.chain().last_step();
  if (!run.config.chain.leaf_gradients) return chain::cut_leaves(fs, path, step);
  ASSIGN_OR_RETURN(chain::LeafWriter leaves, chain::LeafWriter::resume(fs, path, step));
  keeper.keep_leaves(std::move(leaves));
  return {};
}

}  // namespace

Result<audit::Period> amended_period(const OpenedRun& run) {
  const audit::Period& held = run.from->period;
  audit::Period now{run.from->step, train::canonical_text(run.config), train::programs_hash(run.programs),
                    run.data.data_hash, held.data_roots};
  if (now.data_hash != held.data_hash && run.genesis->format > 1) {  // format 1 names no roots
    ASSIGN_OR_RETURN(now.data_roots, run.data.stores->roots());
  }
  return now;
}

Result<chain::GenesisEntry> genesis_of(const OpenedRun& run) {
  chain::GenesisEntry g;
  g.numerics_version = chain::kNumericsVersion;
  g.numerics_options = train::numerics_options(run.config);
  g.program_hash = train::programs_hash(run.programs);
  g.config = train::canonical_text(run.config);
  g.data_hash = run.data.data_hash;
  g.tokenizer_hash = run.data.tokenizer_hash;
  ASSIGN_OR_RETURN(g.data_roots, run.data.stores->roots());
  g.reference = run.reference;
  return g;
}

Status write_run_files(const OpenedRun& run, io::FileSystem& fs) {
  RETURN_IF_ERROR(write_config_file(run, fs));
  RETURN_IF_ERROR(io::write_file_atomically(fs, run.file("program.ir"), train::print_programs(run.programs)));
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, *run.data.tokenizer, run.file("tokenizer.json")));
  // Names the eos, which tokenizer.json does not, how texts begin, and where generation ends.
  RETURN_IF_ERROR(io::write_file_atomically(
      fs, run.file("tokenizer_config.json"),
      run.data.tokenizer->tokenizer_config_json(
          run.config.model_options().seq_len(),
          batches::begins_texts(*run.data.stores, run.config.data, *run.data.tokenizer))));
  if (!run.data.tokenizer->more_stops().empty())
    RETURN_IF_ERROR(io::write_file_atomically(fs, run.file("generation_config.json"),
                                              run.data.tokenizer->generation_config_json()));
  return data::keep_chat_template(fs, run.config.data, *run.data.tokenizer, run.directory);
}

Result<std::unique_ptr<ChainKeeper>> begin_run(OpenedRun& run, const Environment& env,
                                               train::LiveState& state) {
  io::FileSystem& fs = env.fs;
  ASSIGN_OR_RETURN(chain::GenesisEntry g, genesis_of(run));
  RETURN_IF_ERROR(write_run_files(run, fs));
  if (run.config.trainer.initialize_from) {
    ASSIGN_OR_RETURN(const FirstState* first, first_state(run, run.programs, env));
    ASSIGN_OR_RETURN(g.initial, audit::save_initial(fs, run.directory, run.config,
                                                    train::state_arrays(run.programs), first->state));
    g.origin = first->origin;
    g.maker = first->maker;
    if (g.maker)
      RETURN_IF_ERROR(lineage::copy_maker(fs, *run.config.trainer.initialize_from, *g.maker, run.directory));
  }
  run.first.reset();
  RETURN_IF_ERROR(begin_state(run, env, state, g));
  ASSIGN_OR_RETURN(chain::ChainWriter chain, chain::ChainWriter::create(fs, run.file(chain::kChainFile), g));
  auto keeper = std::make_unique<ChainKeeper>(fs, run.directory, std::move(chain));
  RETURN_IF_ERROR(keep_leaves(run, fs, *keeper));
  return keeper;
}

Result<std::unique_ptr<ChainKeeper>> resume_run(const OpenedRun& run, const Environment& env,
                                                train::LiveState& state, bool amend) {
  io::FileSystem& fs = env.fs;
  const Resumption& from = *run.from;
  const int64_t step = from.step;
  const bool begins = step == run.genesis->step();
  ASSIGN_OR_RETURN(const audit::Period now, amended_period(run));
  const std::string difference = audit::amend_difference(run.config, from.period, now);
  const bool amends = difference != "{}";
  if (amends && (!amend || begins))
    return invalid_argument(fmt::format(
        "{} holds a run with another program (the model's code changed): hash {} there, {} here; {}give this "
        "run another trainer.id, or go back to the code that began it",
        run.directory, from.period.program_hash, now.program_hash,
        begins ? "" : fmt::format("to go on with it after step {}, add --amend; ", step)));
  // Others may still write there what will be of no use.
  if (const Status removed = checkpoint::remove_leftovers(fs, run.file(checkpoint::kCheckpointsFolder));
      !removed.ok()) {
    if (!state.is_shared()) return removed.error();
    log_warning(removed.error().message());
  }
  if (run.carried) {
    RETURN_IF_ERROR(state.take_over(step));
    log_info(fmt::format("going on with {} after step {}, with the state that the workers have",
                         run.directory, step));
  } else if (!begins) {
    log_info(fmt::format("resuming {} after step {}{}", run.directory, step,
                         from.named
                             ? ""
                             : ", where it was saved between two checkpoints of the chain: its parameters "
                               "have the fingerprint that the chain has for this step"));
  } else {
    RETURN_IF_ERROR(begin_state(run, env, state, *run.genesis));
    log_info(run.genesis->fork
                 ? fmt::format("beginning {} after step {}, with the state that it was forked from",
                               run.directory, step)
                 : fmt::format("resuming {} from the beginning: it has no checkpoint yet", run.directory));
  }
  ASSIGN_OR_RETURN(chain::ChainWriter writer,
                   chain::ChainWriter::resume(fs, run.file(chain::kChainFile), step));
  auto keeper = std::make_unique<ChainKeeper>(fs, run.directory, std::move(writer));
  RETURN_IF_ERROR(keep_leaves(run, fs, *keeper));
  chain::ChainWriter& chain = keeper->writer();
  if (!run.carried && !begins) keeper->resumed(step);
  // The process may have died between the checkpoint's commit and its entry. What is due at this step is what
  // was due when it was done: an entry of an amend stands behind it.
  const bool lacks_checkpoint = step > from.period.first && audit::is_due(from.held, step) &&
                                chain.chain().find_checkpoint(step) == nullptr;
  if (run.carried && lacks_checkpoint)
    keeper->owe(train::measured_text(run.carried->last));
  else if (lacks_checkpoint)
    RETURN_IF_ERROR(chain.append(chain::CheckpointEntry{step, from.name}));
  if (amends) {
    log_info(fmt::format("amended after step {}: {}", step, audit::amend_text(difference)));
    // The chain is the commit point here, too: what it names is there before it.
    if (now.program_hash != from.period.program_hash)
      RETURN_IF_ERROR(io::write_file_atomically(
          fs, run.file(audit::program_file(chain.chain().genesis(), now.program_hash)),
          train::print_programs(run.programs)));
    if (now.data_hash != from.period.data_hash)  // an added component may bring a template
      RETURN_IF_ERROR(data::keep_chat_template(fs, run.config.data, *run.data.tokenizer, run.directory));
    const chain::AmendEntry amended{step, difference};
    RETURN_IF_ERROR(chain::settle_config(fs, run.directory));
    RETURN_IF_ERROR(
        io::write_file_atomically(fs, run.file(chain::kAmendedConfigFile),
                                  chain::amended_config_text(amended, config::resolved_yaml(run.config))));
    failpoint("amend");
    RETURN_IF_ERROR(chain.append(amended));
    RETURN_IF_ERROR(chain.sync());
    failpoint("amend");
  }
  RETURN_IF_ERROR(renew_config_file(run, env));
  return keeper;
}

}  // namespace ostro::run
