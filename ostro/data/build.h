// Builds the token store of a data set: texts in, token ids with offsets and a ledger out.
#pragma once

#include <functional>
#include <string>

#include "ostro/data/array_writer.h"
#include "ostro/data/ledger.h"
#include "ostro/data/options.h"
#include "ostro/io/file_system.h"
#include "ostro/tokenizer/tokenizer.h"

namespace ostro::data {

struct BuildProgress {
  int64_t files_done = 0, files_total = 0;
  int64_t bytes_done = 0, bytes_total = 0;  // of the files as they lie on disk
  int64_t bytes_resumed = 0;                // of bytes_done: by a build before this one
  int64_t documents = 0, tokens = 0;        // of both splits

  // Adds chunk `number` of an array, of so many elements of `bytes` each, where a store is read as a whole.
  void count_chunk(ArrayId id, int64_t number, int64_t elements, size_t bytes) {
    bytes_done += elements * static_cast<int64_t>(bytes);
    if (id == ArrayId::kData) tokens += elements;
    if (id == ArrayId::kOffsets) documents += elements - (number == 0);  // element 0 is the number of rows
  }
};

// How to build: nothing here changes the ledger, but for `layout`.
struct BuildSettings {
  int threads = 0;  // 0: as many as the machine has
  int threads_or_all() const;
  int64_t commit_bytes = 64 << 20;  // of text: how much work a kill may cost
  ArrayLayout layout;               // tests use small chunks
  bool append = false;  // extend a finished store by files that its sources have at the end of their lists
  std::function<void(const BuildProgress&)> progress;  // after every unit; never twice at once
};

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
