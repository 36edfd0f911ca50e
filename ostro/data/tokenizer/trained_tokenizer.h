// The tokenizer of a configuration: the one that data.tokenizer names or, when that is null, one that is
// trained from the training texts and kept in data.cache_dir.
#pragma once

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// The tokenizer, which must be there. Errors: kNotFound when it is to be trained and was not yet;
// kInvalidArgument when it was trained with another data.vocab_size, or another one was put into its place.
Result<tokenizer::Tokenizer> open_tokenizer(io::FileSystem& fs, const DataOptions& options);

// The same, but trains it first where that is needed, and says so in the log. The result is a function of
// options and texts: of the documents that are not held out, whatever the threads, places and times. A kill
// leaves nothing that a second start would take for a tokenizer. Errors besides those above: kBusy while
// another process trains it; kInvalidArgument when texts or options are others than those it was trained from
// and its stores are not finished (a finished store is compared by build_store); those of the texts.
Result<tokenizer::Tokenizer> make_tokenizer(io::FileSystem& fs, const DataOptions& options,
                                            const BuildSettings& settings);

}  // namespace ostro::data
