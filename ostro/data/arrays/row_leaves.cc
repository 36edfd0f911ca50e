#include "ostro/data/arrays/row_leaves.h"

#include <algorithm>

#include "ostro/data/ledger/store_parts.h"

namespace ostro::data {
namespace {

constexpr int64_t kPieceOfRow = 64 << 10;  // tokens at a time, so that a long row is not held in memory
constexpr size_t kLeafCacheBytes = 64 << 20;

// Calls visit(first, count) for pieces of tokens [begin, end), in order.
template <typename Visit>
Status for_pieces(int64_t begin, int64_t end, const Visit& visit) {
  for (int64_t first = begin; first < end; first += kPieceOfRow)
    RETURN_IF_ERROR(visit(first, static_cast<size_t>(std::min(kPieceOfRow, end - first))));
  return {};
}

bool are_ones(std::span<const float> weights) {
  return std::all_of(weights.begin(), weights.end(), [](float weight) { return weight == 1.0f; });
}

}  // namespace

Sha256Digest hash_row(std::span<const uint32_t> ids, std::span<const float> weights) {
  Sha256 hash;
  hash.update(std::as_bytes(ids));
  if (!are_ones(weights)) hash.update(std::as_bytes(weights));
  return hash.finish();
}

Result<RowLeaves> RowLeaves::open(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                                  const ChunkTables& tables, Split split) {
  RowLeaves out;
  out.kind_ = ledger.preprocessing.fields.weights;
  const auto cache = std::make_shared<ChunkCache>(kLeafCacheBytes);
  const std::vector<ArrayPlace> places = ledger.places();
  const bool has_hashes = std::any_of(places.begin(), places.end(),
                                      [](const ArrayPlace& p) { return p.id == ArrayId::kRowHash; });
  for (const ArrayPlace& place : places) {
    const bool of_content = place.id == ArrayId::kData || place.id == ArrayId::kWeights;
    if (place.id != ArrayId::kOffsets && place.id != ArrayId::kRowHash && (has_hashes || !of_content))
      continue;
    ASSIGN_OR_RETURN(
        VerifiedArray array,
        VerifiedArray::open(fs, array_source(cache_dir, ledger, split, place),
                            ledger.split(split).array(place.id), tables.table(split, place.id), cache,
                            {.sparse = !ledger.levanter_cache.empty(),
                             .vocab_size = place.id == ArrayId::kData ? ledger.preprocessing.vocab_size : 0,
                             .keep = KeepChunks::kAtOnce}));
    out.arrays_[static_cast<size_t>(place.id)].emplace(std::move(array));
  }
  return out;
}

Result<std::vector<RowRecord>> RowLeaves::records(int64_t first, int64_t count) const {
  std::vector<int64_t> ends(static_cast<size_t>(count) + 1);
  RETURN_IF_ERROR(array(ArrayId::kOffsets).read(first, std::span(ends)));
  if (first == 0) ends[0] = 0;  // where the number of rows is
  const bool has_hashes = arrays_[static_cast<size_t>(ArrayId::kRowHash)].has_value();
  std::vector<uint8_t> hashes(has_hashes ? static_cast<size_t>(count) * 32 : 0);
  if (has_hashes) RETURN_IF_ERROR(array(ArrayId::kRowHash).read(first * 32, std::span(hashes)));
  std::vector<RowRecord> rows(static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].tokens = ends[i + 1] - ends[i];
    if (has_hashes) {
      std::copy_n(hashes.begin() + static_cast<std::ptrdiff_t>(i * 32), 32, rows[i].hash.begin());
    } else {
      ASSIGN_OR_RETURN(rows[i].hash, hash(first + static_cast<int64_t>(i), ends[i], ends[i + 1]));
    }
  }
  return rows;
}

Result<std::vector<Sha256Digest>> RowLeaves::read(int64_t first, int64_t count) const {
  ASSIGN_OR_RETURN(const std::vector<RowRecord> rows, records(first, count));
  std::vector<Sha256Digest> leaves;
  for (const RowRecord& row : rows) leaves.push_back(row_leaf(row.hash, row.tokens));
  return leaves;
}

Result<Sha256Digest> RowLeaves::hash(int64_t row, int64_t begin, int64_t end) const {
  Sha256 hash;
  std::vector<uint32_t> ids;
  RETURN_IF_ERROR(for_pieces(begin, end, [&](int64_t first, size_t count) -> Status {
    ids.resize(count);
    RETURN_IF_ERROR(array(ArrayId::kData).read(first, std::span(ids)));
    hash.update(std::as_bytes(std::span(ids)));
    return {};
  }));
  if (kind_ == WeightKind::kNone) return hash.finish();
  bool ones = true;
  std::vector<float> weights;
  for (const bool hashing : {false, true}) {
    if (hashing && ones) break;
    RETURN_IF_ERROR(for_pieces(begin, end, [&](int64_t first, size_t count) -> Status {
      weights.resize(count);
      RETURN_IF_ERROR(read_weights(row, begin, first, weights));
      ones = ones && are_ones(weights);
      if (hashing) hash.update(std::as_bytes(std::span(weights)));
      return {};
    }));
  }
  return hash.finish();
}

Status RowLeaves::read_weights(int64_t row, int64_t begin, int64_t first, std::span<float> out) const {
  if (kind_ != WeightKind::kSourcesLen) return array(ArrayId::kWeights).read(first, out);
  int64_t prompt = 0;
  RETURN_IF_ERROR(array(ArrayId::kWeights).read(row, std::span(&prompt, 1)));
  const auto zeros = std::clamp<int64_t>(prompt - (first - begin), 0, static_cast<int64_t>(out.size()));
  std::fill(out.begin(), out.begin() + zeros, 0.0f);
  std::fill(out.begin() + zeros, out.end(), 1.0f);
  return {};
}

}  // namespace ostro::data
