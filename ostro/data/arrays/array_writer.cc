#include "ostro/data/arrays/array_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/io/read/crc32c.h"

namespace ostro::data {
namespace {

// Integers are hashed as int64, so that the hash does not depend on their width on disk.
template <typename T>
Sha256Digest sha256_of(std::span<const T> elements) {
  if constexpr (sizeof(T) == 8 || std::is_floating_point_v<T> || std::is_same_v<T, uint8_t>) {
    return sha256(std::as_bytes(elements));
  } else {
    constexpr size_t kPiece = 4096;
    int64_t wide[kPiece];
    Sha256 hash;
    for (; !elements.empty(); elements = elements.subspan(std::min(kPiece, elements.size()))) {
      const size_t count = std::min(kPiece, elements.size());
      std::copy_n(elements.begin(), count, wide);
      hash.update(std::as_bytes(std::span(wide, count)));
    }
    return hash.finish();
  }
}

template <typename T, typename From>
void convert(std::span<const From> values, std::vector<std::byte>& out) {
  out.resize(values.size() * sizeof(T));
  T* to = reinterpret_cast<T*>(out.data());
  for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
}

template <typename From>
void convert_to(ElementType type, std::span<const From> values, std::vector<std::byte>& out) {
  switch (type) {
    case ElementType::kUint8: return convert<uint8_t>(values, out);
    case ElementType::kUint16: return convert<uint16_t>(values, out);
    case ElementType::kInt32: return convert<int32_t>(values, out);
    case ElementType::kUint32: return convert<uint32_t>(values, out);
    case ElementType::kInt64:
    case ElementType::kUint64: return convert<int64_t>(values, out);
    case ElementType::kFloat32: return convert<float>(values, out);
  }
}

}  // namespace

ChunkSum sum_chunk(ElementType type, std::span<const std::byte> bytes) {
  ChunkSum sum;
  sum.crc32c = io::crc32c(bytes);
  visit_elements(type, bytes, [&sum](auto elements) {
    sum.sha256 = sha256_of(elements);
    if (!elements.empty()) sum.last = static_cast<int64_t>(elements.back());
  });
  return sum;
}

ArrayLedger array_ledger(ArrayId id, ElementType type, int64_t elements, int64_t chunk,
                         std::span<const ChunkSum> sums) {
  ArrayLedger ledger;
  ledger.elements = elements;
  ledger.chunk = chunk;
  ledger.type = type;
  Sha256 hash;
  for (const ChunkSum& sum : sums) {
    hash.update(std::as_bytes(std::span(sum.sha256)));
    ledger.crc32c.push_back(sum.crc32c);
    if (id == ArrayId::kOffsets) ledger.last.push_back(sum.last);
  }
  ledger.sha256 = to_hex(hash.finish());
  return ledger;
}

Result<ArrayWriter> ArrayWriter::create(io::FileSystem& fs, const std::string& path,
                                        const ArrayLayout& layout, ElementType type) {
  io::ZarrSpec spec = io::token_store_spec(element_name(type));
  spec.chunk = {layout.chunk};
  spec.shard = {layout.shard};
  ASSIGN_OR_RETURN(io::Zarr1dWriter writer, io::Zarr1dWriter::create(fs, path, std::move(spec)));
  return ArrayWriter(std::move(writer), type);
}

Result<ArrayWriter> ArrayWriter::resume(io::FileSystem& fs, const std::string& path, const Position& position,
                                        std::vector<ChunkSum> sums) {
  ASSIGN_OR_RETURN(io::Zarr1dWriter resumed, io::Zarr1dWriter::resume(fs, path, position.zarr));
  const std::optional<ElementType> type = parse_element(resumed.spec().dtype);
  if (!type)
    return unsupported(fmt::format("{}: elements of {} are in no token store", path, resumed.spec().dtype));
  ArrayWriter writer(std::move(resumed), *type);
  const int64_t begin = position.elements() / writer.chunk() * writer.chunk();
  if (static_cast<int64_t>(sums.size()) != begin / writer.chunk())
    return corrupt(fmt::format("{}: {} chunk sums for {} elements", path, sums.size(), position.elements()));
  writer.sums_ = std::move(sums);
  if (begin < position.elements()) {
    ASSIGN_OR_RETURN(const io::Zarr1dReader reader, io::Zarr1dReader::open(fs, path, 1));
    writer.pending_.resize(static_cast<size_t>(position.elements() - begin) * element_bytes(*type));
    RETURN_IF_ERROR(reader.read(begin, std::span(writer.pending_)));
  }
  if (const uint32_t crc = io::crc32c(writer.pending_); crc != position.tail_crc32c)
    return corrupt(fmt::format("{}: elements [{}, {}) have CRC-32C {:08x}, the record of it says {:08x}",
                               path, begin, position.elements(), crc, position.tail_crc32c));
  writer.committed_ = position;
  return writer;
}

template <typename From>
Status ArrayWriter::append_as_stored(std::span<const From> values) {
  constexpr size_t kPiece = 64 << 10;  // elements at a time, so that a long row is not held in memory twice
  while (!values.empty()) {
    const auto piece = values.first(std::min(kPiece, values.size()));
    convert_to(type_, piece, converted_);
    RETURN_IF_ERROR(append_bytes(converted_));
    values = values.subspan(piece.size());
  }
  return {};
}

Status ArrayWriter::append(std::span<const int64_t> values) {
  if (type_ == ElementType::kInt64) return append_bytes(std::as_bytes(values));
  return append_as_stored(values);
}

Status ArrayWriter::append(std::span<const uint32_t> values) { return append_as_stored(values); }

Status ArrayWriter::append_bytes(std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(writer_.append(bytes));
  const size_t full = static_cast<size_t>(chunk()) * element_bytes(type_);
  while (!bytes.empty()) {
    const size_t taken = std::min(bytes.size(), full - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    if (pending_.size() < full) break;
    sums_.push_back(sum_chunk(type_, pending_));
    pending_.clear();
  }
  return {};
}

Result<ArrayWriter::Position> ArrayWriter::commit() {
  // An array without new elements needs no sync, e.g. the validation split of a store that holds nothing out.
  if (committed_ && committed_->elements() == elements()) return *committed_;
  ASSIGN_OR_RETURN(const io::Zarr1dWriter::Position position, writer_.commit());
  committed_ = Position{position, io::crc32c(pending_)};
  return *committed_;
}

std::vector<ChunkSum> ArrayWriter::all_chunks() const {
  std::vector<ChunkSum> sums = sums_;
  if (!pending_.empty()) sums.push_back(sum_chunk(type_, pending_));
  return sums;
}

}  // namespace ostro::data
