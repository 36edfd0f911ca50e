#include "ostro/run/fork/fork.h"

#include <fmt/format.h>

#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/audit/record/fork.h"
#include "ostro/audit/record/initial.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/failpoint.h"
#include "ostro/chain/chain_writer.h"
#include "ostro/chain/config_file.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/checkpoint/stream_save.h"
#include "ostro/io/files/path.h"
#include "ostro/run/fork/missing_state.h"
#include "ostro/run/loop/begin.h"
#include "ostro/run/loop/opened_run.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/reference.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::run {
namespace {

// The parent up to the step, and its checkpoint of it.
struct Parent {
  chain::Chain chain;
  chain::Fork fork;
  std::string checkpoint;  // directory
  std::string state;       // its name
};

Result<Parent> open_parent(io::FileSystem& fs, const ForkRequest& request) {
  const std::string path = io::join_path(request.parent, chain::kChainFile);
  ASSIGN_OR_RETURN(const bool is_run, fs.exists(path));
  if (!is_run)
    return not_found(fmt::format("{} is no run directory: it has no {}", request.parent, chain::kChainFile));
  Parent out;
  ASSIGN_OR_RETURN(out.chain, chain::read_chain_until(fs, path, request.step));
  RETURN_IF_ERROR(chain::check_computable(out.chain.genesis(), request.parent));
  const std::string* name = out.chain.find_checkpoint(request.step);
  if (name == nullptr) {
    ASSIGN_OR_RETURN(const chain::Chain whole, chain::read_chain(fs, path));
    return missing_state(fs, request.parent, whole, request.step, "--step");
  }
  out.state = *name;
  for (const chain::ChainLink& link : out.chain.links)
    if (const auto* entry = std::get_if<chain::CheckpointEntry>(&link.entry);
        entry && entry->step == request.step)
      out.fork = {link.hash, request.step};
  out.checkpoint = io::join_path(io::join_path(request.parent, checkpoint::kCheckpointsFolder),
                                 checkpoint::step_directory(request.step));
  return out;
}

// The parent's configuration of the step; options that are in no chain are those of its config.yaml.
Result<train::TrainConfig> config_that_made(io::FileSystem& fs, const ForkRequest& request,
                                            const Parent& parent, const models::ModelChoices& models) {
  const std::string path = chain::config_file(fs, request.parent);
  ASSIGN_OR_RETURN(const std::string yaml, fs.read_file(path));
  ASSIGN_OR_RETURN(const train::TrainConfig base, train::parse_train_config(yaml, path, models));
  ASSIGN_OR_RETURN(const auto periods,
                   audit::periods_of(base, parent.chain, io::join_path(request.parent, chain::kChainFile)));
  return audit::config_of_period(base, audit::period_that_made(periods, request.step).config);
}

// The parent's configuration of the step with what is given, if a fork may have it.
Result<train::TrainConfig> config_after(io::FileSystem& fs, const ForkRequest& request, const Parent& parent,
                                        const train::TrainConfig& given) {
  if (given.trainer.initialize_from)
    return invalid_argument(fmt::format(
        "trainer.initialize_from is {}, but a fork begins with the state of {} after step {}; leave it out",
        *given.trainer.initialize_from, request.parent, request.step));
  ASSIGN_OR_RETURN(train::TrainConfig held, config_that_made(fs, request, parent, given.model.choices()));
  held.trainer.initialize_from.reset();
  ASSIGN_OR_RETURN(train::TrainConfig config, audit::fork_with(held, given, request.step));
  if (const Status allowed = audit::check_fork(held, config, request.step); !allowed.ok())
    return allowed.error().with_context(fmt::format("{} cannot be forked so", request.parent));
  return config;
}

// Writes the arrays of the parent's checkpoint to initial/, each cell with the hash that the parent's chain
// vouches for. Whatever else lies in the checkpoint's directory stays there.
Status copy_state(io::FileSystem& fs, const ForkRequest& request, const Parent& parent,
                  const OpenedRun& run) {
  const std::string folder = run.file(audit::kInitialFolder);
  const audit::Witness witness(parent.chain, io::join_path(request.parent, chain::kChainFile),
                               run.config.model.choices());
  ASSIGN_OR_RETURN(const checkpoint::Checkpoint source, checkpoint::Checkpoint::open(fs, parent.checkpoint));
  const checkpoint::Manifest& manifest = source.manifest();
  RETURN_IF_ERROR(witness.check_manifest(manifest, parent.checkpoint));
  RETURN_IF_ERROR(train::check_tensors(manifest, train::state_arrays(run.programs), parent.checkpoint));
  if (audit::lacks_moments(fs, source))
    return not_found(fmt::format(
        "{}: its moments were left out (ostro publish --parameters_only), and a fork goes on with "
        "them; begin a run with its parameters instead (trainer.initialize_from)",
        parent.checkpoint));
  RETURN_IF_ERROR(fs.remove_all(folder));
  RETURN_IF_ERROR(fs.make_dirs(folder));
  ASSIGN_OR_RETURN(auto copy, checkpoint::StreamSave::begin(fs, folder, manifest.info, manifest.tensors));
  std::vector<std::byte> bytes;
  for (size_t k = 0; k < manifest.tensors.size(); ++k) {
    const checkpoint::TensorSpec& spec = manifest.tensors[k];
    const std::vector<checkpoint::Box> cells = checkpoint::cells_of(spec);
    for (size_t c = 0; c < cells.size(); ++c) {
      bytes.resize(static_cast<size_t>(io::product(cells[c].shape) * checkpoint::dtype_size(spec.dtype)));
      RETURN_IF_ERROR(source.read_box(static_cast<int64_t>(k), cells[c].start, cells[c].shape, bytes));
      RETURN_IF_ERROR(copy.write(k, c, bytes));
    }
  }
  failpoint("fork");
  ASSIGN_OR_RETURN(const checkpoint::Saved saved, copy.finish());
  if (saved.name == parent.state) return fs.sync_dir(folder);
  return corrupt(fmt::format("{} holds the state {}, but its chain names {} after step {}", parent.checkpoint,
                             saved.name, parent.state, request.step));
}

// A fork on pairs compares with what the parent's first weights give.
Result<std::optional<train::Reference>> reference_of(io::FileSystem& fs, const ForkRequest& request,
                                                     const Parent& parent, OpenedRun& run) {
  run.reference = parent.chain.genesis().reference;
  if (!run.reference) return std::optional<train::Reference>();
  if (run.data.data_hash != parent.chain.genesis().data_hash)
    return invalid_argument(
        fmt::format("{} compares with what its first weights give to its own pairs, data set {}; a fork of "
                    "it must have the same pairs, and these are data set {}",
                    request.parent, parent.chain.genesis().data_hash, run.data.data_hash));
  ASSIGN_OR_RETURN(train::Reference reference,
                   train::read_reference(fs, request.parent, *run.data.stores, *run.reference));
  run.data.stores = run.data.stores->with_scores(reference.scores);
  return std::optional(std::move(reference));
}

// Whether the directory holds the run with this genesis; an error if it holds another one.
Result<bool> is_there(io::FileSystem& fs, const OpenedRun& run, const chain::GenesisEntry& genesis) {
  const std::string path = run.file(chain::kChainFile);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return false;
  ASSIGN_OR_RETURN(const chain::Chain there, chain::read_chain_until(fs, path, 0));
  if (there.genesis() == genesis) return true;
  return Error(ErrorCode::kBusy,
               fmt::format("{} holds another run; name a directory that holds none", run.directory));
}

}  // namespace

