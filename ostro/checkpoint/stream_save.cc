#include "ostro/checkpoint/stream_save.h"

#include <utility>

#include "ostro/base/parallel.h"
#include "ostro/checkpoint/save_parts.h"
#include "ostro/io/arrays/zarr.h"

namespace ostro::checkpoint {

struct StreamSave::State {
  io::FileSystem* fs = nullptr;
  std::string root, temporary;
  Manifest manifest;
  std::vector<std::vector<Box>> boxes;  // of each tensor
  std::vector<io::ZarrArray> arrays;
  int threads = 1;
  size_t missing = 0;  // cells
  std::vector<std::vector<bool>> written;
};

StreamSave::StreamSave(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamSave::StreamSave(StreamSave&&) noexcept = default;

StreamSave::~StreamSave() {
  // If this fails, the next save removes the directory (remove_leftovers).
  if (state_) (void)state_->fs->remove_all(state_->temporary);
}

Result<StreamSave> StreamSave::begin(io::FileSystem& fs, std::string root, Info info,
                                     std::vector<TensorSpec> tensors, const SaveOptions& options) {
  auto state = std::make_unique<State>();
  state->fs = &fs;
  state->threads = options.threads;
  state->temporary = temporary_directory(fs, root, info.step);
  state->root = std::move(root);
  RETURN_IF_ERROR(begin_save(fs, state->root, state->temporary, info, tensors, options));
  state->manifest.info = std::move(info);
  for (const TensorSpec& spec : tensors) {
    ASSIGN_OR_RETURN(io::ZarrArray array, open_array_to_write(fs, state->temporary, spec, options));
    state->arrays.push_back(std::move(array));
    state->boxes.push_back(cells_of(spec));
    state->manifest.cells.emplace_back(state->boxes.back().size());
    state->written.emplace_back(state->boxes.back().size(), false);
    state->missing += state->boxes.back().size();
  }
  state->manifest.tensors = std::move(tensors);
  return StreamSave(std::move(state));
}

Status StreamSave::write(size_t tensor, size_t cell, std::span<const std::byte> bytes) {
  const Box& box = state_->boxes.at(tensor).at(cell);
  const TensorSpec& spec = state_->manifest.tensors[tensor];
  if (static_cast<int64_t>(bytes.size()) != io::product(box.shape) * dtype_size(spec.dtype))
    return invalid_argument(fmt::format("{}: cell {} of {}: {} bytes given, {} needed", state_->root, cell,
                                        spec.path, bytes.size(),
                                        io::product(box.shape) * dtype_size(spec.dtype)));
  RETURN_IF_ERROR(parallel_for(2, state_->threads, [&](int64_t job) -> Status {
    if (job == 1) return state_->arrays[tensor].write_box(box.start, box.shape, bytes);
    state_->manifest.cells[tensor][cell] = sha256(bytes);
    return {};
  }));
  if (!state_->written[tensor][cell]) --state_->missing;
  state_->written[tensor][cell] = true;
  return {};
}

Result<Saved> StreamSave::finish() {
  if (state_->missing > 0)
    return invalid_argument(fmt::format("{}: {} cells were never written", state_->root, state_->missing));
  RETURN_IF_ERROR(state_->fs->sync_tree(state_->temporary));
  auto saved = finish_save(*state_->fs, state_->root, state_->temporary, std::move(state_->manifest));
  if (saved.ok()) state_.reset();
  return saved;
}

}  // namespace ostro::checkpoint
