// record_sums, recorded_sums: keep the SHA-256 digests of all chunks of a finished store in a file.
//
// With them the store can be extended without reading its arrays again. Errors are those of reading and
// writing; a file of digests that is missing or does not fit the ledger is no error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/ledger/chunk_table.h"
#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// The file of digests: 32 bytes for each chunk, ordered by split, array and chunk. It needs no checksum of
// its own, since the ledger's SHA-256 of each array is computed from these digests.
std::string digests_path(const std::string& cache_dir);

// Writes the file for a store whose chunks have these sums.
Status record_sums(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                   const PerArray<std::vector<ChunkSum>>& sums);

// The sums of all chunks of a finished store, from that file and the chunk tables. Nothing for an array when
// the file is missing (older stores) or does not agree with the ledger. `ledger` may be without files.
Result<PerArray<std::optional<std::vector<ChunkSum>>>> recorded_sums(io::FileSystem& fs,
                                                                     const std::string& cache_dir,
                                                                     const StoreLedger& ledger,
                                                                     const ChunkTables& tables);

}  // namespace ostro::data
