// StoreLedger: says what a token store contains, from which files it was made, and how.
//
// The ledger is written last, so a store with a ledger is complete (docs/reference/formats/token_store.md).
// The structs are values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/ledger/store_arrays.h"
#include "ostro/data/options/options.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Everything, except for the texts, that decides the tokens.
struct Preprocessing {
  std::string tokenizer;  // SHA-256 of its canonical JSON
  int64_t vocab_size = 0;
  // Ids in front of every document (data.enforce_bos); empty in stores that were made before Ostro had this
  // option.
  std::vector<int64_t> before;
  int64_t eos_id = -1;             // appended to every document; -1: none (data.enforce_eos is false)
  std::string text_key;            // data.text_key, in a configuration without components
  double validation_fraction = 0;  // 0 when there are validation_urls
  std::string left_out;            // RowVerdicts::left_out() of data.rows; empty: no row is left out
  // For components: canonical JSON of the row format and of all that ids and weights depend on besides the
  // tokenizer. Empty in a configuration without components, where rows are texts without weights.
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
  int64_t chunk = 0;  // elements in one chunk (compressed together)
  ElementType type = ElementType::kInt64;
  std::string sha256;  // SHA-256 over the SHA-256 digests of the chunks; integers are hashed as int64
  // The next two are filled in only while a store is made. Then they are in the chunk table (chunk_table.h).
  std::vector<uint32_t> crc32c;  // of each chunk: its elements as little-endian bytes, without padding
  std::vector<int64_t> last;     // of each chunk: its last element; only for offsets

  int64_t chunks() const { return elements == 0 ? 0 : (elements - 1) / chunk + 1; }
};

// One split (training or held out): its size, and its arrays.
struct SplitLedger {
  int64_t rows = 0;    // documents
  int64_t tokens = 0;  // with those before and behind each document
  int64_t bytes = 0;   // bytes of text of the documents
  std::array<ArrayLedger, kArrayCount> arrays;
  const ArrayLedger& array(ArrayId id) const { return arrays[static_cast<size_t>(id)]; }
  ArrayLedger& array(ArrayId id) { return arrays[static_cast<size_t>(id)]; }
};

// A file of texts that the store was made from, with what became of its documents.
struct FileLedger {
  SourceFile source;
  std::string sha256;               // of the stored file
  int64_t documents = 0;            // documents with text
  int64_t empty = 0;                // skipped documents without text
  int64_t repaired = 0;             // documents with invalid UTF-8, which became U+FFFD
  int64_t no_loss = 0;              // skipped rows whose loss weights are all 0
  int64_t skipped = 0;              // skipped malformed rows (data.on_bad_row: skip)
  std::array<int64_t, 2> rows{};    // by Split
  std::array<int64_t, 2> tokens{};  // by Split
  // Rows that verdicts left out, by reason. Not part of the hash: the rows decide, not why.
  std::map<std::string, int64_t> left_out;
  bool operator==(const FileLedger&) const = default;
};

// A folder that holds some rows of a store whose rows are in several folders, one after the other.
struct StorePart {
  std::string folder;  // relative to the folder of the store or the Levanter cache
  // ledger hash of the store there; empty for a shard of a Levanter cache, which has rows of one split only
  std::string hash;
  std::array<int64_t, 2> rows{};    // by Split
  std::array<int64_t, 2> tokens{};  // by Split
  bool operator==(const StorePart&) const = default;
};

// The ledger of one store.
struct StoreLedger {
  Preprocessing preprocessing;
  std::vector<FileLedger> files;
  std::array<SplitLedger, 2> splits;
  // The folders of the rows, in order. Empty when the rows are in the folder of the store or Levanter cache
  // itself. Not part of the hash, like the paths of files.
  std::vector<StorePart> parts;
  // The folder of a Levanter cache used in place. The ledger is then in another folder, `files` is empty, and
  // the content is the arrays alone. Empty for our own stores.
  std::string levanter_cache;
  std::string levanter_tokenizer;  // the cache's name of its tokenizer; empty if not given
  // The Merkle root of all rows (row_tree.h), in hexadecimal; empty in a ledger of format 3. It follows from
  // the content, so it is not part of the hash.
  std::string root;
  // False when only the head of the ledger was read (LedgerFile::head()); `files` is empty then, and
  // LedgerFile::files() reads them.
  bool has_files = true;

  const SplitLedger& split(Split split) const { return splits[static_cast<size_t>(split)]; }
  SplitLedger& split(Split split) { return splits[static_cast<size_t>(split)]; }
  std::vector<ArrayPlace> places() const {
    return array_places(preprocessing.fields,
                        levanter_cache.empty() ? preprocessing.row_arrays() : RowArrays::kNone);
  }

  // SHA-256 of the canonical JSON of content and preprocessing. A run's genesis names this hash. It does not
  // depend on paths, times, threads, interruptions, compression or the width of ids.
  std::string hash() const;
};

std::string ledger_path(const std::string& cache_dir);

// The format that write_ledger writes. The one before, whose ledgers have no root, is read, too.
inline constexpr const char *kLedgerFormat = "ostro token store 4", *kLedgerFormat3 = "ostro token store 3";

// Reads the ledger with its files. kNotFound when there is none, kCorrupt (names the file) when it is
// damaged. Cost: proportional to the number of source files, not of tokens.
Result<StoreLedger> read_ledger(io::FileSystem& fs, const std::string& cache_dir);
// Writes the ledger of a store whose chunk tables are written, durably. It must have a root; finish_store
// (row_tree.h) gives it one.
Status write_ledger(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger);

// Writes Levanter's shard_ledger.json into the folder of a split.
Status write_levanter_ledger(io::FileSystem& fs, const std::string& cache_dir, Split split,
                             const StoreLedger& ledger);

}  // namespace ostro::data
