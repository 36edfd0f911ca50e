#include "ostro/data/verified_array.h"

#include <fmt/core.h>

#include "ostro/data/ids.h"
#include "ostro/io/crc32c.h"

namespace ostro::data {
namespace {

constexpr const char* kDamaged =
    "damaged token store; restore the file, or delete the store to build it again";

}  // namespace

std::vector<std::byte> VerifiedArray::Spares::take() {
  const std::lock_guard lock(mutex);
  if (list.empty()) return {};
  std::vector<std::byte> bytes = std::move(list.back());
  list.pop_back();
  return bytes;
}

void VerifiedArray::Spares::give(std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex);
  if (list.size() < 2) list.push_back(std::move(bytes));
}

VerifiedArray::VerifiedArray(std::string path, const ArrayLedger& ledger, ChunkTable table,
                             io::Zarr1dReader reader, std::shared_ptr<ChunkCache> cache,
                             const Settings& settings)
    : path_(std::move(path)),
      elements_(ledger.elements),
      chunk_elements_(ledger.chunk),
      type_(ledger.type),
      table_(std::move(table)),
      reader_(std::move(reader)),
      settings_(settings),
      cache_(std::move(cache)) {}

Result<VerifiedArray> VerifiedArray::open(io::FileSystem& fs, const std::string& path,
                                          const ArrayLedger& ledger, ChunkTable table,
                                          std::shared_ptr<ChunkCache> cache, const Settings& settings) {
  auto opened = io::Zarr1dReader::open(fs, path, 1);
  if (!opened.ok()) return opened.error().with_context(kDamaged);
  io::Zarr1dReader reader = std::move(*opened);
  const io::ZarrSpec& spec = reader.spec();
  if (spec.dtype != element_name(ledger.type) || spec.chunk[0] != ledger.chunk ||
      spec.shape[0] < ledger.elements)
    return corrupt(fmt::format(
        "{}: {} elements of {} in chunks of {}; the ledger says {} of {} in chunks of {}", path,
        spec.shape[0], spec.dtype, spec.chunk[0], ledger.elements, element_name(ledger.type), ledger.chunk));
  return VerifiedArray(path, ledger, std::move(table), std::move(reader), std::move(cache), settings);
}

Result<ChunkElements> VerifiedArray::kept(int64_t number, std::vector<std::byte>& bytes) const {
  const int64_t vocab = settings_.vocab_size;
  if (vocab == 0) return ChunkElements{type_, std::move(bytes)};
  ChunkElements out{kept_ids(vocab), {}};
  out.bytes.resize(bytes.size() / element_bytes(type_) * element_bytes(out.type));
  if (keep_ids(type_, bytes, vocab, out.bytes)) return out;
  return visit_elements(type_, bytes, [&](auto ids) -> Error {
    const auto bad = std::find_if(ids.begin(), ids.end(), [vocab](auto id) {
      return static_cast<uint64_t>(id) >= static_cast<uint64_t>(vocab);
    });
    return corrupt(fmt::format("{}: token {} is {}, but the vocabulary has {}", path_,
                               number * chunk_elements_ + (bad - ids.begin()), *bad, vocab));
  });
}

Result<VerifiedArray::Chunk> VerifiedArray::chunk(int64_t number) const {
  if (auto found = cache_.find(number)) return found;
  const int64_t begin = number * chunk_elements_;
  std::vector<std::byte> bytes = spares_->take();
  bytes.resize(static_cast<size_t>(std::min(chunk_elements_, elements_ - begin)) * element_bytes(type_));
  if (const Status read = reader_.read(begin, std::span(bytes), !settings_.sparse); !read.ok())
    return read.error().with_context(kDamaged);
  ASSIGN_OR_RETURN(const uint32_t expected, table_.crc32c(number));
  if (const uint32_t crc = io::crc32c(bytes); crc != expected)
    return corrupt(fmt::format(
        "damaged token store: {}: chunk {} has CRC-32C {:08x}, the ledger says {:08x}; restore the file, "
        "or delete the store to build it again",
        path_, number, crc, expected));
  ASSIGN_OR_RETURN(ChunkElements elements, kept(number, bytes));
  if (settings_.vocab_size > 0) spares_->give(std::move(bytes));
  const size_t cost = elements.bytes.size();
  return cache_.add(number, std::make_shared<const ChunkElements>(std::move(elements)), cost);
}

}  // namespace ostro::data
