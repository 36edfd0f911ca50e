#include "ostro/data/verified_array.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/io/crc32c.h"

namespace ostro::data {
namespace {

constexpr const char* kDamaged =
    "damaged token store; restore the file, or delete the store to build it again";

constexpr size_t kSpareChunks = 2;

}  // namespace

VerifiedArray::VerifiedArray(std::string path, ArrayLedger ledger, io::Zarr1dReader reader,
                             size_t cached_chunks)
    : path_(std::move(path)),
      ledger_(std::move(ledger)),
      reader_(std::move(reader)),
      cache_(std::make_unique<Cache>()) {
  cache_->capacity = cached_chunks;
}

Result<VerifiedArray> VerifiedArray::open(io::FileSystem& fs, const std::string& path, ArrayLedger ledger,
                                          size_t cached_chunks, bool sparse) {
  OSTRO_CHECK(cached_chunks >= 1, "{}: a cache of {} chunks", path, cached_chunks);
  auto opened = io::Zarr1dReader::open(fs, path, 1);
  if (!opened.ok()) return opened.error().with_context(kDamaged);
  io::Zarr1dReader reader = std::move(*opened);
  const io::ZarrSpec& spec = reader.spec();
  if (spec.dtype != element_name(ledger.type) || spec.chunk[0] != ledger.chunk ||
      spec.shape[0] < ledger.elements)
    return corrupt(fmt::format(
        "{}: {} elements of {} in chunks of {}; the ledger says {} of {} in chunks of {}", path,
        spec.shape[0], spec.dtype, spec.chunk[0], ledger.elements, element_name(ledger.type), ledger.chunk));
  VerifiedArray array(path, std::move(ledger), std::move(reader), cached_chunks);
  array.sparse_ = sparse;
  return array;
}

std::shared_ptr<VerifiedArray::Elements> VerifiedArray::take_room() const {
  auto elements = std::make_unique<Elements>();
  elements->type = ledger_.type;
  {
    const std::lock_guard lock(spares_->mutex);
    if (!spares_->list.empty()) {
      elements->bytes = std::move(spares_->list.back());
      spares_->list.pop_back();
    }
  }
  return {elements.release(), [spares = spares_](Elements* dead) {
            const std::unique_ptr<Elements> owner(dead);
            const std::lock_guard lock(spares->mutex);
            if (spares->list.size() < kSpareChunks) spares->list.push_back(std::move(owner->bytes));
          }};
}

Result<VerifiedArray::Chunk> VerifiedArray::chunk(int64_t number) const {
  {
    const std::lock_guard lock(cache_->mutex);
    if (const auto found = cache_->by_number.find(number); found != cache_->by_number.end()) {
      cache_->recent.splice(cache_->recent.begin(), cache_->recent, found->second);
      return found->second->second;
    }
  }
  const int64_t begin = number * ledger_.chunk;
  const std::shared_ptr<Elements> room = take_room();
  std::vector<std::byte>& bytes = room->bytes;
  bytes.resize(static_cast<size_t>(std::min(ledger_.chunk, ledger_.elements - begin)) *
               element_bytes(ledger_.type));
  if (const Status read = reader_.read(begin, std::span(bytes), !sparse_); !read.ok())
    return read.error().with_context(kDamaged);
  const uint32_t expected = ledger_.crc32c[static_cast<size_t>(number)];
  if (const uint32_t crc = io::crc32c(bytes); crc != expected)
    return corrupt(fmt::format(
        "damaged token store: {}: chunk {} has CRC-32C {:08x}, the ledger says {:08x}; restore the file, "
        "or delete the store to build it again",
        path_, number, crc, expected));

  const std::lock_guard lock(cache_->mutex);
  if (cache_->by_number.contains(number)) return Chunk(room);  // another thread was faster
  cache_->recent.emplace_front(number, room);
  cache_->by_number[number] = cache_->recent.begin();
  if (cache_->recent.size() > cache_->capacity) {
    cache_->by_number.erase(cache_->recent.back().first);
    cache_->recent.pop_back();
  }
  return Chunk(room);
}

}  // namespace ostro::data
