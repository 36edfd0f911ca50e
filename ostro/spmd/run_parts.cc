#include "ostro/spmd/run_parts.h"

#include <cstring>

#include <fmt/format.h>

namespace ostro::spmd {
namespace {

using runtime::Buffer;

// The contiguous runs of bytes that worker `rank` holds of a value. The trailing axes that are not split and
// the range of the axis before them make one run.
class Runs {
 public:
  Runs(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const ir::Shape& whole)
      : part_(local_shape(mesh, rank, layout, whole)),
        strides_(whole.strides()),
        element_(ir::dtype_size(whole.dtype)),
        inner_(layout.size()) {
    while (inner_ > 0 && !layout[inner_ - 1].split()) --inner_;
    for (size_t i = 0; i < inner_; ++i)
      firsts_.push_back(held(mesh, rank, layout[i], whole.axes[i].size).first);
    bytes_ = element_;
    for (size_t i = inner_; i < layout.size(); ++i) bytes_ *= whole.axes[i].size;
    if (inner_ > 0) bytes_ *= part_.axes[inner_ - 1].size;
    if (part_.count() > 0) count_ = part_.bytes() / bytes_;
  }

  int64_t count() const { return count_; }
  int64_t bytes() const { return bytes_; }  // of each
  // Where run r begins in the whole, in bytes; in the part it begins at r * bytes().
  int64_t at(int64_t r) const {
    int64_t at = 0;
    for (size_t i = inner_; i-- > 0;) {
      int64_t index = firsts_[i];
      if (i + 1 < inner_) {
        index += r % part_.axes[i].size;
        r /= part_.axes[i].size;
      }
      at += index * strides_[i];
    }
    return at * element_;
  }

 private:
  ir::Shape part_;
  std::vector<int64_t> strides_, firsts_;
  int64_t element_, bytes_ = 0, count_ = 0;
  size_t inner_;  // axes from here on are whole
};

}  // namespace

Buffer shard(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const Buffer& whole) {
  Buffer out = Buffer::empty(local_shape(mesh, rank, layout, whole.shape()));
  const Runs runs(mesh, rank, layout, whole.shape());
  std::byte* const to = out.mutable_bytes().data();
  for (int64_t r = 0; r < runs.count(); ++r)
    std::memcpy(to + r * runs.bytes(), whole.bytes().data() + runs.at(r), static_cast<size_t>(runs.bytes()));
  return out;
}

std::optional<int64_t> part_offset(const ir::Mesh& mesh, int64_t rank, const Layout& layout,
                                   const ir::Shape& whole) {
  const Runs runs(mesh, rank, layout, whole);
  if (runs.count() == 0) return 0;
  return runs.count() == 1 ? std::optional(runs.at(0)) : std::nullopt;
}

void place(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const Buffer& part, Buffer& whole) {
  const Runs runs(mesh, rank, layout, whole.shape());
  std::byte* const to = whole.mutable_bytes().data();
  for (int64_t r = 0; r < runs.count(); ++r)
    std::memcpy(to + runs.at(r), part.bytes().data() + r * runs.bytes(), static_cast<size_t>(runs.bytes()));
}

Result<Buffer> join(const ir::Mesh& mesh, const Layout& layout, const ir::Shape& whole,
                    const std::vector<Buffer>& parts) {
  Buffer out = Buffer::zeros(whole);
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    place(mesh, rank, layout, parts[static_cast<size_t>(rank)], out);
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    const Buffer again = shard(mesh, rank, layout, out);
    const auto a = again.bytes(), b = parts[static_cast<size_t>(rank)].bytes();
    if (a.size() != b.size() || (!a.empty() && std::memcmp(a.data(), b.data(), a.size()) != 0))
      return Error(
          ErrorCode::kInternal,
          fmt::format("workers hold different bits of the same part of {} (worker {})", whole.str(), rank));
  }
  return out;
}

Result<std::vector<Buffer>> run_parts(runtime::Engine& engine, const Partition& partition,
                                      const std::vector<Buffer>& inputs, const RunWorkers& run_workers) {
  if (inputs.size() != partition.params.size())
    return invalid_argument(
        fmt::format("{} inputs for a program of {}", inputs.size(), partition.params.size()));
  const auto workers = static_cast<size_t>(partition.mesh.size());
  std::vector<std::vector<Buffer>> parts(workers);
  RETURN_IF_ERROR(run_workers([&](runtime::Collectives& collectives) -> Status {
    const int64_t rank = collectives.rank();
    ASSIGN_OR_RETURN(auto executable, engine.compile(*partition.programs[static_cast<size_t>(rank)]));
    std::vector<Buffer> mine;
    for (size_t i = 0; i < inputs.size(); ++i)
      mine.push_back(shard(partition.mesh, rank, partition.params[i], inputs[i]));
    ASSIGN_OR_RETURN(std::vector<Buffer> made, executable->run(std::move(mine), {&collectives}));
    ASSIGN_OR_RETURN(parts[static_cast<size_t>(rank)],
                     runtime::all_to(std::move(made), runtime::host_memory()));
    return Status();
  }));
  std::vector<Buffer> results;
  for (size_t i = 0; i < partition.results.size(); ++i) {
    std::vector<Buffer> of_workers;
    for (auto& p : parts) of_workers.push_back(p[i]);
    ASSIGN_OR_RETURN(Buffer whole,
                     join(partition.mesh, partition.results[i], partition.result_shapes[i], of_workers));
    results.push_back(std::move(whole));
  }
  return results;
}

}  // namespace ostro::spmd
