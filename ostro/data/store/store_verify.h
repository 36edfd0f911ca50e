// Whether the arrays of a token store are what its ledger says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/arrays/verified_array.h"

namespace ostro::data {

struct VerifySettings {
  int threads = 1;
  std::function<void(const BuildProgress&)> progress;  // after every chunk; never twice at once
};

struct VerifiedArrayReport {
  std::string path;
  int64_t elements = 0;
  int64_t bytes = 0;  // of its elements
  Status status;      // kCorrupt, or why it cannot be read: names the array, and the chunk where it is one's
};

struct StoreReport {
  std::string ledger_hash;
  std::vector<VerifiedArrayReport> arrays;
};

// Reads every array of the store whose ledger is in `cache_dir`, or of the Levanter cache that the ledger
// tells of, and compares chunks with their CRC-32C and the whole with the ledger's SHA-256. A damaged array
// does not end the reading of others. Errors: no ledger, or a damaged one or chunk table of the wrong size.
Result<StoreReport> verify_arrays(io::FileSystem& fs, const std::string& cache_dir,
                                  const VerifySettings& settings);

// The first array that is not as it should be, as a failure.
Status verify_store(io::FileSystem& fs, const std::string& cache_dir);

// The sums of an array's chunks, as sum_chunk makes them, by reading it; `read`, when there is one, is told
// of each chunk, by one thread at a time. kCorrupt when the array is not what the ledger says.
Result<std::vector<ChunkSum>> checked_sums(io::FileSystem& fs, ArraySource source, ArrayId id,
                                           const ArrayLedger& expected, const ChunkTable& table,
                                           bool sparse = false, int threads = 1,
                                           const std::function<void(const ChunkElements&)>& read = nullptr);

}  // namespace ostro::data
