// ChainWriter: appends entries to chain.jsonl.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"

namespace ostro::chain {

// The end of one run's chain. Not thread-safe; refers to `fs`. At most one per chain (the run's lock,
// lock.h).
//
// A line reaches the operating system before append() returns, so it survives the process; it is durable
// after sync(). Call sync() before a checkpoint is committed whose manifest holds head(): then a chain always
// reaches as far as the checkpoints of its run.
class ChainWriter {
 public:
  // Begins a new chain with its first entry, which is written atomically and durable. Error: kBusy when the
  // file exists.
  static Result<ChainWriter> create(io::FileSystem& fs, const std::string& path, const GenesisEntry& genesis);
  // Continues a chain after `step` steps; later entries in the file are cut off (truncate_to_step).
  static Result<ChainWriter> resume(io::FileSystem& fs, const std::string& path, int64_t step);

  // Writes one entry and then, for a checkpoint entry, syncs. Passes the failpoint "chain_append" in the
  // middle of the line. After a failure the unfinished line is cut off where that is still possible, and
  // every later append gives the same error.
  Status append(const StepEntry& entry);
  Status append(const AmendEntry& entry);
  Status append(const CheckpointEntry& entry);

  // Says that a checkpoint entry of the last step will come, when its state is hashed. Until then the other
  // entries wait in memory, so their order in the chain does not depend on how long the hashing takes.
  void expect_checkpoint();
  bool expects_checkpoint() const { return expecting_; }

  // Makes everything that was written durable. Error: kIo, also when the file at the path is no longer the
  // one that was written to.
  Status sync();

  // The chain in the file, without entries that wait.
  const Chain& chain() const { return chain_; }
  const std::string& head() const { return chain_.head(); }

 private:
  ChainWriter(io::FileSystem& fs, std::string path, Chain chain, std::unique_ptr<io::WritableFile> file);

  Status append_entry(ChainEntry entry);
  Status write_line(const std::string& line);
  Status check_in_place() const;

  io::FileSystem* fs_;
  std::string path_;
  Chain chain_;
  std::unique_ptr<io::WritableFile> file_;
  bool expecting_ = false;
  std::vector<ChainEntry> waiting_;
  Status status_;  // the first failure
};

}  // namespace ostro::chain
