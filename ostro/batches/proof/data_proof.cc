#include "ostro/batches/proof/data_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace ostro::batches {
namespace {

std::string row_name(const ProvenRow& row) {
  return fmt::format("{}{}:{}", row.component.empty() ? "" : row.component + " ",
                     data::split_name(row.proof.split), row.proof.row);
}

float weight_of(const ProvenRow& row, size_t token) {
  return row.weights.empty() ? 1.0f : row.weights[token];
}

// Whether the spans are stretches of rows of the proof, one after another from position 0.
bool spans_fit(const DataProof& proof, const ProvenSequence& sequence, int64_t seq_len) {
  const auto rows = static_cast<int64_t>(proof.rows.size());
  int64_t position = 0;
  for (const ProvenSpan& span : sequence.spans) {
    if (span.row < 0 || span.row >= rows || span.next >= rows || span.begin != position ||
        span.end <= span.begin || span.end > seq_len || span.first_token < 0)
      return false;
    const ProvenRow& row = proof.rows[static_cast<size_t>(span.row)];
    const auto tokens = static_cast<int64_t>(row.ids.size());
    const int64_t behind = span.first_token + span.end - span.begin;
    if (behind > tokens || (!row.weights.empty() && row.weights.size() != row.ids.size())) return false;
    if (behind == tokens) {
      if (span.next < 0) return false;
      const ProvenRow& next = proof.rows[static_cast<size_t>(span.next)];
      if (next.ids.empty() || (!next.weights.empty() && next.weights.size() != next.ids.size())) return false;
    }
    position = span.end;
  }
  return position > 0;
}

// What a position of a sequence holds; as it is made: padding.
struct Held {
  int32_t token = 0, target = 0;
  float weight = 0;
  int32_t segment = 0;
};

// Calls take(Held) for all positions, in their order, of a sequence whose spans fit.
template <typename Take>
void each_position(const DataProof& proof, const ProvenSequence& sequence, int64_t seq_len,
                   const Take& take) {
  int32_t segment = 0;
  int64_t position = 0;
  for (const ProvenSpan& span : sequence.spans) {
    const ProvenRow& row = proof.rows[static_cast<size_t>(span.row)];
    auto token = static_cast<size_t>(span.first_token);
    for (; position < span.end; ++position, ++token) {
      const bool inside = token + 1 < row.ids.size();
      const ProvenRow& next = inside ? row : proof.rows[static_cast<size_t>(span.next)];
      const size_t target = inside ? token + 1 : 0;
      take(Held{static_cast<int32_t>(row.ids[token]), static_cast<int32_t>(next.ids[target]),
                weight_of(next, target), segment});
    }
    segment += sequence.by_document ? 1 : 0;
  }
  const Held padding{.segment = sequence.by_document ? segment : 1};
  for (; position < seq_len; ++position) take(padding);
}

// row_digest of the sequence, which is nowhere in memory as a whole: seq_len comes from a file.
Sha256Digest digest_of(const DataProof& proof, const ProvenSequence& sequence) {
  const int64_t seq_len = proof.batch->seq_len;
  Sha256 hash;
  hash.update(std::as_bytes(std::span(&seq_len, 1)));
  std::array<int32_t, 1024> part{};
  const auto add = [&](const auto& field) {
    size_t filled = 0;
    each_position(proof, sequence, seq_len, [&](const Held& held) {
      part[filled++] = std::bit_cast<int32_t>(held.*field);
      if (filled == part.size()) hash.update(std::as_bytes(std::span(part))), filled = 0;
    });
    hash.update(std::as_bytes(std::span(part).first(filled)));
  };
  add(&Held::token);
  add(&Held::target);
  add(&Held::weight);
  if (proof.batch->segments) add(&Held::segment);
  return hash.finish();
}

// Every row has a part in the sequences.
Status check_all_used(const DataProof& proof) {
  std::vector<bool> used(proof.rows.size(), false);
  for (const ProvenSequence& sequence : proof.batch->sequences)
    for (const ProvenSpan& span : sequence.spans) {
      used[static_cast<size_t>(span.row)] = true;
      if (span.next >= 0) used[static_cast<size_t>(span.next)] = true;
    }
  const auto spare = std::find(used.begin(), used.end(), false);
  if (spare == used.end()) return {};
  return corrupt(fmt::format("row {} is in no sequence that the proof has of step {}",
                             row_name(proof.rows[static_cast<size_t>(spare - used.begin())]),
                             proof.batch->step));
}

}  // namespace

Result<std::map<std::string, std::string>> roots_of_proof(const DataProof& proof) {
  if (proof.rows.empty()) return corrupt("the proof has no rows");
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

Status check_sequences(const DataProof& proof) {
  if (!proof.batch) return corrupt("the proof has rows alone, and no batch of a step");
  const ProvenBatch& from = *proof.batch;
  const auto rows = static_cast<int64_t>(from.digests.size()),
             filled = static_cast<int64_t>(from.sequences.size());
  if (filled == 0) return corrupt(fmt::format("the proof has no sequences of step {}", from.step));
  if (from.first < 0 || from.first + filled > rows)
    return corrupt(
        fmt::format("sequences {} to {} of a batch of {}", from.first, from.first + filled - 1, rows));
  for (int64_t i = 0; i < filled; ++i) {
    const int64_t at = from.first + i;
    const ProvenSequence& sequence = from.sequences[static_cast<size_t>(i)];
    if (!spans_fit(proof, sequence, from.seq_len) ||
        digest_of(proof, sequence) != from.digests[static_cast<size_t>(at)])
      return corrupt(
          fmt::format("sequence {} of the batch of step {} is not what its rows make", at, from.step));
  }
  return check_all_used(proof);
}

Result<Batch> batch_of_proof(const DataProof& proof) {
  RETURN_IF_ERROR(check_sequences(proof));
  const ProvenBatch& from = *proof.batch;
  Batch batch = make_batch(from.step - 1, static_cast<int64_t>(from.digests.size()),
                           {.seq_len = from.seq_len, .segments = from.segments});
  int64_t at = from.first;
  for (const ProvenSequence& sequence : from.sequences) {
    auto position = static_cast<size_t>(at * from.seq_len);
    each_position(proof, sequence, from.seq_len, [&](const Held& held) {
      batch.tokens[position] = held.token;
      batch.targets[position] = held.target;
      batch.loss_mask[position] = held.weight;
      if (!batch.segment_ids.empty()) batch.segment_ids[position] = held.segment;
      ++position;
    });
    batch.sequences[static_cast<size_t>(at++)] = sequence.sequence;
  }
  return batch;
}

std::string fingerprint_of_proof(const ProvenBatch& batch) {
  Sha256 all;
  for (const Sha256Digest& digest : batch.digests) all.update(std::as_bytes(std::span(digest)));
  return to_hex(all.finish());
}

}  // namespace ostro::batches
