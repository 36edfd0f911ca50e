#include "ostro/data/arrays/row_proof.h"

#include <algorithm>

#include "ostro/base/merkle.h"
#include "ostro/data/ledger/ledger_file.h"

namespace ostro::data {

std::optional<std::string> RowProof::root(std::span<const uint32_t> ids,
                                          std::span<const float> weights) const {
  const auto own = static_cast<size_t>(split);
  if (row < 0 || row >= rows[own]) return std::nullopt;
  const Sha256Digest leaf = row_leaf(hash_row(ids, weights), static_cast<int64_t>(ids.size()));
  const auto split_root =
      merkle_root_of_path(leaf, static_cast<size_t>(row), static_cast<size_t>(rows[own]), path);
  if (!split_root) return std::nullopt;
  std::array<Sha256Digest, 2> splits = {other_split, other_split};
  splits[own] = *split_root;
  return to_hex(store_root(rows, splits));
}

Result<RowProver> RowProver::open(io::FileSystem& fs, const std::string& cache_dir, Split split) {
  ASSIGN_OR_RETURN(const auto ledger, LedgerFile::open(fs, cache_dir));
  ASSIGN_OR_RETURN(RowTree tree, kept_row_tree(fs, cache_dir));
  if (store_root(tree) != ledger->head().root)
    return corrupt(fmt::format("{}: has the root {}, the ledger says {}; build the store again",
                               row_tree_path(cache_dir), store_root(tree), ledger->head().root));
  ASSIGN_OR_RETURN(const auto tables, ChunkTables::open(fs, cache_dir, ledger->head(), ledger->hash()));
  ASSIGN_OR_RETURN(RowLeaves rows, RowLeaves::open(fs, cache_dir, ledger->head(), *tables, split));
  return RowProver(split, std::move(tree), std::move(rows));
}

Result<RowProof> RowProver::prove(int64_t row) {
  const auto own = static_cast<size_t>(split_);
  OSTRO_CHECK(row >= 0 && row < rows(), "row {} of {}", row, rows());
  const int64_t begin = row / RowTree::kBlockRows * RowTree::kBlockRows;
  if (begin != begin_) {
    ASSIGN_OR_RETURN(leaves_, rows_.read(begin, std::min(RowTree::kBlockRows, rows() - begin)));
    begin_ = begin;
  }
  RowProof proof{.split = split_,
                 .row = row,
                 .rows = tree_.rows,
                 .other_split = tree_.split_root(kSplits[1 - own]),
                 .path = merkle_path(leaves_, static_cast<size_t>(row - begin))};
  const auto above = merkle_path(tree_.blocks[own], static_cast<size_t>(row / RowTree::kBlockRows));
  proof.path.insert(proof.path.end(), above.begin(), above.end());
  return proof;
}

Result<RowProof> prove_row(io::FileSystem& fs, const std::string& cache_dir, Split split, int64_t row) {
  ASSIGN_OR_RETURN(RowProver prover, RowProver::open(fs, cache_dir, split));
  return prover.prove(row);
}

}  // namespace ostro::data
