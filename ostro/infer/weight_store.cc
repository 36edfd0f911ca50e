#include "ostro/infer/weight_store.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ostro/base/parallel.h"
#include "ostro/numerics/bf16.h"

namespace ostro::infer {
namespace {

using models::WeightRead;
using runtime::Buffer;

constexpr int kReaders = 2;  // threads that read the experts of a layer

io::Extents sizes(const ir::Shape& shape) {
  io::Extents out;
  for (const ir::Axis& axis : shape.axes) out.push_back(axis.size);
  return out;
}

// The shape of one index of the leading axis.
ir::Shape inner(ir::Shape shape) {
  shape.axes.erase(shape.axes.begin());
  return shape;
}

ir::Shape with_leading(ir::Shape shape, int64_t size) {
  shape.axes[0].size = size;
  return shape;
}

}  // namespace

WeightStore::WeightStore(checkpoint::PartReader reader, std::vector<ir::Shape> held,
                         const models::LayerFunctions& layers, int64_t keep_bytes)
    : reader_(std::move(reader)), held_(std::move(held)), keep_bytes_(keep_bytes) {
  std::set<WeightRead> every;
  const auto add = [&](const std::vector<WeightRead>& reads) {
    for (const WeightRead& read : reads)
      if (!read.by_expert) every.insert(read);
  };
  add(layers.embed_reads);
  add(layers.head_reads);
  for (const auto& reads : layers.attention_reads) add(reads);
  for (const auto& reads : layers.chosen_reads) add(reads);
  for (const WeightRead& read : every) every_token_bytes_ += shape_of(read).bytes();
}

ir::Shape WeightStore::shape_of(const WeightRead& read) const {
  return read.layer < 0 ? held_[read.parameter] : inner(held_[read.parameter]);
}

Status WeightStore::read_box(size_t parameter, const io::Extents& start, const io::Extents& shape,
                             std::span<std::byte> out) const {
  const bool narrow = reader_.spec(parameter).dtype == "bf16";
  if (narrow == (held_[parameter].dtype == ir::DType::bf16))
    return reader_.read(parameter, start, shape, out);
  OSTRO_CHECK(narrow, "{} is {} in the checkpoint and held in bf16", reader_.spec(parameter).path,
              reader_.spec(parameter).dtype);
  std::vector<numerics::Bf16> stored(out.size() / sizeof(float));
  RETURN_IF_ERROR(reader_.read(parameter, start, shape, std::as_writable_bytes(std::span(stored))));
  for (size_t i = 0; i < stored.size(); ++i) {
    const float x = numerics::to_f32(stored[i]);
    std::memcpy(out.data() + i * sizeof(x), &x, sizeof(x));
  }
  return {};
}

Buffer WeightStore::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  return found == kept_.end() ? Buffer() : found->second;
}

void WeightStore::keep(const Key& key, const Buffer& value) {
  const bool every = key.second < 0;
  const int64_t bytes = value.shape().bytes();
  const std::lock_guard lock(mutex_);
  int64_t& kept = every ? kept_every_token_ : kept_experts_;
  if (kept + bytes > (every ? keep_bytes_ : keep_bytes_ - every_token_bytes_)) return;
  if (kept_.emplace(key, value).second) kept += bytes;
}

int64_t WeightStore::bytes_kept() const {
  const std::lock_guard lock(mutex_);
  return kept_every_token_ + kept_experts_;
}

Result<Buffer> WeightStore::whole(const WeightRead& read) {
  const Key key{read, -1};
  if (const Buffer kept = find(key); kept.valid()) return kept;
  Buffer out = Buffer::empty(shape_of(read));
  io::Extents shape = sizes(held_[read.parameter]), start(shape.size(), 0);
  if (read.layer >= 0) {
    start[0] = read.layer;
    shape[0] = 1;
  }
  RETURN_IF_ERROR(read_box(read.parameter, start, shape, out.mutable_bytes()));
  keep(key, out);
  return out;
}

Result<Buffer> WeightStore::experts(const WeightRead& read, std::span<const int64_t> ids, int64_t places) {
  const ir::Shape layer = shape_of(read), one = inner(layer);
  Buffer out = Buffer::empty(with_leading(layer, places));
  const auto bytes = static_cast<size_t>(one.bytes());
  const std::span<std::byte> all = out.mutable_bytes();
  RETURN_IF_ERROR(parallel_for(static_cast<int64_t>(ids.size()), kReaders, [&](int64_t i) -> Status {
    const int64_t id = ids[static_cast<size_t>(i)];
    const std::span<std::byte> place = all.subspan(static_cast<size_t>(i) * bytes, bytes);
    const Key key{read, id};
    if (const Buffer kept = find(key); kept.valid()) {
      std::memcpy(place.data(), kept.bytes().data(), bytes);
      return {};
    }
    const size_t axis = read.layer < 0 ? 0 : 1;
    io::Extents shape = sizes(held_[read.parameter]), start(shape.size(), 0);
    if (axis == 1) start[0] = read.layer;
    start[axis] = id;
    for (size_t d = 0; d <= axis; ++d) shape[d] = 1;
    RETURN_IF_ERROR(read_box(read.parameter, start, shape, place));
    if (keep_bytes_ > every_token_bytes_) keep(key, Buffer::copy_of(one, place.data()));
    return {};
  }));
  return out;
}

Result<Buffer> WeightStore::rows(size_t parameter, std::span<const int32_t> ids, int64_t places) {
  const ir::Shape& table = held_[parameter];
  Buffer out = Buffer::empty(with_leading(table, places));
  const auto bytes = static_cast<size_t>(inner(table).bytes());
  const std::span<std::byte> all = out.mutable_bytes();
  const Buffer kept = find({{parameter, -1, false}, -1});
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::span<std::byte> place = all.subspan(i * bytes, bytes);
    if (kept.valid()) {
      std::memcpy(place.data(), kept.bytes().data() + static_cast<size_t>(ids[i]) * bytes, bytes);
      continue;
    }
    io::Extents shape = sizes(table), start(shape.size(), 0);
    start[0] = ids[i];
    shape[0] = 1;
    RETURN_IF_ERROR(read_box(parameter, start, shape, place));
  }
  return out;
}

}  // namespace ostro::infer
