// The file of a pack index: its name, and its bytes, which follow from the rows alone
// (docs/formats/pack_index.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ostro/data/packing/packing.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

// What an index says of itself.
struct PackHeader {
  std::string format;
  std::string store;  // the ledger hash of the store that it was made from
  int64_t rows = 0;   // of the split
  PackRule rule;
  PackCounts counts;
  // Whether it is the index of the split of the store with this ledger hash, in today's format.
  bool is_of(const TokenStream& stream, const std::string& store_hash, const PackRule& wanted) const;
  // Whether it was made from another store, or in another format.
  bool is_stale(const std::string& store_hash) const;
};

// Entries in every page but the last.
inline constexpr int64_t kPackPageEntries = 4096;
// Bytes of a page with so many entries.
inline int64_t pack_page_bytes(int64_t entries) { return entries * 8 + 4; }

// Where the indices of a split are, `cache_dir` being the folder of the store's ledger.
std::string pack_folder(const std::string& cache_dir, Split split);
std::string pack_index_name(const PackRule& rule);
// The rule whose index is called so; nothing for other names.
std::optional<PackRule> rule_of_pack_index(const std::string& name);

// Writes all of an index, in one pass over the ends of the rows: page by page, then the header.
Status write_pack_index(io::WritableFile& file, const TokenStream& stream, const std::string& store_hash,
                        const PackRule& rule);

// Nothing when there is no header or it is damaged. Errors: those of reading.
Result<std::optional<PackHeader>> read_pack_header(const io::RandomAccessFile& file);

}  // namespace ostro::data
