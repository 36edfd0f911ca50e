// encode_again: encodes some documents of a store of texts again, from the texts, and compares their ids with
// those of the store. So a store that came from elsewhere shows a part of how it was made.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/options/options.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::prepare {

// `options` are without components; the store is the one that they describe (build_store). `rows` number its
// documents from 0: those of the training split, then those held out. Reads the file of each up to it.
// Returns where they stand: "a.jsonl:7". Errors: kCorrupt, with the place, for a document that has other ids
// in the store; those of reading.
Result<std::vector<std::string>> encode_again(io::FileSystem& fs, const data::DataOptions& options,
                                              const data::TokenStore& store,
                                              const tokenizer::Tokenizer& tokenizer,
                                              const std::vector<int64_t>& rows);

}  // namespace ostro::prepare
