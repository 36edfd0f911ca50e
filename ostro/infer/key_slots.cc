#include "ostro/infer/key_slots.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::infer {

using runtime::Buffer;

Result<KeySlots> KeySlots::create(const ir::Shape& one, int64_t layers, runtime::Memory& memory) {
  OSTRO_CHECK(one.axes.size() > 2, "{} is no [slot, position, ...]", one.str());
  KeySlots out;
  out.slots_ = one.axes[0].size;
  out.positions_ = one.axes[1].size;
  out.slots_of_.resize(static_cast<size_t>(out.slots_));
  const int64_t rows = out.slots_ * out.positions_, width = one.count() / rows;
  out.row_bytes_ = static_cast<size_t>(one.bytes() / rows);
  const ir::Shape flat{one.dtype, {{"row", rows}, {"element", width}}};
  for (int64_t i = 0; i < layers; ++i) {
    Layer layer;
    ASSIGN_OR_RETURN(layer.keys, Buffer::zeros(one).to(memory));
    ASSIGN_OR_RETURN(layer.values, Buffer::zeros(one).to(memory));
    layer.key_rows = layer.keys.with_shape(flat);
    layer.value_rows = layer.values.with_shape(flat);
    out.layers_.push_back(std::move(layer));
  }
  return out;
}

int64_t KeySlots::take() {
  const auto found = std::find_if(slots_of_.begin(), slots_of_.end(), [](const Slot& s) { return !s.taken; });
  if (found == slots_of_.end()) return -1;
  *found = {.taken = true};
  return found - slots_of_.begin();
}

Status KeySlots::give_back(int64_t slot) {
  const int64_t written = of(slot).written;
  constexpr int64_t kPiece = 128;
  const std::vector<std::byte> zeros(static_cast<size_t>(std::min(written, kPiece)) * row_bytes_);
  for (int64_t layer = 0; layer < static_cast<int64_t>(layers_.size()); ++layer)
    for (int64_t at = 0; at < written; at += kPiece) {
      const auto piece =
          std::span(zeros).first(static_cast<size_t>(std::min(kPiece, written - at)) * row_bytes_);
      RETURN_IF_ERROR(write(layer, slot, at, piece, piece));
    }
  slots_of_[static_cast<size_t>(slot)] = {};
  return {};
}

Status KeySlots::write(int64_t layer, int64_t slot, int64_t at, std::span<const std::byte> keys,
                       std::span<const std::byte> values) {
  const auto count = static_cast<int64_t>(keys.size() / row_bytes_);
  OSTRO_CHECK(at >= 0 && at + count <= positions_, "positions {} to {} of {}", at, at + count, positions_);
  Slot& s = slots_of_[static_cast<size_t>(slot)];
  s.written = std::max(s.written, at + count);
  const Layer& l = layers_[static_cast<size_t>(layer)];
  const int64_t first = slot * positions_ + at;
  RETURN_IF_ERROR(l.key_rows.rows(first, count).write(keys));
  return l.value_rows.rows(first, count).write(values);
}

Status KeySlots::copy(int64_t from, int64_t to, int64_t count) {
  OSTRO_CHECK(count <= of(from).length && of(to).length == 0, "{} positions of {} copied to a slot with {}",
              count, of(from).length, of(to).length);
  for (int64_t i = 0; i < static_cast<int64_t>(layers_.size()); ++i) {
    const Layer& l = layers_[static_cast<size_t>(i)];
    ASSIGN_OR_RETURN(const Buffer keys, l.key_rows.rows(from * positions_, count).to_host());
    ASSIGN_OR_RETURN(const Buffer values, l.value_rows.rows(from * positions_, count).to_host());
    RETURN_IF_ERROR(write(i, to, 0, keys.bytes(), values.bytes()));
  }
  set_length(to, count);
  return {};
}

Buffer KeySlots::keys(int64_t layer, int64_t first, int64_t count) const {
  return layers_[static_cast<size_t>(layer)].keys.rows(first, count);
}

Buffer KeySlots::values(int64_t layer, int64_t first, int64_t count) const {
  return layers_[static_cast<size_t>(layer)].values.rows(first, count);
}

}  // namespace ostro::infer
