// Builds the token store of a data set: texts in, token ids with offsets and a ledger out.
#pragma once

#include <string>

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Builds the store of a component in its cache_dir, or goes on with an unfinished one, or checks that a
// finished one is what would be built (cheap: files whose path, size and time are as recorded are not read
// again), or with `append` extends one that lacks files. Returns its ledger, which is the same however the
// store came about. Rows are documents: in the order of find_sources, within a file as they stand in it.
//
// Errors: kBusy while another process builds here; kInvalidArgument when the store that is there was made
// from something else (it names what differs); anything wrong with a source names file and line; kCorrupt
// when the store is damaged.
//
// A component that names no texts has a finished store or a Levanter cache in its folder, which is checked
// once.
Result<StoreLedger> build_store(io::FileSystem& fs, const DataOptions& options, const Component& component,
                                const tokenizer::Tokenizer& tokenizer, const BuildSettings& settings = {});
// The store of a configuration without components.
Result<StoreLedger> build_store(io::FileSystem& fs, const DataOptions& options,
                                const tokenizer::Tokenizer& tokenizer, const BuildSettings& settings = {});

}  // namespace ostro::data
