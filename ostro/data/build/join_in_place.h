// Joins finished stores into one whose arrays stay where they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/data/build/build.h"
#include "ostro/data/store/token_store.h"

namespace ostro::data {

// A store that becomes a part of another.
struct PartStore {
  std::string folder;
  std::shared_ptr<const TokenStore> store;
};

// StoreLedger::parts of the store in `cache_dir` that has the rows of these; the parts of a part that has
// some stand in its place.
std::vector<StorePart> parts_of_whole(const std::vector<PartStore>& parts, const std::string& cache_dir);

// Writes ledger, chunk table and digests of the store that has the rows of all parts, one after the other, in
// both splits; `files` are those of its ledger. Reads all parts but the first, whose sums are known, once.
// Errors: kUnsupported for parts whose arrays are of different types; as reading gives them.
Result<StoreLedger> join_in_place(io::FileSystem& fs, const std::vector<PartStore>& parts,
                                  const std::string& cache_dir, std::vector<FileLedger> files,
                                  const BuildSettings& settings);

}  // namespace ostro::data
