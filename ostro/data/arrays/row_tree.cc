#include "ostro/data/arrays/row_tree.h"

#include <algorithm>
#include <cstring>

#include "ostro/base/merkle.h"
#include "ostro/base/parallel.h"
#include "ostro/data/arrays/row_leaves.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

void append_number(std::string& out, int64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}
void append_digest(std::string& out, const Sha256Digest& digest) {
  out.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

size_t blocks_of(int64_t rows) {
  return static_cast<size_t>(rows / RowTree::kBlockRows + (rows % RowTree::kBlockRows != 0 ? 1 : 0));
}

// The numbers of rows, the roots of blocks, and the SHA-256 of these bytes.
std::string encode_tree(const RowTree& tree) {
  std::string out;
  for (const int64_t rows : tree.rows) append_number(out, rows);
  for (const auto& blocks : tree.blocks)
    for (const Sha256Digest& block : blocks) append_digest(out, block);
  append_digest(out, sha256(std::string_view(out)));
  return out;
}

}  // namespace

Sha256Digest row_leaf(const Sha256Digest& row_hash, int64_t tokens) {
  std::string data;
  append_digest(data, row_hash);
  append_number(data, tokens);
  return merkle_leaf(data);
}

Sha256Digest RowTree::split_root(Split split) const {
  return merkle_root(blocks[static_cast<size_t>(split)]);
}

Sha256Digest store_root(const std::array<int64_t, 2>& rows, const std::array<Sha256Digest, 2>& splits) {
  std::string data = "\x02";
  for (size_t s = 0; s < 2; ++s) {
    append_number(data, rows[s]);
    append_digest(data, splits[s]);
  }
  return sha256(std::string_view(data));
}

std::string store_root(const RowTree& tree) {
  return to_hex(store_root(tree.rows, {tree.split_root(Split::kTrain), tree.split_root(Split::kValidation)}));
}

Result<RowTree> read_row_tree(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                              const ChunkTables& tables, int threads, const RowTree& known,
                              const std::array<int64_t, 2>& same_rows) {
  RowTree tree;
  for (const Split split : kSplits) {
    const auto s = static_cast<size_t>(split);
    const int64_t rows = tree.rows[s] = ledger.split(split).rows;
    std::vector<Sha256Digest>& blocks = tree.blocks[s];
    blocks = known.blocks[s];
    blocks.resize(std::min(blocks.size(), static_cast<size_t>(same_rows[s] / RowTree::kBlockRows)));
    const size_t first = blocks.size();
    blocks.resize(blocks_of(rows));
    if (first == blocks.size()) continue;
    ASSIGN_OR_RETURN(const RowLeaves leaves, RowLeaves::open(fs, cache_dir, ledger, tables, split));
    RETURN_IF_ERROR(
        parallel_for(static_cast<int64_t>(blocks.size() - first), threads, [&](int64_t i) -> Status {
          const size_t block = first + static_cast<size_t>(i);
          const int64_t begin = static_cast<int64_t>(block) * RowTree::kBlockRows;
          ASSIGN_OR_RETURN(const auto read, leaves.read(begin, std::min(RowTree::kBlockRows, rows - begin)));
          blocks[block] = merkle_root(read);
          return {};
        }));
  }
  return tree;
}

std::string row_tree_path(const std::string& cache_dir) { return io::join_path(cache_dir, "rows.tree"); }

Result<RowTree> kept_row_tree(io::FileSystem& fs, const std::string& cache_dir) {
  const std::string path = row_tree_path(cache_dir);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  const auto damaged = [&] { return corrupt(fmt::format("{}: is damaged: its checksum is wrong", path)); };
  constexpr size_t kHead = 2 * sizeof(int64_t), kDigest = sizeof(Sha256Digest);
  if (text.size() < kHead + kDigest || (text.size() - kHead) % kDigest != 0) return damaged();
  RowTree tree;
  std::memcpy(tree.rows.data(), text.data(), kHead);
  size_t at = kHead, left = (text.size() - kHead) / kDigest - 1;
  for (size_t s = 0; s < 2; ++s) {
    if (tree.rows[s] < 0 || blocks_of(tree.rows[s]) > left) return damaged();
    tree.blocks[s].resize(blocks_of(tree.rows[s]));
    left -= tree.blocks[s].size();
    for (Sha256Digest& block : tree.blocks[s]) {
      std::memcpy(block.data(), text.data() + at, kDigest);
      at += kDigest;
    }
  }
  if (left != 0 || encode_tree(tree) != text) return damaged();
  return tree;
}

Status finish_store(io::FileSystem& fs, const std::string& cache_dir, StoreLedger& ledger, int threads,
                    const RowTree& known, const std::array<int64_t, 2>& same_rows) {
  const std::string hash = ledger.hash();
  RETURN_IF_ERROR(write_chunk_tables(fs, cache_dir, ledger, hash));
  ASSIGN_OR_RETURN(const auto tables, ChunkTables::open(fs, cache_dir, ledger, hash));
  ASSIGN_OR_RETURN(const RowTree tree,
                   read_row_tree(fs, cache_dir, ledger, *tables, threads, known, same_rows));
  RETURN_IF_ERROR(io::write_file_atomically(fs, row_tree_path(cache_dir), encode_tree(tree)));
  ledger.root = store_root(tree);
  return write_ledger(fs, cache_dir, ledger);
}

}  // namespace ostro::data
