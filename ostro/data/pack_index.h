// Which rows of a store each packed sequence holds: made once, kept beside the store, read page by page
// (docs/formats/pack_index.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ostro/data/token_store.h"
#include "ostro/io/file_system.h"

namespace ostro::data {

// Which part of a row that is too long for a sequence is kept.
enum class Keep { kLeft, kRight };

// How rows become sequences. A row of n tokens has n - 1 targets and takes as many positions, at most
// seq_len; a row without targets takes none.
struct PackRule {
  int64_t seq_len = 0;
  Keep keep = Keep::kLeft;
  bool pack = true;  // false: one row a sequence
  // Positions that a row of so many tokens takes.
  int64_t positions(int64_t tokens) const;
  // Its first token that is kept.
  int64_t first_token(int64_t tokens) const;
};

struct PackCounts {
  int64_t sequences = 0;
  int64_t cut_rows = 0;    // longer than a sequence
  int64_t cut_tokens = 0;  // of them, not in any sequence
  int64_t empty_rows = 0;  // without targets
  bool operator==(const PackCounts&) const = default;
};

// What packing the rows of a split gives; reads the ends of its rows once, in bounded memory, and writes
// nothing.
Result<PackCounts> count_packs(const TokenStream& stream, const PackRule& rule);

// What is left out, for people: "rows longer than a sequence: 12, which lose 345 tokens"; empty when nothing
// is.
std::string left_out_text(const PackCounts& counts);

// Greedy: the rows in stored order, each in the sequence of the row before it as long as it fits.
// Thread-safe.
class PackIndex {
 public:
  // Reads the index in `folder`, or makes it there, in one pass over the ends of the rows and in bounded
  // memory. `store_hash`: of the store's ledger; an index of another store is made anew. kBusy while another
  // process makes it.
  static Result<std::shared_ptr<const PackIndex>> open(io::FileSystem& fs, const std::string& folder,
                                                       const TokenStream& stream,
                                                       const std::string& store_hash, const PackRule& rule);

  const PackRule& rule() const { return rule_; }
  const PackCounts& counts() const { return counts_; }
  // Rows [first, end) of a sequence; rows without targets among them take no positions.
  Result<std::pair<int64_t, int64_t>> rows(int64_t sequence) const;

 private:
  static constexpr int64_t kPageEntries = 4096;
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

}  // namespace ostro::data
