#include "ostro/data/array_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/io/crc32c.h"

namespace ostro::data {
namespace {

uint32_t tail_crc(std::span<const int64_t> elements) { return io::crc32c(std::as_bytes(elements)); }

}  // namespace

ChunkSum sum_chunk(std::span<const int64_t> elements) {
  const auto bytes = std::as_bytes(elements);
  return {sha256(bytes), io::crc32c(bytes), elements.empty() ? 0 : elements.back()};
}

ArrayLedger array_ledger(ArrayId id, int64_t elements, int64_t chunk, std::span<const ChunkSum> sums) {
  ArrayLedger ledger{.elements = elements, .chunk = chunk, .sha256 = {}, .crc32c = {}, .last = {}};
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
                                        const ArrayLayout& layout) {
  // int64, because Levanter's own text caches are and its reader insists on the type.
  io::ZarrSpec spec = io::token_store_spec("int64");
  spec.chunk = {layout.chunk};
  spec.shard = {layout.shard};
  ASSIGN_OR_RETURN(io::Zarr1dWriter writer, io::Zarr1dWriter::create(fs, path, std::move(spec)));
  return ArrayWriter(std::move(writer));
}

Result<ArrayWriter> ArrayWriter::resume(io::FileSystem& fs, const std::string& path, const Position& position,
                                        std::vector<ChunkSum> sums) {
  ASSIGN_OR_RETURN(io::Zarr1dWriter resumed, io::Zarr1dWriter::resume(fs, path, position.zarr));
  ArrayWriter writer(std::move(resumed));
  const int64_t begin = position.elements() / writer.chunk() * writer.chunk();
  if (static_cast<int64_t>(sums.size()) != begin / writer.chunk())
    return corrupt(fmt::format("{}: {} chunk sums for {} elements", path, sums.size(), position.elements()));
  writer.sums_ = std::move(sums);
  if (begin < position.elements()) {
    ASSIGN_OR_RETURN(const io::Zarr1dReader reader, io::Zarr1dReader::open(fs, path, 1));
    writer.pending_.resize(static_cast<size_t>(position.elements() - begin));
    RETURN_IF_ERROR(reader.read(begin, std::span(writer.pending_)));
  }
  if (const uint32_t crc = tail_crc(writer.pending_); crc != position.tail_crc32c)
    return corrupt(fmt::format("{}: elements [{}, {}) have CRC-32C {:08x}, the journal says {:08x}", path,
                               begin, position.elements(), crc, position.tail_crc32c));
  return writer;
}

Status ArrayWriter::append(std::span<const int64_t> values) {
  RETURN_IF_ERROR(writer_.append(values));
  const auto full = static_cast<size_t>(chunk());
  while (!values.empty()) {
    const size_t taken = std::min(values.size(), full - pending_.size());
    pending_.insert(pending_.end(), values.begin(), values.begin() + static_cast<ptrdiff_t>(taken));
    values = values.subspan(taken);
    if (pending_.size() < full) break;
    sums_.push_back(sum_chunk(pending_));
    pending_.clear();
  }
  return {};
}

Result<ArrayWriter::Position> ArrayWriter::commit() {
  ASSIGN_OR_RETURN(const io::Zarr1dWriter::Position position, writer_.commit());
  return Position{position, tail_crc(pending_)};
}

std::vector<ChunkSum> ArrayWriter::all_chunks() const {
  std::vector<ChunkSum> sums = sums_;
  if (!pending_.empty()) sums.push_back(sum_chunk(pending_));
  return sums;
}

}  // namespace ostro::data
