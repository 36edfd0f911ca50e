// The SHA-256 digests of all chunks of a finished store, kept in a file so that a store that goes on where it
// ends can be made without reading it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/ledger/chunk_table.h"
#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// 32 bytes a chunk, in the order of splits, arrays, chunks. It needs no checksum: the ledger's are made of
// it.
std::string digests_path(const std::string& cache_dir);

// Writes the file of a ledger whose chunks have these sums.
Status record_sums(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                   const PerArray<std::vector<ChunkSum>>& sums);

// The sums of all chunks of a finished store's arrays from that file and the chunk tables; nothing for an
// array where the file is missing (stores made before it was kept) or is not what the ledger was made of.
// `ledger` may be without files.
Result<PerArray<std::optional<std::vector<ChunkSum>>>> recorded_sums(io::FileSystem& fs,
                                                                     const std::string& cache_dir,
                                                                     const StoreLedger& ledger,
                                                                     const ChunkTables& tables);

}  // namespace ostro::data
