// What the ledger of a Levanter cache says (shard_ledger.json, one for each split).
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

// A cache that is a part of a split.
struct LevanterShard {
  std::string folder;  // from the cache's folder on, which has folders of both splits
  int64_t rows = 0;
  std::map<std::string, int64_t> elements;  // of fields; those that the ledger tells of
};

struct LevanterSplit {
  int64_t rows = 0;
  bool is_sharded = false;  // caches side by side, read as one
  LevanterMetadata metadata;
  std::vector<LevanterShard> shards;  // in order; of a split that is not sharded one, its folder
};

// By Split; nothing for a split that the cache lacks.
using LevanterLedger = std::array<std::optional<LevanterSplit>, 2>;

// Errors: kNotFound without a ledger of the training split; kInvalidArgument when one is not finished;
// kUnsupported for an unknown layout; kCorrupt when shards and sums do not fit, or shards lie outside the
// cache.
Result<LevanterLedger> read_levanter_ledger(io::FileSystem& fs, const std::string& place);

// The parts that the rows of the cache are in, with their tokens not counted yet; empty when neither split is
// sharded.
std::vector<StorePart> parts_of(const LevanterLedger& ledger);

std::string levanter_ledger_path(const std::string& place, Split split);

}  // namespace ostro::data
