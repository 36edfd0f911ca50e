// RowTree: the rows of a store as leaves of a Merkle tree (base/merkle.h).
//
// The root of a store stands for all its rows; one row can be checked against it without the others
// (docs/reference/formats/token_store.md, "The tree of rows"). Errors are those of reading and writing, and
// kCorrupt for damage. Any thread may call the functions.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger/chunk_table.h"
#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// SHA-256 of a row's ids (u32, little-endian) and, when not all are 1, its weights (f32).
Sha256Digest hash_row(std::span<const uint32_t> ids, std::span<const float> weights);

// The leaf of a row with this hash and number of tokens.
Sha256Digest row_leaf(const Sha256Digest& row_hash, int64_t tokens);

// The trees of both splits down to blocks of rows; the part below a block is computed again from the rows.
struct RowTree {
  static constexpr int64_t kBlockRows = 1024;
  std::array<int64_t, 2> rows{};                    // by Split
  std::array<std::vector<Sha256Digest>, 2> blocks;  // by Split: the root of each block

  Sha256Digest split_root(Split split) const;
  bool operator==(const RowTree&) const = default;
};

// The root of a store, from those of its splits.
Sha256Digest store_root(const std::array<int64_t, 2>& rows, const std::array<Sha256Digest, 2>& splits);
// The root of a store in hexadecimal, as in StoreLedger::root.
std::string store_root(const RowTree& tree);

// The tree of a store whose chunk tables are written. Blocks that lie within the first `same_rows` rows are
// taken from `known`, the others are read.
Result<RowTree> read_row_tree(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                              const ChunkTables& tables, int threads, const RowTree& known = {},
                              const std::array<int64_t, 2>& same_rows = {});

// Reads the tree that the store's folder keeps. Errors: kCorrupt, with the file, when it is damaged;
// kNotFound.
Result<RowTree> kept_row_tree(io::FileSystem& fs, const std::string& cache_dir);
std::string row_tree_path(const std::string& cache_dir);

// Completes a store: writes the chunk tables, the tree of rows and last the ledger, with its root. `ledger`
// has the sums of all chunks. `known` and `same_rows` are as in read_row_tree.
Status finish_store(io::FileSystem& fs, const std::string& cache_dir, StoreLedger& ledger, int threads,
                    const RowTree& known = {}, const std::array<int64_t, 2>& same_rows = {});

}  // namespace ostro::data
