// Writes a token store: appends rows to the arrays of both splits, commits from time to time so that a killed
// build can continue, and writes the ledger at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/prepare/store/encoded_unit.h"
#include "ostro/prepare/store/journal.h"

namespace ostro::prepare {

// Not thread-safe. The file system must outlive it.
class StoreWriter {
 public:
  // A new store with a new journal. With `base`, a finished store with that state is extended.
  static Result<StoreWriter> create(io::FileSystem& fs, const std::string& cache_dir, Journal::Header header,
                                    const data::ArrayLayout& layout, data::ElementType ids,
                                    const BuildState* base = nullptr);
  // Continues at the last commit of the journal.
  static Result<StoreWriter> resume(io::FileSystem& fs, const std::string& cache_dir, Journal::Found found);

  const std::vector<data::SourceFile>& sources() const { return header_.sources; }
  const data::Preprocessing& preprocessing() const { return header_.preprocessing; }
  const BuildState& state() const { return state_; }

  Status add(const EncodedUnit& unit);
  // Bytes of text since the last commit.
  int64_t uncommitted() const { return uncommitted_; }
  // Makes everything added so far durable. `encoded`: all documents were added.
  Status commit(bool encoded);
  // Call after commit(true). Closes the arrays, reads the rows for their tree, writes the ledger and removes
  // the journal. May be repeated after a kill.
  Result<data::StoreLedger> finish(int threads);

 private:
  StoreWriter(io::FileSystem& fs, std::string cache_dir, Journal::Header header);

  template <typename Visit>
  Status for_each_array(const Visit& visit);
  std::string folder(data::Split split, const data::ArrayPlace& place) const;
  Status open_arrays(const data::ArrayLayout* layout, data::ElementType ids);
  Status append_split(data::Split split, const EncodedUnit& unit);
  Status close_array(data::Split split, const data::ArrayPlace& place, data::SplitLedger& out);

  io::FileSystem* fs_;
  std::string cache_dir_;
  Journal::Header header_;
  std::vector<data::ArrayPlace> places_;
  std::optional<Journal> journal_;
  BuildState state_;
  data::PerArray<std::optional<data::ArrayWriter>> writers_;
  int64_t uncommitted_ = 0;
};

// The build state of a finished store, as it was just before the build ended. Needed to extend the store.
// Taken from the file of digests. When that is missing (older stores) or wrong, the arrays are read.
Result<BuildState> state_of_finished(io::FileSystem& fs, const std::string& cache_dir,
                                     const data::StoreLedger& ledger);

}  // namespace ostro::prepare
