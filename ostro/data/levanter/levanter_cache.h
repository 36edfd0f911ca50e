// check_levanter_cache: uses Levanter caches in place: the cache is only read, and our ledger and checksums
// are kept in another folder.
#pragma once

#include <string>

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// True if a folder holds a Levanter cache: it has train/shard_ledger.json and no ledger of ours.
Result<bool> is_levanter_cache(io::FileSystem& fs, const std::string& folder);

// The ledger of the cache in `place`. It is kept in `cache_dir`. If it is not there yet, the whole cache is
// read once, with `settings.threads` threads, to make it; nothing is written into the cache.
// TokenStore::open(cache_dir) then reads the cache where it is.
// A split that the cache lacks is empty. Bytes of text are counted by decoding the tokens, without special
// ones. `wanted` gives the tokenizer, format and fields. If the cache names a tokenizer, it must agree with
// `tokenizer`, which was read from `tokenizer_path` (levanter_metadata.h).
//
// Errors: kInvalidArgument when the cache is not finished, lacks a field, has another number of rows than
// when it was checked, was checked with other options, names another tokenizer, or holds ids outside the
// vocabulary; kBusy while another process checks it; kCorrupt for invalid offsets or weights.
Result<StoreLedger> check_levanter_cache(io::FileSystem& fs, const std::string& place,
                                         const std::string& cache_dir, const Preprocessing& wanted,
                                         const tokenizer::Tokenizer& tokenizer,
                                         const std::string& tokenizer_path, const BuildSettings& settings);

}  // namespace ostro::data
