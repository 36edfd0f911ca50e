// leaves.jsonl: the file in which a run keeps the leaves of its steps, so that one leaf can be proven later
// (docs/reference/formats/chain.md, "leaves.jsonl"). It has a line for each step, with the losses and the
// gradients' fingerprints of all leaves. The chain's Merkle roots show whether the lines are true.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/chain/leaves.h"
#include "ostro/io/files/file_system.h"

namespace ostro::chain {

inline constexpr const char* kLeavesFile = "leaves.jsonl";

// The line of a step, without its newline.
std::string leaves_line(int64_t step, std::span<const LeafRecord> leaves);

// Cuts off the lines of steps after `step`, and an unfinished line, and makes that durable. Does nothing when
// there is no such file.
Status cut_leaves(io::FileSystem& fs, const std::string& path, int64_t step);

// Appends lines. Not thread-safe.
class LeafWriter {
 public:
  // Continues the file after `step` steps; later lines are cut off.
  static Result<LeafWriter> resume(io::FileSystem& fs, const std::string& path, int64_t step);
  // The line has reached the operating system when this returns.
  Status append(int64_t step, std::span<const LeafRecord> leaves);
  // Makes everything that was written durable.
  Status sync() { return file_->sync(); }

 private:
  explicit LeafWriter(std::unique_ptr<io::WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<io::WritableFile> file_;
};

// Returns the leaves of a step. Errors: kNotFound when there is no such file or it lacks the step; kCorrupt
// for a damaged line.
Result<std::vector<LeafRecord>> read_leaves(io::FileSystem& fs, const std::string& path, int64_t step);

}  // namespace ostro::chain
