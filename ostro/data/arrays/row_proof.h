// RowProof: proves that a row is in a store to a reader who has only the row and the store's root.
//
// prove_row makes the proof from the store; root() checks it without the store. A value.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/data/arrays/row_leaves.h"
#include "ostro/data/arrays/row_tree.h"

namespace ostro::data {

struct RowProof {
  Split split = Split::kTrain;
  int64_t row = 0;                 // number in the split, from 0
  std::array<int64_t, 2> rows{};   // of the store, by Split
  Sha256Digest other_split{};      // root of the other split
  std::vector<Sha256Digest> path;  // from the row's leaf up to the root of its split (merkle_path)

  // The root of the store that has this row, with these ids and weights (empty: all are 1), at this place.
  // Nothing when the proof's numbers do not fit each other. The row is in a store if its root is this one.
  std::optional<std::string> root(std::span<const uint32_t> ids, std::span<const float> weights) const;
};

// Proves rows of one split of a store. Not thread-safe. The file system must outlive it.
class RowProver {
 public:
  // Reads the store's tree of rows. Errors: as prove_row.
  static Result<RowProver> open(io::FileSystem& fs, const std::string& cache_dir, Split split);
  // The proof of a row that exists. Reads the block of rows around it, unless it is that of the row before.
  Result<RowProof> prove(int64_t row);
  int64_t rows() const { return tree_.rows[static_cast<size_t>(split_)]; }

 private:
  RowProver(Split split, RowTree tree, RowLeaves leaves)
      : split_(split), tree_(std::move(tree)), rows_(std::move(leaves)) {}
  Split split_;
  RowTree tree_;
  RowLeaves rows_;
  int64_t begin_ = -1;  // of the block in leaves_
  std::vector<Sha256Digest> leaves_;
};

// The proof of a row that exists. Reads the store's tree of rows and the block of rows around it. kNotFound
// or kCorrupt when the tree is missing (a store of format 3) or damaged.
Result<RowProof> prove_row(io::FileSystem& fs, const std::string& cache_dir, Split split, int64_t row);

}  // namespace ostro::data
