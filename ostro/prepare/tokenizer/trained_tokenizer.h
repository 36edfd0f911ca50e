// open_tokenizer, make_tokenizer: the tokenizer of a configuration: the one that data.tokenizer names or,
// when that is null, one that is trained from the training texts and kept in data.cache_dir.
#pragma once

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::prepare {

// Opens the tokenizer, which must exist. Errors: kNotFound when it is to be trained and was not yet;
// kInvalidArgument when it was trained with another data.vocab_size, or another one was put into its place.
Result<tokenizer::Tokenizer> open_tokenizer(io::FileSystem& fs, const data::DataOptions& options);

// Opens the tokenizer, and trains it first if needed, which it logs. The result depends only on the options
// and on the documents that are not held out, not on threads, paths or times. A kill leaves nothing that a
// second start would take for a tokenizer. Errors besides those of open_tokenizer: kBusy while another
// process trains it; kInvalidArgument when texts or options differ from those it was trained from and its
// stores are not finished (a finished store is compared by build_store); those of the texts.
Result<tokenizer::Tokenizer> make_tokenizer(io::FileSystem& fs, const data::DataOptions& options,
                                            const data::BuildSettings& settings);

}  // namespace ostro::prepare
