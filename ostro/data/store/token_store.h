// Reading a token store: tokens by position in the stream of a split, and the documents they come from.
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

// A cache of what data.chunk_cache_mib allows.
std::shared_ptr<ChunkCache> make_chunk_cache(const DataOptions& options);

// A row (document) that overlaps a stretch of the stream.
struct RowSpan {
  int64_t row = 0;
  int64_t begin = 0, end = 0;  // all of its tokens, as positions in the stream
};

// Where a row comes from.
struct RowSource {
  std::string file;      // as it was called when the store was built
  int64_t document = 0;  // number in the file, from 1: the line of a .jsonl
  int64_t bytes = 0;     // of the document's text
  // Bytes [begin, end) of the unpacked file hold the row. Both 0 where the store does not keep them: rows of
  // a .parquet, and of .jsonl in stores of the one-source form (row_places.h finds those).
  int64_t begin = 0, end = 0;
  const FileLedger* ledger = nullptr;  // of the file; lives with the store. Null: a Levanter cache
};

// The documents of one split, one after the other. A Levanter cache that is used in place has no sources.
// Thread-safe.
class TokenStream {
 public:
  const std::string& name() const { return name_; }
  int64_t rows() const { return ledger_->split(split_).rows; }
  int64_t tokens() const { return ledger_->split(split_).tokens; }
  int64_t vocab_size() const { return ledger_->preprocessing.vocab_size; }

  const SplitLedger& ledger() const { return ledger_->split(split_); }
  WeightKind weight_kind() const { return ledger_->preprocessing.fields.weights; }
  bool has_sources() const { return ledger_->levanter_cache.empty(); }

  // Tokens per byte of text over the whole split; what turns nats per token into bits per byte.
  double tokens_per_byte() const;

  // Tokens [first, first + out.size()), which must exist.
  Status read(int64_t first, std::span<int32_t> out) const;
  // The same of tokens [first, first + tokens.size()), and as `targets`, as many, the token behind each.
  Status read_pairs(int64_t first, std::span<int32_t> tokens, std::span<int32_t> targets) const;
  // The loss weights of tokens [first, first + out.size()): of predicting each from the tokens before it.
  Status read_weights(int64_t first, std::span<float> out) const;
  // Where rows [row, row + count) end, as positions in the stream; count + 1 values, from the first row's
  // begin.
  Result<std::vector<int64_t>> row_ends(int64_t row, int64_t count) const;
  // The rows that hold tokens [first, first + count), in order; rows without tokens are left out.
  Result<std::vector<RowSpan>> rows_of(int64_t first, int64_t count) const;
  // Where a row comes from. Without sources: the split's or shard's folder in the Levanter cache, and the row
  // in it from 1.
  Result<RowSource> source(int64_t row) const;
  // SHA-256 of a row's ids (u32, little-endian) and, when not all are 1, its weights (f32): what says that
  // two runs saw the same row.
  Result<Sha256Digest> row_hash(int64_t row) const;

  // What rows consist of, for who copies them. Ids may be of another type there than on disk.
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

// A finished store. Opening reads the ledger and the arrays' metadata. Refers to the file system.
class TokenStore {
 public:
  // kNotFound when there is none (or it is unfinished), kCorrupt when ledger or metadata are damaged. `cache`
  // keeps decoded chunks, perhaps of several stores; null: one of its own, of the default size.
  static Result<std::shared_ptr<const TokenStore>> open(io::FileSystem& fs, const std::string& cache_dir,
                                                        std::shared_ptr<ChunkCache> cache = nullptr,
                                                        KeepChunks keep = KeepChunks::kSecondTime);
  // The same, chunks kept as suits data.shuffle, and an error when it was not made with this tokenizer and
  // these options.
  static Result<std::shared_ptr<const TokenStore>> open(io::FileSystem& fs, const DataOptions& options,
                                                        const Component& component,
                                                        const tokenizer::Tokenizer& tokenizer,
                                                        std::shared_ptr<ChunkCache> cache = nullptr);
  // The store of a configuration without components.
  static Result<std::shared_ptr<const TokenStore>> open(io::FileSystem& fs, const DataOptions& options,
                                                        const tokenizer::Tokenizer& tokenizer);

  // What the ledger says about all but the source files, and without the sums of chunks.
  const StoreLedger& ledger() const { return file_->head(); }
  // StoreLedger::hash of the whole ledger.
  const std::string& hash() const { return file_->hash(); }
  // The source files, taken out of the ledger by the first call. kCorrupt as LedgerFile::files.
  Result<const std::vector<FileLedger>*> files() const {
    ASSIGN_OR_RETURN(const LedgerFile::Files* files, file_->files());
    return &files->list;
  }
  const TokenStream& split(Split split) const { return streams_[static_cast<size_t>(split)]; }

 private:
  TokenStore() = default;
  std::shared_ptr<const LedgerFile> file_;
  std::vector<TokenStream> streams_;  // by Split
};

// SHA-256 of a row's ids and, when not all are 1, weights.
Sha256Digest hash_row(std::span<const uint32_t> ids, std::span<const float> weights);

}  // namespace ostro::data