Result<train::TrainConfig> config_of_parent(io::FileSystem& fs, const ForkRequest& request,
                                            std::span<const config::Override> overrides,
                                            const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(const Parent parent, open_parent(fs, request));
  ASSIGN_OR_RETURN(train::TrainConfig held, config_that_made(fs, request, parent, models));
  held.trainer.initialize_from.reset();
  bool has_tokenizer = false;
  if (held.data.tokenizer) {
    ASSIGN_OR_RETURN(has_tokenizer, fs.exists(*held.data.tokenizer));
  }
  if (!has_tokenizer) {
    held.data.tokenizer = io::join_path(request.parent, "tokenizer.json");
    held.data.vocab_size.reset();
  }
  config::Node tree = config::write_value(held, config::Write::kAll);
  // Not given, it may follow other batch sizes (audit::continue_with).
  if (config::Node* numerics = tree.find("numerics"); numerics != nullptr)
    std::erase_if(numerics->items, [](const config::Node& item) { return item.key == "leaf_examples"; });
  for (const config::Override& override : overrides) RETURN_IF_ERROR(config::apply_override(override, &tree));
  train::TrainConfig config(models);
  RETURN_IF_ERROR(config::read_and_resolve(tree, &config));
  return config;
}

Result<train::TrainConfig> config_of_fork(io::FileSystem& fs, const ForkRequest& request,
                                          const train::TrainConfig& given) {
  ASSIGN_OR_RETURN(const Parent parent, open_parent(fs, request));
  return config_after(fs, request, parent, given);
}

