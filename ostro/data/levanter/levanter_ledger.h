// read_levanter_ledger: reads the ledger of a Levanter cache (shard_ledger.json, one for each split).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/ledger/ledger.h"
#include "ostro/data/levanter/levanter_metadata.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

// One shard of a split: a cache in a folder of its own.
struct LevanterShard {
  std::string folder;  // relative to the folder of the whole cache, which holds both splits
  int64_t rows = 0;
  std::map<std::string, int64_t> elements;  // number of elements by field, as far as the ledger gives them
};

struct LevanterSplit {
  int64_t rows = 0;
  bool is_sharded = false;  // several shards, read one after the other as one array
  LevanterMetadata metadata;
  std::vector<LevanterShard> shards;  // in order; a split that is not sharded has one, its own folder
};

// Indexed by Split. Nothing for a split that the cache lacks.
using LevanterLedger = std::array<std::optional<LevanterSplit>, 2>;

// Reads the ledgers of the cache in `place`. Errors: kNotFound when the training split has no ledger;
// kInvalidArgument when a split is not finished; kUnsupported for an unknown layout; kCorrupt when the counts
// of the shards do not add up, or a shard lies outside the cache.
Result<LevanterLedger> read_levanter_ledger(io::FileSystem& fs, const std::string& place);

// The shards as parts of a store, with token counts still 0. Empty when no split is sharded.
std::vector<StorePart> parts_of(const LevanterLedger& ledger);

// The path of a split's shard_ledger.json.
std::string levanter_ledger_path(const std::string& place, Split split);

}  // namespace ostro::data
