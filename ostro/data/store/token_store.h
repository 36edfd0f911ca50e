// TokenStore, TokenStream: an open token store, read by the position of tokens in the stream of a split, with
// the documents that they come from.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/data/arrays/verified_array.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/ledger/ledger_file.h"

namespace ostro::data {

// A cache of decoded chunks of the size data.chunk_cache_mib.
std::shared_ptr<ChunkCache> make_chunk_cache(const DataOptions& options);

// A row (document) that overlaps a stretch of the stream.
struct RowSpan {
  int64_t row = 0;
  int64_t begin = 0, end = 0;  // positions of all its tokens in the stream
};

// Where a row comes from.
struct RowSource {
  std::string file;      // path at the time the store was built
  int64_t document = 0;  // number in the file, from 1: the line of a .jsonl
  int64_t bytes = 0;     // of the document's text
  // The row is bytes [begin, end) of the unpacked file. Both are 0 where the store does not keep them: for
  // rows of a .parquet, and for .jsonl in stores of a configuration without components (row_places.h finds
  // those).
  int64_t begin = 0, end = 0;
  const FileLedger* ledger = nullptr;  // entry of the file, owned by the store; null for a Levanter cache
};

// All tokens of one split: its documents, one after the other. A Levanter cache that is used in place has no
// sources. Thread-safe.
class TokenStream {
 public:
  const std::string& name() const { return name_; }
  int64_t rows() const { return ledger_->split(split_).rows; }
  int64_t tokens() const { return ledger_->split(split_).tokens; }
  int64_t vocab_size() const { return ledger_->preprocessing.vocab_size; }

  const SplitLedger& ledger() const { return ledger_->split(split_); }
  WeightKind weight_kind() const { return ledger_->preprocessing.fields.weights; }
  bool has_sources() const { return ledger_->levanter_cache.empty(); }

  // Tokens per byte of text over the whole split. Converts nats per token to nats per byte.
  double tokens_per_byte() const;

  // Tokens [first, first + out.size()), which must exist.
  Status read(int64_t first, std::span<int32_t> out) const;
  // Reads tokens [first, first + tokens.size()) and, as `targets` of the same length, the token after each.
  Status read_pairs(int64_t first, std::span<int32_t> tokens, std::span<int32_t> targets) const;
  // The loss weights of tokens [first, first + out.size()). The weight of a token is that of predicting it
  // from the tokens before it.
  Status read_weights(int64_t first, std::span<float> out) const;
  // Where rows [row, row + count) end, as positions in the stream. Gives count + 1 values: the begin of the
  // first row, then the end of each.
  Result<std::vector<int64_t>> row_ends(int64_t row, int64_t count) const;
  // The rows that hold tokens [first, first + count), in order, without empty rows.
  Result<std::vector<RowSpan>> rows_of(int64_t first, int64_t count) const;
  // Where a row comes from. For a Levanter cache: the folder of the split or shard, and the row's number in
  // it, from 1.
  Result<RowSource> source(int64_t row) const;
  // hash_row (row_tree.h) of a row. Two runs that saw the same row have the same hash.
  Result<Sha256Digest> row_hash(int64_t row) const;

  // An array of the split, for code that copies rows. Ids may have another type there than on disk.
  const VerifiedArray& array(ArrayId id) const { return *arrays_[static_cast<size_t>(id)]; }

 private:
  friend class TokenStore;
  TokenStream(std::shared_ptr<const LedgerFile> file, Split split, std::string name,
              std::array<std::optional<VerifiedArray>, kArrayCount> arrays);
  RowSource row_in_cache(int64_t row) const;
  bool has(ArrayId id) const { return arrays_[static_cast<size_t>(id)].has_value(); }

  std::shared_ptr<const LedgerFile> file_;
  const StoreLedger* ledger_;  // its head
  Split split_;
  std::string name_;                                              // cache_dir/train, for errors
  std::array<std::optional<VerifiedArray>, kArrayCount> arrays_;  // by ArrayId
};

// A finished store. Opening reads only the ledger and the metadata of the arrays. The file system must
// outlive it.
class TokenStore {
 public:
  // kNotFound when there is no store or it is unfinished, kCorrupt when ledger or metadata are damaged.
  // `cache` keeps decoded chunks, and several stores may share it; null: a cache of its own, of the default
  // size.
  static Result<std::shared_ptr<const TokenStore>> open(io::FileSystem& fs, const std::string& cache_dir,
                                                        std::shared_ptr<ChunkCache> cache = nullptr,
                                                        KeepChunks keep = KeepChunks::kSecondTime);
  // The store of a component. Fails when it was not made with this tokenizer and these options. How chunks
  // are kept is chosen for data.shuffle.
  static Result<std::shared_ptr<const TokenStore>> open(io::FileSystem& fs, const DataOptions& options,
                                                        const Component& component,
                                                        const tokenizer::Tokenizer& tokenizer,
                                                        std::shared_ptr<ChunkCache> cache = nullptr);

  // The ledger without the source files.
  const StoreLedger& ledger() const { return file_->head(); }
  // StoreLedger::hash of the whole ledger.
  const std::string& hash() const { return file_->hash(); }
  // The source files. The first call reads them from the ledger's text; kCorrupt as LedgerFile::files.
  Result<const std::vector<FileLedger>*> files() const {
    ASSIGN_OR_RETURN(const LedgerFile::Files* files, file_->files());
    return &files->list;
  }
  const TokenStream& split(Split split) const { return streams_[static_cast<size_t>(split)]; }
  // Returns true when every chunk that is decoded is compared with its SHA-256. Error: the chunk table is
  // damaged.
  Result<bool> has_digests() const { return digests_->is_whole(); }

 private:
  TokenStore() = default;
  std::shared_ptr<const LedgerFile> file_;
  std::vector<TokenStream> streams_;  // by Split
  std::shared_ptr<const StoreDigests> digests_;
};

}  // namespace ostro::data
