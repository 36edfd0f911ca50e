// verify_arrays: checks that the arrays of a token store are what its ledger says.
//
// It reads every byte with the given number of threads. verify_arrays puts damage into its report, array by
// array; root_of_rows and checked_sums return it as an error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/arrays/verified_array.h"

namespace ostro::data {

class TokenStore;

struct VerifySettings {
  int threads = 1;
  std::function<void(const BuildProgress&)> progress;  // called after every chunk, by one thread at a time
};

struct VerifiedArrayReport {
  std::string path;
  int64_t elements = 0;
  int64_t bytes = 0;  // bytes of its elements
  // kCorrupt, or why it cannot be read; names the array, and the chunk when one chunk is wrong
  Status status;
};

struct StoreReport {
  std::string ledger_hash;
  std::vector<VerifiedArrayReport> arrays;
};

// Reads every array of a store (or of the Levanter cache that its ledger names). `cache_dir` is the folder of
// the ledger. Compares each chunk with its CRC-32C and each array with the ledger's SHA-256, then the rows
// with the tree of rows, which is the last line of the report. A damaged array does not stop the check of the
// others. Errors: the ledger is missing or damaged, or the chunk table has the wrong size.
Result<StoreReport> verify_arrays(io::FileSystem& fs, const std::string& cache_dir,
                                  const VerifySettings& settings);

// Returns the Merkle root of a store of format 3, whose ledger has none. It reads all rows, and logs a
// warning that says so. `cache_dir` is the folder of the ledger of `store`. Errors: those of reading.
Result<std::string> root_of_rows(io::FileSystem& fs, const std::string& cache_dir, const TokenStore& store);

// Reads an array and returns the sums of its chunks, as sum_chunk makes them. `sparse`: chunks that were
// never written count as zeros, as in caches of other programs. `read`, if given, is called with each chunk,
// by one thread at a time. Error: kCorrupt when the array is not what the ledger says.
Result<std::vector<ChunkSum>> checked_sums(io::FileSystem& fs, ArraySource source, ArrayId id,
                                           const ArrayLedger& expected, const ChunkTable& table,
                                           bool sparse = false, int threads = 1,
                                           const std::function<void(const ChunkElements&)>& read = nullptr);

}  // namespace ostro::data
