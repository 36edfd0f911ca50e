// The ledger of a token store: what is in it, made from what and how (docs/formats/token_store.md). It is
// written last, so a store that has one is complete.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/ledger/store_arrays.h"
#include "ostro/data/options/options.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Everything but the texts that decides the tokens.
struct Preprocessing {
  std::string tokenizer;  // SHA-256 of its canonical JSON
  int64_t vocab_size = 0;
  int64_t eos_id = -1;             // appended to every document; -1: nothing is (data.enforce_eos false)
  std::string text_key;            // of the one-source form
  double validation_fraction = 0;  // 0 with validation_urls
  // Stores of components: canonical JSON of the row format and all that ids and weights depend on besides the
  // tokenizer. Empty: the one-source form, whose rows are texts and have no weights.
  std::string format;
  StoreFields fields;

  bool is_component() const { return !format.empty(); }
  RowArrays row_arrays() const { return is_component() ? RowArrays::kAll : RowArrays::kSome; }
  bool operator==(const Preprocessing&) const = default;
};

// One line for every field that differs: "data.text_key: the store has "text", the configuration "body"".
std::vector<std::string> differences(const Preprocessing& store, const Preprocessing& wanted);

// A one-dimensional array on disk.
struct ArrayLedger {
  int64_t elements = 0;
  int64_t chunk = 0;  // elements compressed together
  ElementType type = ElementType::kInt64;
  std::string sha256;  // of its chunks' SHA-256 digests, one after the other; integers as int64
  // Where StoreLedger::has_sums says so; else the store's chunk table has them (chunk_table.h).
  std::vector<uint32_t> crc32c;  // of every chunk's elements in little-endian bytes, without padding
  std::vector<int64_t> last;     // of every chunk, its last element; kept for offsets only

  int64_t chunks() const { return elements == 0 ? 0 : (elements - 1) / chunk + 1; }
};

struct SplitLedger {
  int64_t rows = 0;    // documents
  int64_t tokens = 0;  // with eos
  int64_t bytes = 0;   // of the documents' text
  std::array<ArrayLedger, kArrayCount> arrays;
  const ArrayLedger& array(ArrayId id) const { return arrays[static_cast<size_t>(id)]; }
  ArrayLedger& array(ArrayId id) { return arrays[static_cast<size_t>(id)]; }
};

struct FileLedger {
  SourceFile source;
  std::string sha256;               // of the file as it lies on disk
  int64_t documents = 0;            // with text
  int64_t empty = 0;                // skipped: no text
  int64_t repaired = 0;             // with malformed UTF-8, read as U+FFFD
  int64_t no_loss = 0;              // skipped: all its loss weights are 0
  int64_t skipped = 0;              // malformed rows, with data.on_bad_row: skip
  std::array<int64_t, 2> rows{};    // by Split
  std::array<int64_t, 2> tokens{};  // by Split
  bool operator==(const FileLedger&) const = default;
};

// A folder that has some of a store's rows, where the store's arrays are several, one after the other.
struct StorePart {
  std::string folder;  // from the store's folder, or the Levanter cache's, on
  std::string hash;    // ledger hash of the store there; empty: a shard of a Levanter cache, in one split
  std::array<int64_t, 2> rows{};    // by Split
  std::array<int64_t, 2> tokens{};  // by Split
  bool operator==(const StorePart&) const = default;
};

struct StoreLedger {
  Preprocessing preprocessing;
  std::vector<FileLedger> files;
  std::array<SplitLedger, 2> splits;
  // Where the rows are, in order; empty: in the folder of the store or the Levanter cache itself. Like paths
  // of files no part of the hash.
  std::vector<StorePart> parts;
  // A Levanter cache used in place: its folder. Our ledger lies elsewhere; there are no files, and the
  // content is the arrays alone. Empty: a store of our own.
  std::string levanter_cache;
  std::string levanter_tokenizer;  // what it calls its tokenizer; empty: it does not say
  // Whether the arrays' sums of chunks are here: when a ledger is made, and in those of formats 1 and 2.
  bool has_sums = true;
  // False of the head of a LedgerFile, which gives files when they are asked for.
  bool has_files = true;

  const SplitLedger& split(Split split) const { return splits[static_cast<size_t>(split)]; }
  SplitLedger& split(Split split) { return splits[static_cast<size_t>(split)]; }
  std::vector<ArrayPlace> places() const {
    return array_places(preprocessing.fields,
                        levanter_cache.empty() ? preprocessing.row_arrays() : RowArrays::kNone);
  }

  // SHA-256 of the canonical JSON of content and preprocessing: what a run's genesis names. Independent of
  // paths, times, threads, interruptions, compression and the width of ids.
  std::string hash() const;
};

std::string ledger_path(const std::string& cache_dir);

// What write_ledger writes.
inline constexpr const char* kLedgerFormat = "ostro token store 3";

// With its files. Fails with kNotFound when there is none, kCorrupt (naming the file) when it is damaged.
// Cost: that of its source files, not of its tokens.
Result<StoreLedger> read_ledger(io::FileSystem& fs, const std::string& cache_dir);
// Writes the chunk tables, then the ledger; it must have the sums.
Status write_ledger(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger);

// Writes Levanter's shard_ledger.json into the folder of a split.
Status write_levanter_ledger(io::FileSystem& fs, const std::string& cache_dir, Split split,
                             const StoreLedger& ledger);

}  // namespace ostro::data
