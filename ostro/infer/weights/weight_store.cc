#include "ostro/infer/weights/weight_store.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/numerics/arrays.h"

namespace ostro::infer {
namespace {

using models::WeightRead;
using Part = checkpoint::PartReader::Part;
using runtime::Buffer;

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

// Reads all parts in one call of the reader. A bf16 tensor that the model holds in f32 is read into memory of
// its own and then widened.
Status WeightStore::read_parts(std::vector<Part> parts) const {
  struct Narrow {
    AlignedBytes stored;  // bf16
    size_t bytes;
    std::span<std::byte> held;  // f32
  };
  std::vector<Narrow> narrow;
  for (Part& part : parts) {
    const bool is_bf16 = reader_.spec(part.tensor).dtype == "bf16";
    if (is_bf16 == (held_[part.tensor].dtype == ir::DType::bf16)) continue;
    OSTRO_CHECK(is_bf16, "{} is {} in the checkpoint and held in bf16", reader_.spec(part.tensor).path,
                reader_.spec(part.tensor).dtype);
    const size_t bytes = part.bytes.size() / sizeof(float) * sizeof(numerics::Bf16);
    narrow.push_back({allocate_aligned(bytes), bytes, part.bytes});
    part.bytes = {narrow.back().stored.get(), bytes};
  }
  RETURN_IF_ERROR(reader_.read(parts));
  for (const Narrow& n : narrow) numerics::widen({n.stored.get(), n.bytes}, n.held);
  return {};
}

Buffer WeightStore::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  return found == kept_.end() ? Buffer() : found->second;
}

void WeightStore::keep(const Key& key, const ir::Shape& shape, const std::function<Buffer()>& value) {
  const bool every = key.second < 0;
  const std::lock_guard lock(mutex_);
  int64_t& kept = every ? kept_every_token_ : kept_experts_;
  if (kept + shape.bytes() > (every ? keep_bytes_ : keep_bytes_ - every_token_bytes_)) return;
  if (kept_.emplace(key, value()).second) kept += shape.bytes();
}

int64_t WeightStore::bytes_kept() const {
  const std::lock_guard lock(mutex_);
  return kept_every_token_ + kept_experts_;
}

Result<std::vector<Buffer>> WeightStore::whole(std::span<const WeightRead> reads) {
  std::vector<Buffer> out(reads.size());
  std::vector<Part> parts;
  std::vector<size_t> fresh;
  for (size_t i = 0; i < reads.size(); ++i) {
    const WeightRead& read = reads[i];
    if (read.by_expert) continue;
    out[i] = find({read, -1});
    if (out[i].valid()) continue;
    out[i] = Buffer::empty(shape_of(read));
    io::Extents shape = sizes(held_[read.parameter]), start(shape.size(), 0);
    if (read.layer >= 0) {
      start[0] = read.layer;
      shape[0] = 1;
    }
    parts.push_back({read.parameter, start, shape, out[i].mutable_bytes()});
    fresh.push_back(i);
  }
  RETURN_IF_ERROR(read_parts(std::move(parts)));
  for (const size_t i : fresh) keep({reads[i], -1}, out[i].shape(), [&] { return out[i]; });
  return out;
}

// Experts that are kept are copied into their places; the others are read there, all together, and each is
// then copied into the store if there is room.
Result<std::vector<Buffer>> WeightStore::experts(std::span<const WeightRead> reads,
                                                 std::span<const int64_t> ids, int64_t places) {
  std::vector<Buffer> out(reads.size());
  std::vector<Part> parts;
  std::vector<std::pair<Key, Part>> fresh;
  for (size_t r = 0; r < reads.size(); ++r) {
    const WeightRead& read = reads[r];
    if (!read.by_expert) continue;
    const ir::Shape layer = shape_of(read);
    const auto bytes = static_cast<size_t>(inner(layer).bytes());
    out[r] = Buffer::empty(with_leading(layer, places));
    const std::span<std::byte> all = out[r].mutable_bytes();
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::span<std::byte> place = all.subspan(i * bytes, bytes);
      if (const Buffer kept = find({read, ids[i]}); kept.valid()) {
        std::memcpy(place.data(), kept.bytes().data(), bytes);
        continue;
      }
      const size_t axis = read.layer < 0 ? 0 : 1;
      io::Extents shape = sizes(held_[read.parameter]), start(shape.size(), 0);
      if (axis == 1) start[0] = read.layer;
      start[axis] = ids[i];
      for (size_t d = 0; d <= axis; ++d) shape[d] = 1;
      parts.push_back({read.parameter, start, shape, place});
      fresh.push_back({{read, ids[i]}, parts.back()});
    }
  }
  RETURN_IF_ERROR(read_parts(std::move(parts)));
  for (const auto& [key, part] : fresh) {
    const ir::Shape one = inner(shape_of(key.first));
    keep(key, one, [&] { return Buffer::copy_of(one, part.bytes.data()); });
  }
  return out;
}

Result<Buffer> WeightStore::rows(size_t parameter, std::span<const int32_t> ids, int64_t places) {
  const ir::Shape& table = held_[parameter];
  Buffer out = Buffer::empty(with_leading(table, places));
  const auto bytes = static_cast<size_t>(inner(table).bytes());
  const std::span<std::byte> all = out.mutable_bytes();
  const Buffer kept = find({{parameter, -1, false}, -1});
  std::vector<Part> parts;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::span<std::byte> place = all.subspan(i * bytes, bytes);
    if (kept.valid()) {
      std::memcpy(place.data(), kept.bytes().data() + static_cast<size_t>(ids[i]) * bytes, bytes);
      continue;
    }
    io::Extents shape = sizes(table), start(shape.size(), 0);
    start[0] = ids[i];
    shape[0] = 1;
    parts.push_back({parameter, start, shape, place});
  }
  RETURN_IF_ERROR(read_parts(std::move(parts)));
  return out;
}

}  // namespace ostro::infer
