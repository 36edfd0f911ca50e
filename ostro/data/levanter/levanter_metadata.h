// What the ledger of a Levanter cache says about how its ids were made, and whether that is what the
// configuration says.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "ostro/data/ledger/ledger.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// `metadata.preprocessor_metadata` of a shard_ledger.json. Writers may leave out all of it.
struct LevanterMetadata {
  std::string path;  // of the ledger
  // Name or path of the tokenizer; of a cache that a build of ours wrote, its SHA-256. Empty: not told.
  std::string tokenizer;
  std::optional<int64_t> vocab_size;
  std::optional<bool> append_bos, append_eos;  // whether the writer put the token into each text
};

// `ledger`: the whole file. What is not of the type that it should have counts as not told.
LevanterMetadata read_levanter_metadata(const nlohmann::json& ledger, const std::string& path);

// That the cache's ids are those of the tokenizer, of the file or folder `tokenizer_path`, as far as the
// metadata tells: kInvalidArgument for another SHA-256, or for a size of the vocabulary that no program gives
// this tokenizer. Of rows of format `prebuilt`, whose ids are taken as they are, that is a warning, and so is
// a beginning or an end of texts that differs from what `wanted` says.
Status check_levanter_metadata(io::FileSystem& fs, const LevanterMetadata& metadata,
                               const Preprocessing& wanted, const tokenizer::Tokenizer& tokenizer,
                               const std::string& tokenizer_path);

}  // namespace ostro::data
