// StreamSave: writes a checkpoint cell by cell, for states that do not fit into memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/checkpoint/save.h"

namespace ostro::checkpoint {

// One save in progress. Until finish() there is only the temporary directory, which the destructor removes.
// Use from one thread. `fs` must outlive it.
class StreamSave {
 public:
  // Makes the directories of the checkpoint of info.step below `root`. The errors of all functions are those
  // of the file system, and kInvalidArgument in the cases below.
  static Result<StreamSave> begin(io::FileSystem& fs, std::string root, Info info,
                                  std::vector<TensorSpec> tensors, const SaveOptions& options = {});
  StreamSave(StreamSave&&) noexcept;
  ~StreamSave();

  // Writes one cell: dense row-major bytes of the box cells_of(tensors[tensor])[cell].
  // kInvalidArgument when their number is not that of the box.
  Status write(size_t tensor, size_t cell, std::span<const std::byte> bytes);
  // Makes all cells durable, then publishes the checkpoint. kInvalidArgument when a cell was not written.
  Result<Saved> finish();

 private:
  struct State;
  explicit StreamSave(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::checkpoint
