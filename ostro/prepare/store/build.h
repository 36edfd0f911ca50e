// build_store: builds the token store of a data set from its texts: token ids, row ends and a ledger.
#pragma once

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::prepare {

// Makes the store of a component in its cache_dir ready. A missing store is built. An unfinished one is
// continued. A finished one is checked; this is cheap, since files whose path, size and time are as recorded
// are not read again. With `append`, a finished store is extended by new source files. Returns the ledger,
// which is the same in all these cases. Rows are documents, in the order of find_sources, and within a file
// in the order of the file.
//
// A component that names no texts must have a finished store or a Levanter cache in its folder. A cache is
// read once, to check it.
//
// Errors: kBusy while another process builds here; kInvalidArgument when the existing store was made from
// something else (names what differs); errors in a source name file and line; kCorrupt when the store is
// damaged.
Result<data::StoreLedger> build_store(io::FileSystem& fs, const data::DataOptions& options,
                                      const data::Component& component, const tokenizer::Tokenizer& tokenizer,
                                      const data::BuildSettings& settings = {});

}  // namespace ostro::prepare
