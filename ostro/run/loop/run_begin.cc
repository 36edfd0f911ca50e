#include "ostro/run/loop/run.h"

#include <fmt/format.h>

#include <utility>

#include "ostro/audit/initial.h"
#include "ostro/audit/witness.h"
#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/data/formats/shared_chat_template.h"
#include "ostro/fleet/processes/process_runner.h"
#include "ostro/fleet/workers/workers.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/step/fingerprints.h"
#include "ostro/train/step/reference.h"

namespace ostro::run {

// The state that a new run begins with.
Result<train::State> Run::first_state(const train::CanonicalPrograms& programs,
                                      const train::StateArrays& arrays) {
  if (first_state_) return *std::exchange(first_state_, std::nullopt);
  ASSIGN_OR_RETURN(train::State state, train::initial_state(programs, env_.engine, config_.trainer.seed));
  const auto& from = config_.trainer.initialize_from;
  if (!from) return state;
  const std::string place = file(audit::kImportedFolder);
  std::optional<std::string> imported;
  if (env_.import_model) {
    ASSIGN_OR_RETURN(imported, env_.import_model(*from, place));
  }
  const auto taken = audit::take_parameters(env_.fs, config_, imported.value_or(*from), arrays, state);
  if (imported) RETURN_IF_ERROR(env_.fs.remove_all(place));
  ASSIGN_OR_RETURN(origin_, taken);
  return state;
}

// What pairs are compared with. A file that is lost is made again, from the initial state.
Status Run::make_reference(const std::optional<chain::GenesisEntry>& genesis) {
  if (train::dpo_objective(config_.objective) == nullptr) return Status();
  const auto take = [&](const train::Reference& made) {
    reference_ = made.hash;
    data_.stores = data_.stores->with_scores(made.scores);
    return Status();
  };
  if (genesis) {
    if (!genesis->reference)
      return corrupt(fmt::format("{}: the genesis has no reference, and objective.type is dpo",
                                 file(chain::kChainFile)));
    const auto kept = train::read_reference(env_.fs, directory_, *data_.stores, *genesis->reference);
    if (kept.ok()) return take(*kept);
    log_warning(fmt::format("{}; it is computed again", kept.error().message()));
  }
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config_, model_));
  const train::StateArrays arrays = train::state_arrays(programs);
  train::State state;
  if (genesis && genesis->initial) {
    ASSIGN_OR_RETURN(state, audit::load_initial(env_.fs, directory_, *genesis, arrays));
  } else {
    ASSIGN_OR_RETURN(state, first_state(programs, arrays));
    if (!genesis) first_state_ = state;
  }
  log_info("computing what the initial weights give to the answers of all pairs");
  ASSIGN_OR_RETURN(
      const train::Reference made,
      train::compute_reference(*programs.reference, env_.engine, state.params, config_, *data_.stores));
  if (genesis && made.hash != *genesis->reference)
    return corrupt(fmt::format(
        "{}: computed again, the reference has the hash {}, but the run began with {}: other code made it",
        directory_, made.hash, *genesis->reference));
  RETURN_IF_ERROR(train::write_reference(env_.fs, directory_, *data_.stores, made));
  return take(made);
}

// Everything that follows from the config.
Status Run::prepare(int64_t vocab) {
  ASSIGN_OR_RETURN(data::Loader loader,
                   train::make_loader(config_, data_.stores, config_.trainer.num_train_steps));
  loader_ = std::move(loader);
  for (const data::ComponentUse& use : loader_->use(config_.trainer.num_train_steps))
    if (!use.name.empty()) {
      log_info(fmt::format("component {}: {} examples of {} sequences, {:.2f} epochs", use.name, use.examples,
                           use.sequences, use.epochs()));
      if (const std::string text = data::left_out_text(use.packing); !text.empty())
        log_warning(fmt::format("component {}: {}; a sequence has {} targets (model.seq_len)", use.name, text,
                                config_.model_options().seq_len()));
    }
  ASSIGN_OR_RETURN(programs_, train::make_programs(config_, model_));
  {
    const TimeScope compiling(TimeUse::kCompile);
    ASSIGN_OR_RETURN(runner_, make_steps());
  }
  vocab_ = vocab;
  auto held_out = train::HeldOutText::create(config_, *data_.stores);
  if (held_out.ok())
    held_out_ = std::move(held_out).value();
  else if (held_out.error().code() == ErrorCode::kInvalidArgument)  // there is no held-out text
    log_warning(fmt::format("no evaluation: {}", held_out.error().message()));
  else
    return held_out.error();
  if (held_out_ && runner_->spread() == nullptr) {
    ASSIGN_OR_RETURN(
        evaluator_, train::HeldOut::create(*held_out_, train::held_out_program(config_, vocab), env_.engine));
  }
  return Status();
}

