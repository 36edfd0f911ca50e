// leaves.jsonl: what a run keeps of the leaves of its steps, so that one leaf can be proven later
// (docs/reference/formats/chain.md, "leaves.jsonl"). A line for each step, with the losses and the
// fingerprints of the gradients of all leaves. The chain's Merkle roots say whether it is true.
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

// Cuts off what the file has of steps behind `step`, and an unfinished line; durable. Does nothing where
// there is no such file.
Status cut_leaves(io::FileSystem& fs, const std::string& path, int64_t step);

// Appends lines. Not thread-safe.
class LeafWriter {
 public:
  // Goes on after `step` steps: what follows in the file is cut off.
  static Result<LeafWriter> resume(io::FileSystem& fs, const std::string& path, int64_t step);
  // The line has reached the operating system when this returns.
  Status append(int64_t step, std::span<const LeafRecord> leaves);
  // Everything written so far becomes durable.
  Status sync() { return file_->sync(); }

 private:
  explicit LeafWriter(std::unique_ptr<io::WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<io::WritableFile> file_;
};

// The leaves of a step. Errors: kNotFound, there is no such file or it lacks the step; kCorrupt, its line is
// not one.
Result<std::vector<LeafRecord>> read_leaves(io::FileSystem& fs, const std::string& path, int64_t step);

}  // namespace ostro::chain
