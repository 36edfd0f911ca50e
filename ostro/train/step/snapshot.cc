#include "ostro/train/step/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ostro/base/failpoint.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/io/arrays/box.h"
#include "ostro/io/files/file_system.h"
#include "ostro/numerics/arrays.h"
#include "ostro/runtime/owned_buffer.h"

namespace ostro::train {
namespace {

using checkpoint::TensorSpec;
using runtime::Buffer;

TensorSpec spec_of(const std::string& path, const ir::Shape& shape, const optim::Boxes& boxes) {
  TensorSpec spec;
  spec.path = path;
  spec.dtype = ir::dtype_name(shape.dtype);
  for (const ir::Axis& a : shape.axes) {
    const int64_t count = std::max<int64_t>(1, boxes.count(a));
    spec.axes.push_back(a.name);
    spec.shape.push_back(a.size);
    spec.cell.push_back(std::max<int64_t>(1, (a.size + count - 1) / count));
  }
  return spec;
}

Error unknown_tensor(const TensorSpec& spec) {
  return invalid_argument(
      fmt::format("the checkpoint holds {}, which this model has not; is it of another config?", spec.path));
}

bool same_type(const TensorSpec& a, const TensorSpec& b) {
  return a.dtype == b.dtype && a.axes == b.axes && a.shape == b.shape;
}

Error other_type(const TensorSpec& spec, const TensorSpec& want) {
  return invalid_argument(
      fmt::format("{} is {} in the checkpoint but {} in the model; is it of another config?", spec.path,
                  spec.type_str(), want.type_str()));
}

Error missing_tensor(const std::string& path, const std::string& where) {
  return invalid_argument(fmt::format("{}: the model's {} is not in the checkpoint", where, path));
}

// An f32 tensor rounded to bf16, cell by cell.
Status read_rounded(const checkpoint::Checkpoint& from, size_t tensor, Buffer& to) {
  const checkpoint::Extents& whole = from.manifest().tensors[tensor].shape;
  const std::span<std::byte> out = to.mutable_bytes();
  return from.read_cells(
      static_cast<int64_t>(tensor), [&](const checkpoint::Box& cell, std::span<const std::byte> bytes) {
        const std::span wide(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
        const size_t narrow_bytes = wide.size() * sizeof(numerics::Bf16);
        if (const auto at = io::contiguous_at(whole, cell.start, cell.shape)) {
          const auto first = static_cast<size_t>(*at) * sizeof(numerics::Bf16);
          return numerics::narrow(wide, out.subspan(first, narrow_bytes));
        }
        std::vector<std::byte> narrow(narrow_bytes);
        numerics::narrow(wide, narrow);
        io::copy_box(narrow, cell.shape, checkpoint::Extents(whole.size(), 0), out, whole, cell.start,
                     cell.shape, sizeof(numerics::Bf16));
      });
}

// Bytes of an array that is worth leases.
constexpr int64_t kMappedFrom = int64_t{4} << 20;

struct Slots {
  std::map<std::string, Buffer*> by_path;
  State state;
  const bool rounded, mapped;

  explicit Slots(const StateArrays& arrays) : rounded(arrays.rounded), mapped(arrays.mapped) {
    state.params.reserve(arrays.n);
    state.optimizer.reserve(arrays.size() - arrays.n);
    for (size_t i = 0; i < arrays.size(); ++i) {
      std::vector<Buffer>& list = i < arrays.n ? state.params : state.optimizer;
      list.push_back(Buffer::empty(arrays.shapes[i]));
      by_path[arrays.paths[i]] = &list.back();
    }
  }

  Status read(const checkpoint::Checkpoint& from, size_t tensor) {
    const TensorSpec& spec = from.manifest().tensors[tensor];
    const auto it = by_path.find(spec.path);
    if (it == by_path.end()) return unknown_tensor(spec).with_context(from.path());
    Buffer& to = *it->second;
    TensorSpec want = spec_of(spec.path, to.shape(), {});
    const bool rounds = rounded && spec.dtype == "f32" && want.dtype == "bf16";
    if (rounds) want.dtype = spec.dtype;
    if (!same_type(spec, want)) return other_type(spec, want).with_context(from.path());
    failpoint("resume");
    if (mapped && !rounds && to.shape().bytes() >= kMappedFrom) {
      auto region = from.map(static_cast<int64_t>(tensor));
      if (region.ok()) {
        to = runtime::owned_buffer(to.shape(), (*region)->bytes(), *region);
        return {};
      }
      if (region.error().code() == ErrorCode::kCorrupt) return region.error();
    }
    return rounds ? read_rounded(from, tensor, to)
                  : from.read(static_cast<int64_t>(tensor), to.mutable_bytes());
  }

  // Of what has been placed.
  ParameterBytes bytes_of(const checkpoint::Manifest& manifest) const {
    return [this, &manifest](size_t tensor) -> Result<std::span<const std::byte>> {
      const TensorSpec& spec = manifest.tensors[tensor];
      const auto it = by_path.find(spec.path);
      if (it == by_path.end())
        return invalid_argument(fmt::format("{} is no tensor of the model", spec.path));
      OSTRO_CHECK(spec.dtype == ir::dtype_name(it->second->shape().dtype), "{} was rounded", spec.path);
      return std::as_const(*it->second).bytes();
    };
  }
};

Status check_complete(const Slots& slots, const std::vector<TensorSpec>& found, const std::string& where) {
  for (const auto& [path, buffer] : slots.by_path) {
    bool there = false;
    for (const TensorSpec& s : found) there |= s.path == path;
    if (!there) return missing_tensor(path, where);
  }
  return Status();
}

}  // namespace

std::vector<TensorSpec> state_tensors(const StateArrays& arrays, const optim::Boxes& boxes) {
  std::vector<TensorSpec> out;
  for (size_t i = 0; i < arrays.size(); ++i) out.push_back(spec_of(arrays.paths[i], arrays.shapes[i], boxes));
  return out;
}

Status check_tensors(const checkpoint::Manifest& manifest, const StateArrays& arrays,
                     const std::string& where) {
  const std::vector<TensorSpec> model = state_tensors(arrays, {});
  const auto find = [](const std::vector<TensorSpec>& list, const std::string& path) {
    return std::find_if(list.begin(), list.end(), [&](const TensorSpec& s) { return s.path == path; });
  };
  for (const TensorSpec& spec : manifest.tensors) {
    const auto want = find(model, spec.path);
    if (want == model.end()) return unknown_tensor(spec).with_context(where);
    if (!same_type(spec, *want)) return other_type(spec, *want).with_context(where);
  }
  for (const TensorSpec& spec : model)
    if (find(manifest.tensors, spec.path) == manifest.tensors.end()) return missing_tensor(spec.path, where);
  return Status();
}

Result<std::vector<checkpoint::Tensor>> snapshot(const State& state, const StateArrays& arrays,
                                                 const optim::Boxes& boxes) {
  std::vector<checkpoint::Tensor> out;
  for (size_t i = 0; i < arrays.size(); ++i) {
    ASSIGN_OR_RETURN(Buffer on_host,
                     (i < arrays.n ? state.params[i] : state.optimizer[i - arrays.n]).to_host());
    const auto owner = std::make_shared<const Buffer>(std::move(on_host));
    out.push_back({spec_of(arrays.paths[i], owner->shape(), boxes), owner->bytes(), owner});
  }
  return out;
}

bool fits_beside(const State& state, const runtime::Memory& memory, int64_t planned) {
  int64_t arrays = 0;
  for (const auto* list : {&state.params, &state.optimizer})
    for (const Buffer& b : *list)
      if (!b.on_host()) arrays += memory.taken(b.shape().bytes());
  if (arrays == 0) return false;
  constexpr int64_t kSpare = 16;  // a part of all, because a plan may be off by 5 %
  const int64_t most = planned + arrays;
  return most + most / kSpare - memory.use().now <= memory.available().bytes;
}

Result<std::function<Result<std::vector<checkpoint::Tensor>>()>> snapshot_beside(const State& state,
                                                                                 const StateArrays& arrays,
                                                                                 const optim::Boxes& boxes,
                                                                                 runtime::Memory& memory) {
  struct Held {
    std::vector<Buffer> buffers;
    std::unique_ptr<runtime::BlockReader> reader;
  };
  auto held = std::make_shared<Held>();
  for (size_t i = 0; i < arrays.size(); ++i) held->buffers.push_back(array_of(state, i));
  ASSIGN_OR_RETURN(held->reader, memory.reader());
  std::vector<TensorSpec> specs = state_tensors(arrays, boxes);
  return std::function<Result<std::vector<checkpoint::Tensor>>()>(
      [held, specs = std::move(specs)]() -> Result<std::vector<checkpoint::Tensor>> {
        std::vector<checkpoint::Tensor> out;
        for (size_t i = 0; i < specs.size(); ++i) {
          failpoint("device_copy");
          Buffer near = std::exchange(held->buffers[i], Buffer());
          if (!near.on_host()) {
            const Buffer far = std::exchange(near, Buffer::empty(near.shape()));
            RETURN_IF_ERROR(held->reader->read(far.block(), far.offset(), near.mutable_bytes()));
          }
          const auto owner = std::make_shared<const Buffer>(std::move(near));
          out.push_back({specs[i], owner->bytes(), owner});
        }
        held->reader.reset();
        return out;
      });
}

Result<RestoredState> load_state(io::FileSystem& fs, const std::string& path, const StateArrays& arrays,
                                 const StateChecks& checks) {
  ASSIGN_OR_RETURN(const checkpoint::Checkpoint c, checkpoint::Checkpoint::open(fs, path));
  if (checks.manifest) {
    ASSIGN_OR_RETURN(const Status verdict, checks.manifest(c.manifest(), path));
    RETURN_IF_ERROR(verdict);
  }
  Slots slots(arrays);
  RETURN_IF_ERROR(check_complete(slots, c.manifest().tensors, path));
  for (size_t i = 0; i < c.manifest().tensors.size(); ++i) {
    const TensorSpec& spec = c.manifest().tensors[i];
    if (arrays.partial && !slots.by_path.count(spec.path)) continue;
    RETURN_IF_ERROR(slots.read(c, i));
  }
  c.log_sources();
  if (checks.parameters) RETURN_IF_ERROR(checks.parameters(c.manifest(), path, slots.bytes_of(c.manifest())));
  slots.state.step = c.manifest().info.step;
  return RestoredState{std::move(slots.state), path, c.manifest().name};
}

}  // namespace ostro::train
