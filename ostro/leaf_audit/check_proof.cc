#include "ostro/leaf_audit/check_proof.h"

#include <fmt/format.h>

#include "ostro/base/merkle.h"
#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/order/mixture.h"
#include "ostro/batches/order/order.h"
#include "ostro/chain/data_record.h"
#include "ostro/train/step/step.h"

namespace ostro::leaf_audit {
namespace {

// Whether the proof's batch is the one that the chain has of the step: the digests are the chain's, and every
// sequence is what its rows make.
Status check_is_of_step(const batches::DataProof& proof, const chain::Chain& chain) {
  const batches::ProvenBatch& batch = *proof.batch;
  const chain::ChainLink* link = chain.find_step(batch.step);
  if (link == nullptr)
    return corrupt(fmt::format("the proof is of step {}, which the chain does not have", batch.step));
  const std::string &recorded = std::get<chain::StepEntry>(link->entry).batch,
                    found = batches::fingerprint_of_proof(batch);
  if (found != recorded)
    return corrupt(
        fmt::format("the sequences of the proof make a batch with the fingerprint {}, step {} has {}", found,
                    batch.step, recorded));
  return batches::check_sequences(proof);
}

// Whether the chain's batch, of which the digests are, has the form that the configuration gives it.
Status check_form(const batches::ProvenBatch& batch, const train::TrainConfig& config) {
  const auto wrong = [&](const std::string& found, const std::string& wanted) {
    return corrupt(fmt::format("at step {}: the chain's batch has {}, by the configuration it has {}",
                               batch.step, found, wanted));
  };
  const auto sequences = static_cast<int64_t>(batch.digests.size());
  if (const int64_t size = config.trainer.train_batch_size.at(batch.step - 1); sequences != size)
    return wrong(fmt::format("{} sequences", sequences), fmt::format("{} (trainer.train_batch_size)", size));
  if (const int64_t length = config.model_options().seq_len(); batch.seq_len != length)
    return wrong(fmt::format("sequences of {} tokens", batch.seq_len),
                 fmt::format("sequences of {} (model.seq_len)", length));
  if (const bool segments = batches::has_segments(config.data); batch.segments != segments)
    return wrong(batch.segments ? "segment ids" : "no segment ids", segments ? "segment ids" : "none");
  return {};
}

// Whether a sequence is made of training rows of the component, and has the component's segments.
Status check_source(const batches::DataProof& proof, int64_t at, const batches::ProvenSequence& sequence,
                    const data::Component& component, bool block_documents) {
  const auto wrong = [&](const std::string& what) {
    return corrupt(fmt::format("sequence {} of the batch of step {}: {}", at, proof.batch->step, what));
  };
  for (const batches::ProvenSpan& span : sequence.spans)
    for (const int64_t place : {span.row, span.next}) {
      if (place < 0) continue;
      const batches::ProvenRow& row = proof.rows[static_cast<size_t>(place)];
      if (row.proof.split != data::Split::kTrain)
        return wrong(fmt::format("its row {}:{} is held out, steps are done on rows of train",
                                 data::split_name(row.proof.split), row.proof.row));
      if (row.component != component.name)
        return wrong(fmt::format("its row {} is of the component \"{}\", the place is that of \"{}\"",
                                 row.proof.row, row.component, component.name));
    }
  const bool by_document = block_documents || data::is_packed(component.format);
  if (proof.batch->segments && sequence.spans.size() > 1 && sequence.by_document != by_document)
    return wrong(by_document ? "its documents are one segment, the configuration gives each its own"
                             : "each of its documents is a segment, the configuration joins them");
  return {};
}

// Whether every sequence comes from where the configuration takes it from. Of mixtures the components of all
// examples follow from the configuration alone; which rows of a component they get needs its token store.
Status check_sources(const batches::DataProof& proof, const train::TrainConfig& config) {
  const batches::ProvenBatch& batch = *proof.batch;
  const std::vector<data::Component> components = data::components_of(config.data);
  const batches::BatchSchedule schedule(config.trainer.train_batch_size);
  if (!schedule.is_countable(batch.step - 1))
    return unsupported(fmt::format("the examples before step {} cannot be counted", batch.step));
  std::optional<batches::Mixture> mixture;
  if (!config.data.components.empty()) {
    const auto key = batches::data_key(static_cast<uint64_t>(config.trainer.seed));
    ASSIGN_OR_RETURN(mixture, batches::Mixture::create(config.data, schedule, key));
  }
  int64_t at = batch.first;
  for (const batches::ProvenSequence& sequence : batch.sequences) {
    const int64_t example = schedule.first_example(batch.step - 1) + at;
    const data::Component& component = components[mixture ? (*mixture)(example).component : 0];
    RETURN_IF_ERROR(
        check_source(proof, at++, sequence, component, config.data.block_cross_document_attention));
  }
  return {};
}

// Whether the proof has the sequences of the leaf that it names, and a path of the right length.
Status check_leaf(const batches::ProvenBatch& batch, int64_t rows) {
  if (batch.leaf < 0) return {};
  const int64_t leaves = static_cast<int64_t>(batch.digests.size()) / rows,
                sequences = static_cast<int64_t>(batch.sequences.size());
  if (batch.leaves != leaves || batch.leaf >= leaves)
    return corrupt(fmt::format("the proof is of leaf {} of {}, step {} has {} leaves, from 0", batch.leaf,
                               batch.leaves, batch.step, leaves));
  if (batch.first != batch.leaf * rows || sequences != rows)
    return corrupt(fmt::format("the proof of leaf {} has sequences {} to {}, the leaf has {} to {}",
                               batch.leaf, batch.first, batch.first + sequences - 1, batch.leaf * rows,
                               (batch.leaf + 1) * rows - 1));
  if (merkle_root_of_path({}, static_cast<size_t>(batch.leaf), static_cast<size_t>(leaves), batch.leaf_path))
    return {};
  return corrupt(fmt::format("leaf_path has {} hashes, which are no path of leaf {} of {}",
                             batch.leaf_path.size(), batch.leaf, leaves));
}

}  // namespace

Status check_rows(const batches::DataProof& proof, const chain::Chain& chain) {
  if (chain.genesis().format == 1)
    return unsupported("the run's chain has format 1, which names no roots of data: rows cannot be proven");
  const chain::DataRecord record = chain::data_records(chain).back();
  ASSIGN_OR_RETURN(const auto roots, batches::roots_of_proof(proof));
  for (const auto& [component, root] : roots) {
    const auto known = record.roots.find(component);
    if (known == record.roots.end())
      return corrupt(fmt::format(
          "the proof has rows of the component \"{}\", the run's data has none of this name", component));
    if (known->second != root)
      return corrupt(fmt::format("the rows{} lead to the root {}, the run's data has {}",
                                 component.empty() ? "" : fmt::format(" of {}", component), root,
                                 known->second));
  }
  return {};
}

ProofCheck check_proof(const batches::DataProof& proof, const audit::RecordedRun& run) {
  if (Status rows = check_rows(proof, run.chain); !rows.ok() || !proof.batch) return {rows, {}};
  if (data::has_pairs(run.config.data))
    return {unsupported("preference pairs: there are no proofs of their sequences"), {}};
  if (Status of_step = check_is_of_step(proof, run.chain); !of_step.ok()) return {of_step, {}};
  const audit::OpenedPeriod& period = run.period_after(proof.batch->step - 1);
  if (Status form = check_form(*proof.batch, period.config); !form.ok()) return {{}, form};
  if (Status sources = check_sources(proof, period.config); !sources.ok()) return {sources, {}};
  return {check_leaf(*proof.batch, train::leaf_rows(period.programs)), {}};
}

}  // namespace ostro::leaf_audit
