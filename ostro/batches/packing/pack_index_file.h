// PackHeader, write_pack_index: the file of a pack index: its name and its bytes. The bytes are a function of
// the rows alone (docs/reference/formats/pack_index.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ostro/batches/packing/packing.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/file_system.h"

namespace ostro::batches {

// The header of an index file.
struct PackHeader {
  std::string format;
  std::string store;  // the ledger hash of the store that it was made from
  int64_t rows = 0;   // of the split
  PackRule rule;
  PackCounts counts;
  // True if it is the index, in today's format, of this split of the store with this ledger hash.
  bool is_of(const data::TokenStream& stream, const std::string& store_hash, const PackRule& wanted) const;
  // True if it was made from another store, or in another format.
  bool is_stale(const std::string& store_hash) const;
};

// Entries in every page but the last.
inline constexpr int64_t kPackPageEntries = 4096;
// Bytes of a page with so many entries.
inline int64_t pack_page_bytes(int64_t entries) { return entries * 8 + 4; }

// The folder of a split's indices. `cache_dir` is the folder of the store's ledger.
std::string pack_folder(const std::string& cache_dir, data::Split split);
std::string pack_index_name(const PackRule& rule);
// The rule that a file name stands for. Nothing if it is not the name of an index.
std::optional<PackRule> rule_of_pack_index(const std::string& name);

// Writes a whole index in one pass over the row ends: page by page, then the header.
Status write_pack_index(io::WritableFile& file, const data::TokenStream& stream,
                        const std::string& store_hash, const PackRule& rule);

// The header. Nothing when it is missing or damaged. Errors: the file cannot be read.
Result<std::optional<PackHeader>> read_pack_header(const io::RandomAccessFile& file);

}  // namespace ostro::batches