Result<std::unique_ptr<train::StepRunner>> Run::make_steps() {
  ASSIGN_OR_RETURN(const std::string remat, config_.model_options().remat());
  fleet::Crew* crew = env_.crew;
  if (crew == nullptr) return fleet::make_runner(programs_, env_.engine, remat, config_, env_.workers);
  // The others get ready while this process does.
  dist::KeyValue& job = crew->membership().job();
  RETURN_IF_ERROR(job.set(fleet::kReferenceKey, reference_.value_or(fleet::kNoReference)));
  RETURN_IF_ERROR(job.set(fleet::kDataKey, data_.data_hash));
  RETURN_IF_ERROR(job.set(fleet::kProgramKey, train::programs_hash(programs_)));
  RETURN_IF_ERROR(job.set(fleet::kConfigKey, config::resolved_yaml(config_)));
  if (!crew->has_run()) crew->set_run(programs_, remat, config_);
  return fleet::make_process_runner(*crew);
}

Status Run::begin() {
  chain::GenesisEntry g;
  g.numerics_version = chain::kNumericsVersion;
  g.program_hash = train::programs_hash(programs_);
  g.config = train::canonical_text(config_);
  g.data_hash = data_.data_hash;
  g.tokenizer_hash = data_.tokenizer_hash;
  g.reference = reference_;
  ASSIGN_OR_RETURN(g.data_roots, data_.stores->roots());
  io::FileSystem& fs = env_.fs;
  RETURN_IF_ERROR(io::write_file_atomically(fs, file("config.yaml"), config::resolved_yaml(config_)));
  RETURN_IF_ERROR(io::write_file_atomically(fs, file("program.ir"), train::print_programs(programs_)));
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, *data_.tokenizer, file("tokenizer.json")));
  // Names the eos, which tokenizer.json does not.
  RETURN_IF_ERROR(
      io::write_file_atomically(fs, file("tokenizer_config.json"),
                                data_.tokenizer->tokenizer_config_json(config_.model_options().seq_len())));
  // Who exports the model wants to talk to it as it was trained.
  ASSIGN_OR_RETURN(const auto chat, data::shared_chat_template(fs, config_.data, *data_.tokenizer));
  if (chat) RETURN_IF_ERROR(chat->save(fs, directory_));
  if (config_.trainer.initialize_from) {
    const train::StateArrays arrays = train::state_arrays(programs_);
    ASSIGN_OR_RETURN(const train::State state, first_state(programs_, arrays));
    ASSIGN_OR_RETURN(g.initial, audit::save_initial(fs, directory_, config_, arrays, state));
    g.origin = origin_;
  }
  first_state_.reset();
  RETURN_IF_ERROR(begin_state(g));
  // The chain is the commit point: a directory without one is no run.
  ASSIGN_OR_RETURN(chain::ChainWriter chain, chain::ChainWriter::create(fs, file(chain::kChainFile), g));
  chain_ = std::make_unique<chain::ChainWriter>(std::move(chain));
  begun_ = true;
  return Status();
}

Status Run::begin_state(const chain::GenesisEntry& genesis) {
  train::SpreadState* spread = runner_->spread();
  if (genesis.initial && spread != nullptr) {
    ASSIGN_OR_RETURN(const std::string path, audit::initial_checkpoint(env_.fs, directory_, genesis));
    ASSIGN_OR_RETURN(const train::CellsRead read, spread->restore(env_.fs, path, 0, false));
    return read.unfit.empty() ? Status() : corrupt(fmt::format("{}: {}", path, read.unfit));
  }
  if (genesis.initial) {
    ASSIGN_OR_RETURN(state_,
                     audit::load_initial(env_.fs, directory_, genesis, train::state_arrays(programs_)));
    return Status();
  }
  if (spread != nullptr) return spread->begin(config_.trainer.seed);
  ASSIGN_OR_RETURN(state_, train::initial_state(programs_, env_.engine, config_.trainer.seed));
  return Status();
}

