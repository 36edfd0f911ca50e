#include "ostro/data/arrays/row_proof.h"

#include <algorithm>

#include "ostro/base/merkle.h"
#include "ostro/data/arrays/row_leaves.h"
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

Result<RowProof> prove_row(io::FileSystem& fs, const std::string& cache_dir, Split split, int64_t row) {
  ASSIGN_OR_RETURN(const auto ledger, LedgerFile::open(fs, cache_dir));
  ASSIGN_OR_RETURN(const RowTree tree, kept_row_tree(fs, cache_dir));
  if (store_root(tree) != ledger->head().root)
    return corrupt(fmt::format("{}: has the root {}, the ledger says {}; build the store again",
                               row_tree_path(cache_dir), store_root(tree), ledger->head().root));
  ASSIGN_OR_RETURN(const auto tables, ChunkTables::open(fs, cache_dir, ledger->head(), ledger->hash()));
  const auto own = static_cast<size_t>(split);
  OSTRO_CHECK(row >= 0 && row < tree.rows[own], "{}: row {} of {}", cache_dir, row, tree.rows[own]);
  const int64_t begin = row / RowTree::kBlockRows * RowTree::kBlockRows;
  ASSIGN_OR_RETURN(const RowLeaves rows, RowLeaves::open(fs, cache_dir, ledger->head(), *tables, split));
  ASSIGN_OR_RETURN(const std::vector<Sha256Digest> leaves,
                   rows.read(begin, std::min(RowTree::kBlockRows, tree.rows[own] - begin)));
  RowProof proof{.split = split,
                 .row = row,
                 .rows = tree.rows,
                 .other_split = tree.split_root(kSplits[1 - own]),
                 .path = merkle_path(leaves, static_cast<size_t>(row - begin))};
  const auto above = merkle_path(tree.blocks[own], static_cast<size_t>(row / RowTree::kBlockRows));
  proof.path.insert(proof.path.end(), above.begin(), above.end());
  return proof;
}

}  // namespace ostro::data
