#include "ostro/batches/proof/data_proof.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/batches/packing/row_digest.h"

namespace ostro::batches {
namespace {

std::string row_name(const ProvenRow& row) {
  return fmt::format("{}{}:{}", row.component.empty() ? "" : row.component + " ",
                     data::split_name(row.proof.split), row.proof.row);
}

float weight_of(const ProvenRow& row, size_t token) {
  return row.weights.empty() ? 1.0f : row.weights[token];
}

// Fills positions of row `at` of the batch from the span's row. False: the span does not fit its row.
bool fill_span(const DataProof& proof, const ProvenSpan& span, int64_t at, int32_t segment, Batch& batch) {
  const ProvenRow& row = proof.rows[static_cast<size_t>(span.row)];
  const auto tokens = static_cast<int64_t>(row.ids.size());
  const int64_t count = span.end - span.begin, behind = span.first_token + count;
  if (span.first_token < 0 || behind > tokens || (behind == tokens && span.next < 0)) return false;
  const ProvenRow* next = span.next < 0 ? nullptr : &proof.rows[static_cast<size_t>(span.next)];
  if (behind == tokens && next->ids.empty()) return false;
  for (int64_t i = 0; i < count; ++i) {
    const auto position = static_cast<size_t>(at * batch.seq_len + span.begin + i),
               token = static_cast<size_t>(span.first_token + i);
    const bool inside = token + 1 < row.ids.size();
    batch.tokens[position] = static_cast<int32_t>(row.ids[token]);
    batch.targets[position] = static_cast<int32_t>(inside ? row.ids[token + 1] : next->ids[0]);
    batch.loss_mask[position] = inside ? weight_of(row, token + 1) : weight_of(*next, 0);
    if (!batch.segment_ids.empty()) batch.segment_ids[position] = segment;
  }
  return true;
}

bool fill_sequence(const DataProof& proof, const ProvenSequence& sequence, int64_t at, Batch& batch) {
  int64_t position = 0;
  int32_t segment = 0;
  const auto rows = static_cast<int64_t>(proof.rows.size());
  for (const ProvenSpan& span : sequence.spans) {
    if (span.row < 0 || span.row >= rows || span.next >= rows || span.begin != position ||
        span.end <= span.begin || span.end > batch.seq_len)
      return false;
    if (!fill_span(proof, span, at, segment, batch)) return false;
    segment += sequence.by_document ? 1 : 0;
    position = span.end;
  }
  pad_row(batch, at, position, sequence.by_document ? segment : 1);
  return true;
}

}  // namespace

Result<std::map<std::string, std::string>> roots_of_proof(const DataProof& proof) {
  std::map<std::string, std::string> roots;
  for (const ProvenRow& row : proof.rows) {
    const auto root = row.weights.empty() || row.weights.size() == row.ids.size()
                          ? row.proof.root(row.ids, row.weights)
                          : std::nullopt;
    if (!root) return corrupt(fmt::format("row {}: its proof does not fit its numbers", row_name(row)));
    const auto [known, is_new] = roots.emplace(row.component, *root);
    if (!is_new && known->second != *root)
      return corrupt(fmt::format("row {} leads to the root {}, another row of the component to {}",
                                 row_name(row), *root, known->second));
  }
  return roots;
}

Result<Batch> batch_of_proof(const DataProof& proof) {
  if (!proof.batch) return corrupt("the proof has rows alone, and no batch of a step");
  const ProvenBatch& from = *proof.batch;
  const auto rows = static_cast<int64_t>(from.digests.size()),
             filled = static_cast<int64_t>(from.sequences.size());
  if (from.first < 0 || from.first + filled > rows)
    return corrupt(
        fmt::format("sequences {} to {} of a batch of {}", from.first, from.first + filled - 1, rows));
  Batch batch = make_batch(from.step - 1, rows, {.seq_len = from.seq_len, .segments = from.segments});
  for (int64_t i = 0; i < filled; ++i) {
    const int64_t at = from.first + i;
    const ProvenSequence& sequence = from.sequences[static_cast<size_t>(i)];
    if (!fill_sequence(proof, sequence, at, batch) ||
        row_digest(batch, at) != from.digests[static_cast<size_t>(at)])
      return corrupt(
          fmt::format("sequence {} of the batch of step {} is not what its rows make", at, from.step));
    batch.sequences[static_cast<size_t>(at)] = sequence.sequence;
  }
  return batch;
}

std::string fingerprint_of_proof(const ProvenBatch& batch) {
  Sha256 all;
  for (const Sha256Digest& digest : batch.digests) all.update(std::as_bytes(std::span(digest)));
  return to_hex(all.finish());
}

}  // namespace ostro::batches
