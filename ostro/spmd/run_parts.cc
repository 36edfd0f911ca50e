#include "ostro/spmd/run_parts.h"

#include <cstring>

#include <fmt/format.h>

namespace ostro::spmd {
namespace {

using runtime::Buffer;

// Calls f(offset in the whole, offset in the part, bytes) for every contiguous run of bytes that worker
// `rank` holds. The trailing axes that are not split and the range of the axis before them make one run.
template <typename F>
void for_each_run(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const ir::Shape& whole, F&& f) {
  const ir::Shape part = local_shape(mesh, rank, layout, whole);
  if (part.count() == 0) return;
  size_t inner = layout.size();  // axes from here on are whole: one run
  while (inner > 0 && !layout[inner - 1].split()) --inner;
  const std::vector<int64_t> strides = whole.strides();
  int64_t run = ir::dtype_size(whole.dtype);
  for (size_t i = inner; i < layout.size(); ++i) run *= whole.axes[i].size;
  if (inner > 0) run *= part.axes[inner - 1].size;
  const int64_t runs = part.bytes() / run;
  for (int64_t r = 0; r < runs; ++r) {
    int64_t rest = r, at = 0;
    for (size_t i = inner; i-- > 0;) {
      int64_t index = held(mesh, rank, layout[i], whole.axes[i].size).first;
      if (i + 1 < inner) {
        index += rest % part.axes[i].size;
        rest /= part.axes[i].size;
      }
      at += index * strides[i];
    }
    f(at * ir::dtype_size(whole.dtype), r * run, run);
  }
}

}  // namespace

Buffer shard(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const Buffer& whole) {
  Buffer out = Buffer::empty(local_shape(mesh, rank, layout, whole.shape()));
  for_each_run(mesh, rank, layout, whole.shape(), [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(out.mutable_bytes().data() + to, whole.bytes().data() + from, static_cast<size_t>(bytes));
  });
  return out;
}

std::optional<int64_t> part_offset(const ir::Mesh& mesh, int64_t rank, const Layout& layout,
                                   const ir::Shape& whole) {
  int64_t runs = 0, offset = 0;
  for_each_run(mesh, rank, layout, whole, [&](int64_t at, int64_t, int64_t) {
    if (runs++ == 0) offset = at;
  });
  return runs <= 1 ? std::optional(offset) : std::nullopt;
}

void place(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const Buffer& part, Buffer& whole) {
  for_each_run(mesh, rank, layout, whole.shape(), [&](int64_t to, int64_t from, int64_t bytes) {
    std::memcpy(whole.mutable_bytes().data() + to, part.bytes().data() + from, static_cast<size_t>(bytes));
  });
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
