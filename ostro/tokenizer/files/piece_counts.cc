#include "ostro/tokenizer/files/piece_counts.h"

#include <algorithm>
#include <cstring>

#include "ostro/base/check.h"
#include "ostro/tokenizer/bpe/piece_hash.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kFirstEntries = size_t{1} << 12, kBlockBytes = size_t{1} << 20;
constexpr size_t kPiecesAhead = 32;

}  // namespace

PieceCounts::PieceCounts() : entries_(kFirstEntries) {}

const char* PieceCounts::keep(std::string_view piece) {
  if (piece.size() > room_) {
    room_ = std::max(piece.size(), kBlockBytes);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(room_));
  }
  // Blocks are filled from their end downwards, so room_ is also the position.
  room_ -= piece.size();
  char* bytes = blocks_.back().get() + room_;
  std::memcpy(bytes, piece.data(), piece.size());
  return bytes;
}

void PieceCounts::grow() {
  std::vector<Entry> entries(2 * entries_.size());
  const size_t mask = entries.size() - 1;
  for (const Entry& e : entries_) {
    if (e.bytes == nullptr) continue;
    size_t i = hash_bytes({e.bytes, e.length}) & mask;
    while (entries[i].bytes != nullptr) i = (i + 1) & mask;
    entries[i] = e;
  }
  entries_ = std::move(entries);
}

void PieceCounts::add_piece(std::string_view piece, uint64_t hash, uint64_t count) {
  OSTRO_CHECK(piece.size() <= 0xFFFFFFFF, "a piece of {} bytes is too long for training", piece.size());
  const size_t mask = entries_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t i = hash & mask;
  for (; entries_[i].bytes != nullptr; i = (i + 1) & mask) {
    Entry& e = entries_[i];
    if (e.tag == tag && std::string_view(e.bytes, e.length) == piece) {
      e.count += count;
      return;
    }
  }
  entries_[i] = {keep(piece), static_cast<uint32_t>(piece.size()), tag, count};
  distinct_bytes_ += piece.size();
  if (2 * ++used_ > entries_.size()) grow();
}

// Prefetches the entries of a batch of pieces before it uses them, so that memory accesses overlap.
void PieceCounts::add_text(Splitter splitter, std::string_view text) {
  size_t ends[kPiecesAhead];
  uint64_t hashes[kPiecesAhead];
  for (size_t begin = 0; begin < text.size();) {
    const size_t count = split(splitter, text, begin, ends);
    for (size_t i = 0, from = begin; i < count; from = ends[i++]) {
      hashes[i] = hash_bytes(text.substr(from, ends[i] - from));
      __builtin_prefetch(&entries_[hashes[i] & (entries_.size() - 1)]);
    }
    for (size_t i = 0; i < count; begin = ends[i++])
      add_piece(text.substr(begin, ends[i] - begin), hashes[i], 1);
  }
}

void PieceCounts::add_document(Splitter splitter, std::string_view document) {
  if (is_valid_utf8(document)) {
    add_text(splitter, document);
  } else {
    add_text(splitter, repair_utf8(document));
  }
}

void PieceCounts::add(const PieceCounts& other) {
  for (const Entry& e : other.entries_) {
    if (e.bytes == nullptr) continue;
    const std::string_view piece(e.bytes, e.length);
    add_piece(piece, hash_bytes(piece), e.count);
  }
}

std::vector<std::pair<std::string_view, uint64_t>> PieceCounts::sorted() const {
  std::vector<std::pair<std::string_view, uint64_t>> out;
  out.reserve(used_);
  for (const Entry& e : entries_)
    if (e.bytes != nullptr) out.emplace_back(std::string_view(e.bytes, e.length), e.count);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace ostro::tokenizer
