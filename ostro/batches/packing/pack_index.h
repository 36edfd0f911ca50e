// PackIndex: tells which rows of a store each packed sequence holds. It is made once, kept beside the store,
// and read page by page (docs/reference/formats/pack_index.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/batches/packing/packing.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/file_system.h"

namespace ostro::batches {

// An open index. Thread-safe.
class PackIndex {
 public:
  // Opens the index in `folder`, or makes it there, in one pass over the row ends and in bounded memory.
  // `store_hash` is the hash of the store's ledger; an index of another store is made anew. Errors: kBusy
  // while another process makes it; those of reading the store, and of reading and writing the index.
  static Result<std::shared_ptr<const PackIndex>> open(io::FileSystem& fs, const std::string& folder,
                                                       const data::TokenStream& stream,
                                                       const std::string& store_hash, const PackRule& rule);

  const PackRule& rule() const { return rule_; }
  const PackCounts& counts() const { return counts_; }
  // Returns the rows [first, end) of a sequence, a number below counts().sequences. Rows without targets
  // among them take no positions. Errors: kCorrupt for a damaged page of the index; those of reading it.
  Result<std::pair<int64_t, int64_t>> rows(int64_t sequence) const;

  // The sequence whose rows() this row is among. Nothing: the row is before the first one. Reads a page for
  // each halving of the sequences, at most. Errors: as rows().
  Result<std::optional<int64_t>> sequence_of(int64_t row) const;

 private:
  using Page = std::vector<int64_t>;

  PackIndex() = default;
  Result<int64_t> entry(int64_t number) const;

  PackRule rule_;
  PackCounts counts_;
  std::unique_ptr<io::RandomAccessFile> file_;
  struct Cache {
    std::mutex mutex;
    std::array<std::pair<int64_t, std::shared_ptr<const Page>>, 64> pages;  // by number mod 64
  };
  std::unique_ptr<Cache> cache_ = std::make_unique<Cache>();
};

}  // namespace ostro::batches
