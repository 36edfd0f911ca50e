// StoreWriter: writes a token store: appends rows to the arrays of both splits, commits from time to time so
// that a killed build can continue, and writes the ledger at the end.
//
// Errors: those of writing and of the journal; kCorrupt when an array is not what the journal says.
#pragma once

#include <map>
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
  // Begins a store, with a new journal. `layout` says how its arrays are stored, `ids` the type of its token
  // ids. With `base`, the state of a finished store in `cache_dir`, it extends that store, which has no
  // ledger until finish() is done.
  static Result<StoreWriter> create(io::FileSystem& fs, const std::string& cache_dir, Journal::Header header,
                                    const data::ArrayLayout& layout, data::ElementType ids,
                                    const BuildState* base = nullptr);
  // Continues at the last commit of the journal.
  static Result<StoreWriter> resume(io::FileSystem& fs, const std::string& cache_dir, Journal::Found found);

  const std::vector<data::SourceFile>& sources() const { return header_.sources; }
  const data::Preprocessing& preprocessing() const { return header_.preprocessing; }
  const BuildState& state() const { return state_; }

  // Appends the rows of a unit, which must come in the order of the sources.
  Status add(const EncodedUnit& unit);
  // Bytes of text since the last commit.
  int64_t uncommitted() const { return uncommitted_; }
  // Makes everything that was added durable. `encoded`: all documents of all sources were added.
  Status commit(bool encoded);
  // For the ledger: what verdicts leave out of each source, by reason. Before finish().
  void note_left_out(std::vector<std::map<std::string, int64_t>> reasons) { left_out_ = std::move(reasons); }
  // Ends a store after commit(true): closes the arrays, reads the rows with `threads` threads for the tree of
  // rows, writes the ledger and removes the journal. Returns the ledger. After a kill, resume() and finish()
  // do it again.
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
  std::vector<std::map<std::string, int64_t>> left_out_;  // by source
};

// Returns the build state of a finished store, as it was just before its ledger was written, to extend the
// store from there. The sums of chunks come from the file of digests; when that is missing (older stores) or
// wrong, the arrays are read. Errors: kCorrupt for a damaged store, kUnsupported for arrays without shards.
Result<BuildState> state_of_finished(io::FileSystem& fs, const std::string& cache_dir,
                                     const data::StoreLedger& ledger);

}  // namespace ostro::prepare
