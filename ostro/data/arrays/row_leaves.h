// RowLeaves: computes the leaves of a split's rows for the tree of rows (row_tree.h).
//
// Where the store keeps the hashes of rows, it reads these and the row ends, else ids and weights, a piece of
// a row at a time. Errors are those of VerifiedArray.
#pragma once

#include <optional>

#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/arrays/verified_array.h"

namespace ostro::data {

// What the leaf of a row is made of (row_leaf).
struct RowRecord {
  Sha256Digest hash{};  // hash_row
  int64_t tokens = 0;
};

// Thread-safe. The file system must outlive it.
class RowLeaves {
 public:
  // The ledger, with or without files, and its chunk tables are those in `cache_dir`. Errors as
  // VerifiedArray::open.
  static Result<RowLeaves> open(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                                const ChunkTables& tables, Split split);

  // Of rows [first, first + count), which must exist.
  Result<std::vector<RowRecord>> records(int64_t first, int64_t count) const;
  // Their leaves.
  Result<std::vector<Sha256Digest>> read(int64_t first, int64_t count) const;

 private:
  RowLeaves() = default;
  const VerifiedArray& array(ArrayId id) const { return *arrays_[static_cast<size_t>(id)]; }
  // Of the row that has tokens [begin, end).
  Result<Sha256Digest> hash(int64_t row, int64_t begin, int64_t end) const;
  // The weights of tokens [first, first + out.size()) of the row that begins at `begin`.
  Status read_weights(int64_t row, int64_t begin, int64_t first, std::span<float> out) const;

  WeightKind kind_ = WeightKind::kNone;
  std::array<std::optional<VerifiedArray>, kArrayCount> arrays_;  // by ArrayId; those that are needed
};

}  // namespace ostro::data
