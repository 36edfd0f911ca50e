// Whether the pack indices beside a token store are what packing its rows gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/packing/packing.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/data/store/store_verify.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

enum class PackIndexState {
  kGood,
  kStale,    // made from the store as it was before, or in another format: no reader takes it
  kDamaged,  // not what the rows give
  kUnread,   // not compared, because the ends of the rows cannot be read
};

struct PackIndexReport {
  std::string path;
  Split split = Split::kTrain;  // of the store
  PackRule rule;
  int64_t bytes = 0;
  PackIndexState state = PackIndexState::kGood;
  int64_t sequences = 0;  // as its header says
  Status status;          // of one that is damaged or unread: why
};

// Makes every index beside the store whose ledger is in `cache_dir` again from the ends of the rows, as
// PackIndex::open does, and compares each byte with the file. That finds more than the checksums in the
// index: one that was written wrong, too. Reads the ends of a split's rows once for each of its indices, in
// bounded memory; writes nothing. A store without indices has no reports. Errors: a folder of indices that
// cannot be listed.
Result<std::vector<PackIndexReport>> verify_packs(io::FileSystem& fs, const std::string& cache_dir,
                                                  const VerifySettings& settings);

}  // namespace ostro::data
