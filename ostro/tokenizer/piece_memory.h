// A bounded memory of pieces met before and their ids, for models that are dear to ask.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

namespace ostro::tokenizer {

// Direct mapped: a newer piece replaces the one in its slot, so the memory is fixed (4 MiB), and the piece is
// compared, so a collision costs time and never an id. Pieces that are longer or have more ids are not kept.
class PieceMemory {
 public:
  // Makes the memory; without it nothing is kept, which is better for one short text.
  void enable() {
    if (slots_.empty()) slots_.resize(kSlots);
  }

  // Appends the ids of a piece: those kept, or what compute(out) appends.
  template <typename Compute>
  void encode(std::string_view piece, std::vector<uint32_t>& out, Compute&& compute) {
    if (slots_.empty() || piece.size() > kBytes) return compute(out);
    Slot& slot = slots_[std::hash<std::string_view>{}(piece) & (kSlots - 1)];
    if (slot.length == piece.size() && std::memcmp(slot.piece, piece.data(), piece.size()) == 0) {
      out.insert(out.end(), slot.ids, slot.ids + slot.count);
      return;
    }
    const size_t before = out.size();
    compute(out);
    const size_t count = out.size() - before;
    if (count > kIds) return;
    slot.length = static_cast<uint8_t>(piece.size());
    slot.count = static_cast<uint8_t>(count);
    std::memcpy(slot.piece, piece.data(), piece.size());
    std::memcpy(slot.ids, out.data() + before, count * sizeof(uint32_t));
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 16, kBytes = 30, kIds = 8;
  struct alignas(64) Slot {
    uint8_t length = 0;  // 0: empty
    uint8_t count = 0;
    char piece[kBytes];
    uint32_t ids[kIds];
  };
  std::vector<Slot> slots_;
};

}  // namespace ostro::tokenizer
