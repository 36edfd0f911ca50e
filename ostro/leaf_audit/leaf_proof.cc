#include "ostro/leaf_audit/leaf_proof.h"

#include <fmt/format.h>

#include "ostro/base/merkle.h"
#include "ostro/batches/proof/make_proof.h"
#include "ostro/chain/leaf_file.h"
#include "ostro/io/files/path.h"
#include "ostro/leaf_audit/check_proof.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/step.h"

namespace ostro::leaf_audit {
Result<LeafPath> path_of_leaf(io::FileSystem& fs, const std::string& directory, const chain::StepEntry& entry,
                              int64_t leaf, int64_t leaves) {
  const std::string path = io::join_path(directory, chain::kLeavesFile);
  ASSIGN_OR_RETURN(const std::vector<chain::LeafRecord> records, chain::read_leaves(fs, path, entry.step));
  if (const std::string root = chain::leaves_root(records); root != entry.leaves)
    return corrupt(fmt::format("{}: the leaves of step {} have the root {}, the chain has {}", path,
                               entry.step, root, entry.leaves));
  if (static_cast<int64_t>(records.size()) != leaves)
    return corrupt(fmt::format("{}: step {} has {} leaves, but {} are recorded", path, entry.step, leaves,
                               records.size()));
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
  ASSIGN_OR_RETURN(const int64_t leaves, leaves_of_step(run, directory, step, leaf));
  const audit::OpenedPeriod& period = run.period_after(step - 1);
  const int64_t rows = train::leaf_rows(period.programs);
  ASSIGN_OR_RETURN(const train::DataAccess data,
                   train::open_run_data(fs, directory, run.newest(), run.chain, cache));
  // The numbers of components are those of the step's own configuration.
  const auto stores = batches::DataSet::of_components(data.stores, period.config.data);
  ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(period.config, stores));
  const auto& entry = std::get<chain::StepEntry>(run.chain.find_step(step)->entry);
  ASSIGN_OR_RETURN(batches::DataProof proof,
                   leaf < 0 ? batches::prove_batch(*stores, loader, step - 1, 0,
                                                   period.config.trainer.train_batch_size.at(step - 1))
                            : batches::prove_batch(*stores, loader, step - 1, leaf * rows, rows));
  if (leaf >= 0) {
    ASSIGN_OR_RETURN(LeafPath path, path_of_leaf(fs, directory, entry, leaf, leaves));
    proof.batch->leaf = leaf;
    proof.batch->leaves = path.leaves;
    proof.batch->leaf_path = std::move(path.path);
  }
  const ProofCheck check = check_proof(proof, run);
  RETURN_IF_ERROR(check.proof);
  RETURN_IF_ERROR(check.record);
  return proof;
}

}  // namespace ostro::leaf_audit
