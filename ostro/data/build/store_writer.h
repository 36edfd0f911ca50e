// Writes a token store: rows appended to all arrays of both splits, commits that a kill cannot undo, the
// ledger at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/build/encoded_unit.h"
#include "ostro/data/build/journal.h"
#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// Not thread-safe. Refers to the file system.
class StoreWriter {
 public:
  // A new store, with a journal of its own. `base`: the store is finished with that state and is extended.
  static Result<StoreWriter> create(io::FileSystem& fs, const std::string& cache_dir, Journal::Header header,
                                    const ArrayLayout& layout, ElementType ids,
                                    const BuildState* base = nullptr);
  // Goes on where the journal says.
  static Result<StoreWriter> resume(io::FileSystem& fs, const std::string& cache_dir, Journal::Found found);

  const std::vector<SourceFile>& sources() const { return header_.sources; }
  const Preprocessing& preprocessing() const { return header_.preprocessing; }
  const BuildState& state() const { return state_; }

  Status add(const EncodedUnit& unit);
  // Bytes of text since the last commit.
  int64_t uncommitted() const { return uncommitted_; }
  // Makes everything added durable. `encoded`: there is no more.
  Status commit(bool encoded);
  // After commit(true): closes the store, writes its ledger and removes the journal. May be done again after
  // a kill.
  Result<StoreLedger> finish();

 private:
  StoreWriter(io::FileSystem& fs, std::string cache_dir, Journal::Header header);

  template <typename Visit>
  Status for_each_array(const Visit& visit);
  std::string folder(Split split, const ArrayPlace& place) const;
  Status open_arrays(const ArrayLayout* layout, ElementType ids);
  Status append_split(Split split, const EncodedUnit& unit);
  Status close_array(Split split, const ArrayPlace& place, SplitLedger& out);

  io::FileSystem* fs_;
  std::string cache_dir_;
  Journal::Header header_;
  std::vector<ArrayPlace> places_;
  std::optional<Journal> journal_;
  BuildState state_;
  PerArray<std::optional<ArrayWriter>> writers_;
  int64_t uncommitted_ = 0;
};

// The state of a finished store as if its build stood just before its end, for extending it: from the
// digests, or where they are missing (stores made before they were kept) or wrong by reading the arrays.
Result<BuildState> state_of_finished(io::FileSystem& fs, const std::string& cache_dir,
                                     const StoreLedger& ledger);

}  // namespace ostro::data