Result<Forked> fork_run(io::FileSystem& fs, const ForkRequest& request, const train::TrainConfig& given,
                        const data::BuildSettings& build) {
  ASSIGN_OR_RETURN(const Parent parent, open_parent(fs, request));
  ASSIGN_OR_RETURN(train::TrainConfig config, config_after(fs, request, parent, given));
  const std::string out = io::clean_path(request.out);
  config.trainer.log_dir = io::parent_path(out);
  config.trainer.id = io::base_name(out);
  RETURN_IF_ERROR(config.trainer.validate());

  OpenedRun run{config, out};
  ASSIGN_OR_RETURN(run.data, train::open_data(fs, run.config, build));
  if (const std::string& theirs = parent.chain.genesis().tokenizer_hash; theirs != run.data.tokenizer_hash)
    return invalid_argument(fmt::format(
        "{} has another tokenizer than {}, and no fork can change it, because the parameters are of its "
        "tokens: hash {} here, {} there; set data.tokenizer to {}/tokenizer.json",
        run.config.data.tokenizer_path(), request.parent, run.data.tokenizer_hash, theirs, request.parent));
  run.model = train::run_model(run.config, run.data.tokenizer->vocab_size());
  ASSIGN_OR_RETURN(run.programs, train::make_programs(run.config, run.model));
  ASSIGN_OR_RETURN(const auto reference, reference_of(fs, request, parent, run));
  // What no batch can be made of is refused before anything is written.
  RETURN_IF_ERROR(train::make_loader(run.config, run.data.stores, run.config.trainer.num_train_steps));
  ASSIGN_OR_RETURN(chain::GenesisEntry genesis, genesis_of(run));
  genesis.fork = parent.fork;
  genesis.initial = parent.state;
  Forked forked{run.config, parent.state, "", false};
  ASSIGN_OR_RETURN(forked.was_there, is_there(fs, run, genesis));
  if (!forked.was_there) {
    RETURN_IF_ERROR(fs.make_dirs(run.directory));
    ASSIGN_OR_RETURN(run.lock, chain::lock_run(fs, run.directory, 0));
    if (reference) RETURN_IF_ERROR(train::write_reference(fs, run.directory, *run.data.stores, *reference));
    RETURN_IF_ERROR(copy_state(fs, request, parent, run));
    RETURN_IF_ERROR(
        audit::copy_ancestry(fs, request.parent, parent.fork.head, run.file(audit::kParentFolder)));
    failpoint("fork");
    RETURN_IF_ERROR(write_run_files(run, fs));
    run.record.parent = parent.checkpoint;
    run.record.numerics_version = genesis.numerics_version;
    run.record.program_hash = genesis.program_hash;
    run.record.data_hash = genesis.data_hash;
    run.record.tokenizer_hash = genesis.tokenizer_hash;
    RETURN_IF_ERROR(chain::write_record(fs, run.file(chain::kRecordFile), run.record));
    failpoint("fork");
    ASSIGN_OR_RETURN(const chain::ChainWriter chain,
                     chain::ChainWriter::create(fs, run.file(chain::kChainFile), genesis));
  }
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, run.file(chain::kChainFile)));
  forked.head = chain.head();
  return forked;
}

}  // namespace ostro::run