Status Run::resume(Resumption from, bool amend) {
  io::FileSystem& fs = env_.fs;
  const int64_t step = from.state.step;
  const audit::Period now{step, train::canonical_text(config_), train::programs_hash(programs_)};
  const std::string difference = audit::amend_difference(config_, from.period, now);
  const bool amends = difference != "{}";
  if (amends && (!amend || step == 0))
    return invalid_argument(fmt::format(
        "{} holds a run with another program (the model's code changed): hash {} there, {} here; {}give this "
        "run another trainer.id, or go back to the code that began it",
        directory_, from.period.program_hash, now.program_hash,
        step == 0 ? "" : fmt::format("to go on with it after step {}, add --amend; ", step)));
  // Others may still write there what will be of no use.
  if (const Status removed = checkpoint::remove_leftovers(fs, file(checkpoint::kCheckpointsFolder));
      !removed.ok()) {
    if (env_.crew == nullptr) return removed;
    log_warning(removed.error().message());
  }
  if (takes_over_) {
    state_ = std::move(from.state);
    log_info(fmt::format("going on with {} after step {}, with the state that the workers have", directory_,
                         step));
  } else if (step > 0) {
    state_ = std::move(from.state);
    last_saved_ = step;
    log_info(fmt::format("resuming {} after step {}{}", directory_, step,
                         from.named ? ""
                                    : " (its checkpoint is not in the chain: the parameters' fingerprint was "
                                      "compared, the optimizer's arrays could not be)"));
  } else {
    ASSIGN_OR_RETURN(const chain::Chain beginning, chain::read_chain_to(fs, file(chain::kChainFile), 0));
    RETURN_IF_ERROR(begin_state(beginning.genesis()));
    log_info(fmt::format("resuming {} from the beginning: it has no checkpoint yet", directory_));
  }
  ASSIGN_OR_RETURN(chain::ChainWriter writer, chain::ChainWriter::resume(fs, file(chain::kChainFile), step));
  chain_ = std::make_unique<chain::ChainWriter>(std::move(writer));
  // The process may have died between the checkpoint's commit and its entry. What is due at this step is what
  // was due when it was done: an entry of an amend stands behind it.
  const bool lacks_checkpoint = step > from.period.first && audit::is_due(from.held, step) &&
                                chain_->chain().find_checkpoint(step) == nullptr;
  if (takes_over_ && lacks_checkpoint) {
    save_first_ = true;
    measured_ = train::measured_text(env_.crew->worker().last_result());
  } else if (lacks_checkpoint)
    RETURN_IF_ERROR(chain_->append(chain::CheckpointEntry{step, from.name}));
  if (amends) {
    log_info(fmt::format("amended after step {}: {}", step, audit::amend_text(difference)));
    // The chain is the commit point here, too: what it names is there before it, and config.yaml, which it
    // can do without, is brought up to it whenever the run goes on.
    if (now.program_hash != from.period.program_hash)
      RETURN_IF_ERROR(io::write_file_atomically(
          fs, file(audit::program_file(chain_->chain().genesis(), now.program_hash)),
          train::print_programs(programs_)));
    failpoint("amend");
    RETURN_IF_ERROR(chain_->append(chain::AmendEntry{step, difference}));
    RETURN_IF_ERROR(chain_->sync());
    failpoint("amend");
  }
  const std::string path = file("config.yaml");
  const auto text = fs.read_file(path);
  const auto written =
      text.ok() ? train::parse_train_config(*text, path, config_.model.choices()) : text.error();
  if (!written.ok() || train::canonical_text(*written) != now.config)
    RETURN_IF_ERROR(io::write_file_atomically(fs, path, config::resolved_yaml(config_)));
  return Status();
}

}  // namespace ostro::run
