// verify_packs: checks that the pack indices beside a token store equal the result of packing its rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/batches/packing/packing.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/data/store/store_verify.h"
#include "ostro/io/files/file_system.h"

namespace ostro::batches {

enum class PackIndexState {
  kGood,
  kStale,    // made from an earlier state of the store, or in another format; readers ignore it
  kDamaged,  // differs from the result of packing the rows
  kUnread,   // not compared, since the row ends cannot be read
};

struct PackIndexReport {
  std::string path;
  data::Split split = data::Split::kTrain;  // of the store
  PackRule rule;
  int64_t bytes = 0;
  PackIndexState state = PackIndexState::kGood;
  int64_t sequences = 0;  // according to its header
  Status status;          // the reason why it is damaged or unread
};

// Makes every index beside the store again from the row ends, as PackIndex::open does, and compares each byte
// with the file. So it also finds an index that was written wrong, which the checksums in the file cannot
// show. `cache_dir` is the folder of the store's ledger. Reads a split's row ends once for each of its
// indices, in bounded memory, and writes nothing. A store without indices gives no reports. Errors: a folder
// of indices that cannot be listed.
Result<std::vector<PackIndexReport>> verify_packs(io::FileSystem& fs, const std::string& cache_dir,
                                                  const data::VerifySettings& settings);

}  // namespace ostro::batches
