// LevanterMetadata: the information in the ledger of a Levanter cache on how its ids were made, and a check
// of it against the configuration.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "ostro/data/ledger/ledger.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// `metadata.preprocessor_metadata` of a shard_ledger.json. All of it is optional.
struct LevanterMetadata {
  std::string path;  // of the ledger
  // Name or path of the tokenizer. In caches written by our own build: the tokenizer's SHA-256. Empty: not
  // given.
  std::string tokenizer;
  std::optional<int64_t> vocab_size;
  std::optional<bool> append_bos, append_eos;  // true if the writer added the token to each text
};

// Reads the metadata in `ledger`, the content of the whole file at `path`. A value of the wrong type counts
// as not given; there are no errors.
LevanterMetadata read_levanter_metadata(const nlohmann::json& ledger, const std::string& path);

// Checks, as far as the metadata tell, that the cache's ids were made with `tokenizer`, which was read from
// the file or folder `tokenizer_path`. kInvalidArgument for another SHA-256, or for a vocabulary size that no
// program reports for this tokenizer. For rows of format `prebuilt`, whose ids are used as they are, this is
// only a warning. Different settings for tokens at the beginning or end of texts are only a warning, too.
Status check_levanter_metadata(io::FileSystem& fs, const LevanterMetadata& metadata,
                               const Preprocessing& wanted, const tokenizer::Tokenizer& tokenizer,
                               const std::string& tokenizer_path);

}  // namespace ostro::data
