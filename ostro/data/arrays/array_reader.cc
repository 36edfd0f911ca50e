#include "ostro/data/arrays/array_reader.h"

#include <fmt/core.h>

#include <mutex>
#include <vector>

namespace ostro::data {

struct ArrayReader::State {
  using Reader = std::shared_ptr<const io::Zarr1dReader>;
  io::FileSystem& fs;
  const ArraySource source;
  const ElementType type;
  std::shared_ptr<io::CompressedChunks> chunks;
  std::mutex mutex;
  std::vector<Reader> readers;  // one for the array, or one for each piece; null: not opened yet

  Result<Reader> open(const std::string& path, int64_t elements) const {
    ASSIGN_OR_RETURN(io::Zarr1dReader reader, io::Zarr1dReader::open(fs, path, chunks));
    if (reader.spec().dtype != element_name(type) || reader.spec().shape[0] < elements)
      return corrupt(fmt::format("{}: {} elements of {}; the ledger says {} of {}", path,
                                 reader.spec().shape[0], reader.spec().dtype, elements, element_name(type)));
    return std::make_shared<const io::Zarr1dReader>(std::move(reader));
  }

  Result<Reader> piece(size_t number) {
    {
      const std::lock_guard lock(mutex);
      if (readers[number] != nullptr) return readers[number];
    }
    const ArrayPiece& piece = source.pieces[number];
    ASSIGN_OR_RETURN(Reader opened, open(piece.path, piece.first + piece.count));
    const std::lock_guard lock(mutex);
    if (readers[number] == nullptr) readers[number] = std::move(opened);
    return readers[number];
  }
};

ArrayReader::ArrayReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArrayReader::ArrayReader(ArrayReader&&) noexcept = default;
ArrayReader::~ArrayReader() = default;

const ArraySource& ArrayReader::source() const { return state_->source; }

Result<ArrayReader> ArrayReader::open(io::FileSystem& fs, ArraySource source, ElementType type,
                                      int64_t elements, int64_t chunk) {
  // At the border of two parts, two chunks of the whole array share one chunk on disk. So a few compressed
  // chunks are cached for all parts.
  constexpr int64_t kSharedChunks = 16;
  const bool in_parts = source.in_parts;
  std::unique_ptr<State> state(new State{.fs = fs,
                                         .source = std::move(source),
                                         .type = type,
                                         .chunks = io::make_compressed_chunks(in_parts ? kSharedChunks : 1),
                                         .mutex = {},
                                         .readers = {}});
  state->readers.resize(in_parts ? state->source.pieces.size() : 1);
  if (!in_parts) {
    ASSIGN_OR_RETURN(state->readers[0], state->open(state->source.path, elements));
    if (const int64_t actual = state->readers[0]->spec().chunk[0]; actual != chunk)
      return corrupt(
          fmt::format("{}: chunks of {} elements; the ledger says {}", state->source.path, actual, chunk));
  }
  return ArrayReader(std::move(state));
}

Status ArrayReader::read(int64_t start, std::span<std::byte> out, bool must_exist) const {
  if (!state_->source.in_parts) return state_->readers[0]->read(start, out, must_exist);
  return state_->source.read(start, element_bytes(state_->type), out,
                             [&](size_t piece, int64_t first, std::span<std::byte> own) -> Status {
                               ASSIGN_OR_RETURN(const auto reader, state_->piece(piece));
                               return reader->read(first, own, must_exist);
                             });
}

}  // namespace ostro::data
