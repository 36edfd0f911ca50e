#include "ostro/batches/proof/make_proof.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/batches/packing/row_digest.h"

namespace ostro::batches {
namespace {

// Collects rows, each once, with their proofs.
class RowCollector {
 public:
  RowCollector(const DataSet& stores, DataProof& proof) : stores_(stores), proof_(proof) {}

  // The place of the row in DataProof::rows.
  Result<int64_t> add(size_t component, data::Split split, int64_t row) {
    const auto [place, is_new] =
        places_.try_emplace({component, split, row}, static_cast<int64_t>(proof_.rows.size()));
    if (!is_new) return place->second;
    const DataSet::Part& part = stores_.parts()[component];
    const data::TokenStream& stream = part.store->split(split);
    auto prover = provers_.find({component, split});
    if (prover == provers_.end()) {
      auto made = data::RowProver::open(*part.fs, part.folder, split);
      if (!made.ok()) return made.error();
      prover = provers_.emplace(std::pair{component, split}, std::move(*made)).first;
    }
    ProvenRow out;
    out.component = part.component.name;
    ASSIGN_OR_RETURN(out.proof, prover->second.prove(row));
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, 1));
    std::vector<int32_t> ids(static_cast<size_t>(ends[1] - ends[0]));
    RETURN_IF_ERROR(stream.read(ends[0], ids));
    out.ids.assign(ids.begin(), ids.end());
    out.weights.resize(ids.size());
    RETURN_IF_ERROR(stream.read_weights(ends[0], out.weights));
    if (std::all_of(out.weights.begin(), out.weights.end(), [](float w) { return w == 1.0f; }))
      out.weights.clear();
    ASSIGN_OR_RETURN(const data::RowSource source, stream.source(row));
    out.file = source.file;
    out.document = source.document;
    proof_.rows.push_back(std::move(out));
    return place->second;
  }

 private:
  const DataSet& stores_;
  DataProof& proof_;
  std::map<std::tuple<size_t, data::Split, int64_t>, int64_t> places_;
  std::map<std::pair<size_t, data::Split>, data::RowProver> provers_;
};

Result<ProvenSequence> prove_sequence(const Batch& batch, int64_t at, const SequenceReader& reader,
                                      RowCollector& rows) {
  const size_t component = batch.components[static_cast<size_t>(at)];
  ProvenSequence out;
  out.sequence = batch.sequences[static_cast<size_t>(at)];
  ASSIGN_OR_RETURN(const std::vector<DocumentSpan> spans, reader.documents(out.sequence));
  const data::TokenStream& stream = reader.stream();
  for (const DocumentSpan& span : spans) {
    ProvenSpan proven{0, span.begin, span.end, span.first_token, -1};
    ASSIGN_OR_RETURN(proven.row, rows.add(component, data::Split::kTrain, span.row));
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(span.row, 1));
    // The token behind the row's last one is the first of a later row.
    if (ends[0] + span.first_token + span.end - span.begin == ends[1]) {
      ASSIGN_OR_RETURN(const std::vector<data::RowSpan> next, stream.rows_of(ends[1], 1));
      ASSIGN_OR_RETURN(proven.next, rows.add(component, data::Split::kTrain, next[0].row));
    }
    out.spans.push_back(proven);
  }
  // Spans are segments of their own where the second has another one than the first. A single span is one.
  const auto segment_at = [&](int64_t position) {
    return batch.segment_ids[static_cast<size_t>(at * batch.seq_len + position)];
  };
  out.by_document = batch.segment_ids.empty() || spans.size() < 2 || segment_at(spans[1].begin) == 1;
  return out;
}

}  // namespace

Result<DataProof> prove_rows(const DataSet& stores, size_t component, data::Split split,
                             std::span<const int64_t> rows) {
  DataProof proof;
  RowCollector collector(stores, proof);
  const data::TokenStream& stream = stores.parts()[component].store->split(split);
  for (const int64_t row : rows) {
    if (row < 0 || row >= stream.rows())
      return invalid_argument(fmt::format("row {}:{}: {} has {} rows, from 0", data::split_name(split), row,
                                          stream.name(), stream.rows()));
    RETURN_IF_ERROR(collector.add(component, split, row));
  }
  return proof;
}

Result<DataProof> prove_batch(const DataSet& stores, const Loader& loader, int64_t step, int64_t first,
                              int64_t count) {
  DataProof proof;
  RowCollector rows(stores, proof);
  ASSIGN_OR_RETURN(const Batch batch, loader.batch(step));
  if (batch.pairs)
    return unsupported(
        "preference pairs: proofs of the sequences of a step are for texts, conversations and "
        "prompts with responses; prove single rows with --row");
  for (int64_t at = first; at < first + count; ++at)
    if (loader.withheld().touches(batch.components[static_cast<size_t>(at)],
                                  batch.sequences[static_cast<size_t>(at)]))
      return unsupported(fmt::format(
          "row {} of step {} holds a document that data.without leaves out, so it is not made of its rows "
          "alone; prove single rows with --row",
          at, step + 1));
  ProvenBatch out;
  out.step = step + 1;
  out.seq_len = batch.seq_len;
  out.segments = !batch.segment_ids.empty();
  out.first = first;
  for (int64_t at = 0; at < batch.batch_size; ++at) out.digests.push_back(row_digest(batch, at));
  for (int64_t at = first; at < first + count; ++at) {
    ASSIGN_OR_RETURN(
        ProvenSequence sequence,
        prove_sequence(batch, at, loader.reader(batch.components[static_cast<size_t>(at)]), rows));
    out.sequences.push_back(std::move(sequence));
  }
  proof.batch = std::move(out);
  return proof;
}

}  // namespace ostro::batches
