#include "ostro/leaf_audit/leaf_proof.h"

#include <fmt/format.h>

#include "ostro/base/merkle.h"
#include "ostro/batches/proof/make_proof.h"
#include "ostro/chain/leaf_file.h"
#include "ostro/io/files/path.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/step.h"

namespace ostro::leaf_audit {

Result<LeafPath> path_of_leaf(io::FileSystem& fs, const std::string& directory, const chain::StepEntry& entry,
                              int64_t leaf) {
  const std::string path = io::join_path(directory, chain::kLeavesFile);
  ASSIGN_OR_RETURN(const std::vector<chain::LeafRecord> records, chain::read_leaves(fs, path, entry.step));
  if (const std::string root = chain::leaves_root(records); root != entry.leaves)
    return corrupt(fmt::format("{}: the leaves of step {} have the root {}, the chain has {}", path,
                               entry.step, root, entry.leaves));
  std::vector<Sha256Digest> hashes;
  for (const chain::LeafRecord& record : records) hashes.push_back(merkle_leaf(chain::leaf_data(record)));
  return LeafPath{static_cast<int64_t>(hashes.size()), merkle_path(hashes, static_cast<size_t>(leaf))};
}

Result<int64_t> leaves_of_step(const audit::RecordedRun& run, const std::string& directory, int64_t step,
                               int64_t leaf) {
  if (run.chain.find_step(step) == nullptr)
    return invalid_argument(fmt::format("step {}: the chain of {} has steps {} to {}", step, directory,
                                        chain::entry_step(run.chain.links.front().entry) + 1,
                                        run.chain.last_step()));
  const audit::OpenedPeriod& period = run.period_after(step - 1);
  const int64_t leaves =
      period.config.trainer.train_batch_size.at(step - 1) / train::leaf_rows(period.programs);
  if (leaf < -1 || leaf >= leaves)
    return invalid_argument(
        fmt::format("leaf {} of step {}: the step has {} leaves, from 0", leaf, step, leaves));
  return leaves;
}

Result<batches::DataProof> prove_step(io::FileSystem& fs, const std::string& directory,
                                      const std::string& cache, const models::ModelChoices& models,
                                      int64_t step, int64_t leaf) {
  ASSIGN_OR_RETURN(const audit::RecordedRun run,
                   audit::open_recorded(fs, directory, models, /*stored_programs=*/true));
  RETURN_IF_ERROR(leaves_of_step(run, directory, step, leaf));
  const audit::OpenedPeriod& period = run.period_after(step - 1);
  const int64_t rows = train::leaf_rows(period.programs);
  ASSIGN_OR_RETURN(const train::DataAccess data,
                   train::open_run_data(fs, directory, run.config, run.chain.genesis(), cache));
  ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(period.config, data.stores));
  const auto& entry = std::get<chain::StepEntry>(run.chain.find_step(step)->entry);
  ASSIGN_OR_RETURN(batches::DataProof proof,
                   leaf < 0 ? batches::prove_batch(*data.stores, loader, step - 1, 0,
                                                   period.config.trainer.train_batch_size.at(step - 1))
                            : batches::prove_batch(*data.stores, loader, step - 1, leaf * rows, rows));
  if (leaf >= 0) {
    ASSIGN_OR_RETURN(LeafPath path, path_of_leaf(fs, directory, entry, leaf));
    proof.batch->leaf = leaf;
    proof.batch->leaves = path.leaves;
    proof.batch->leaf_path = std::move(path.path);
  }
  RETURN_IF_ERROR(check_proof(proof, run.chain));
  return proof;
}

Status check_proof(const batches::DataProof& proof, const chain::Chain& chain) {
  const chain::GenesisEntry& genesis = chain.genesis();
  if (genesis.format == 1)
    return unsupported("the run's chain has format 1, which names no roots of data: rows cannot be proven");
  ASSIGN_OR_RETURN(const auto roots, batches::roots_of_proof(proof));
  for (const auto& [component, root] : roots) {
    const auto known = genesis.data_roots.find(component);
    if (known == genesis.data_roots.end())
      return corrupt(
          fmt::format("the proof has rows of the component \"{}\", the run's data has none of this "
                      "name",
                      component));
    if (known->second != root)
      return corrupt(fmt::format("the rows{} lead to the root {}, the run's data has {}",
                                 component.empty() ? "" : fmt::format(" of {}", component), root,
                                 known->second));
  }
  if (!proof.batch) return {};
  const chain::ChainLink* link = chain.find_step(proof.batch->step);
  if (link == nullptr)
    return corrupt(fmt::format("the proof is of step {}, which the chain does not have", proof.batch->step));
  RETURN_IF_ERROR(batches::batch_of_proof(proof));
  const std::string &recorded = std::get<chain::StepEntry>(link->entry).batch,
                    found = batches::fingerprint_of_proof(*proof.batch);
  if (found != recorded)
    return corrupt(
        fmt::format("the sequences of the proof make a batch with the fingerprint {}, step {} has {}", found,
                    proof.batch->step, recorded));
  return {};
}

}  // namespace ostro::leaf_audit
