// join_in_place: joins finished stores into one whose arrays stay where they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/data/store/token_store.h"
#include "ostro/prepare/store/build.h"

namespace ostro::prepare {

// A store that becomes a part of another.
struct PartStore {
  std::string folder;
  std::shared_ptr<const data::TokenStore> store;
};

// StoreLedger::parts for a store in `cache_dir` that joins these stores. A store that has parts itself is
// replaced by its parts.
std::vector<data::StorePart> parts_of_whole(const std::vector<PartStore>& parts,
                                            const std::string& cache_dir);

// Writes the ledger, chunk table and digests of a store that joins all parts, one after the other in both
// splits. `files` are the files for its ledger, `left_out` the hash of the rows that all parts together leave
// out (Preprocessing). Reads every part once, except the first, whose sums stay valid. Errors: kUnsupported
// for parts whose arrays have different types; errors of reading.
Result<data::StoreLedger> join_in_place(io::FileSystem& fs, const std::vector<PartStore>& parts,
                                        const std::string& cache_dir, std::vector<data::FileLedger> files,
                                        const std::string& left_out, const data::BuildSettings& settings);

}  // namespace ostro::prepare
