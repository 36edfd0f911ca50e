// Levanter caches used in place: read-only, with check data of our own in another folder.
#pragma once

#include <string>

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Whether a folder holds a Levanter cache: train/shard_ledger.json, and no ledger of ours beside it.
Result<bool> is_levanter_cache(io::FileSystem& fs, const std::string& folder);

// The ledger of the cache in `place`, kept in `cache_dir`: read when it is there, else made by reading the
// whole cache once with `settings.threads` threads. TokenStore::open(cache_dir) then reads the cache where it
// is; nothing is written there. A split that the cache lacks is empty; bytes of text are those of its tokens,
// special ones not counted. `wanted` says the tokenizer, format and fields; what the cache says of its own
// tokenizer must fit that one, of the file or folder `tokenizer_path` (levanter_metadata.h).
//
// Errors: kInvalidArgument when the cache is not finished, lacks a field, has another number of rows than
// when it was checked, was checked with other options, names another tokenizer, or holds ids beyond the
// vocabulary; kBusy while another process checks it; kCorrupt for offsets and weights that make no sense.
Result<StoreLedger> check_levanter_cache(io::FileSystem& fs, const std::string& place,
                                         const std::string& cache_dir, const Preprocessing& wanted,
                                         const tokenizer::Tokenizer& tokenizer,
                                         const std::string& tokenizer_path, const BuildSettings& settings);

}  // namespace ostro::data
