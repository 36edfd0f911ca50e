#include "ostro/data/arrays/verified_array.h"

#include <fmt/core.h>

#include <array>
#include <unordered_set>
#include <vector>

#include "ostro/data/arrays/ids.h"
#include "ostro/io/read/crc32c.h"

namespace ostro::data {

ChunkElements::ChunkElements(ElementType t, size_t size)
    : type(t),
      memory(allocate_aligned(size * element_bytes(t))),
      bytes(memory.get(), size * element_bytes(t)) {}

// Implements KeepChunks::kSecondTime: chunks that were read only once are kept in a small ring, and enter the
// cache when they are read again. A full shuffle of an array much larger than the cache would otherwise fill
// the cache with chunks that are evicted before they are read again. Fresh memory pages for them would cost
// as much as decoding does.
class VerifiedArray::Newcomers {
 public:
  Chunk find(int64_t number) {
    const std::lock_guard lock(mutex_);
    for (const auto& [own, chunk] : few_)
      if (own == number) return chunk;
    return nullptr;
  }
  // Whether the chunk was read before. If not, it is put into the ring.
  bool was_wanted(int64_t number, const Chunk& chunk) {
    const std::lock_guard lock(mutex_);
    if (seen_.contains(number)) return true;
    if (seen_.size() >= kSeen) seen_.clear();
    seen_.insert(number);
    few_[next_++ % few_.size()] = {number, chunk};
    return false;
  }

 private:
  static constexpr size_t kSeen = size_t{1} << 16;
  std::mutex mutex_;
  std::unordered_set<int64_t> seen_;
  std::array<std::pair<int64_t, Chunk>, 4> few_;
  size_t next_ = 0;
};

// The right to decode a chunk; one thread at a time has it.
class VerifiedArray::Turn {
 public:
  Turn(Decoding& shared, int64_t number) : shared_(shared), number_(number) {
    std::unique_lock lock(shared_.mutex);
    shared_.done.wait(lock, [this] { return !shared_.numbers.contains(number_); });
    shared_.numbers.insert(number_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    {
      const std::lock_guard lock(shared_.mutex);
      shared_.numbers.erase(number_);
    }
    shared_.done.notify_all();
  }

 private:
  Decoding& shared_;
  int64_t number_;
};

VerifiedArray::VerifiedArray(const ArrayLedger& ledger, ChunkTable table, ArrayReader reader,
                             std::shared_ptr<ChunkCache> cache, const Settings& settings)
    : elements_(ledger.elements),
      chunk_elements_(ledger.chunk),
      type_(ledger.type),
      table_(std::move(table)),
      reader_(std::move(reader)),
      settings_(settings),
      cache_(std::move(cache)) {
  const size_t bytes = static_cast<size_t>(elements_) * element_bytes(kept_type());
  if (settings_.keep == KeepChunks::kSecondTime && bytes / 2 > cache_.capacity())
    newcomers_ = std::make_unique<Newcomers>();
}

VerifiedArray::VerifiedArray(VerifiedArray&&) noexcept = default;
VerifiedArray::~VerifiedArray() = default;

ElementType VerifiedArray::kept_type() const {
  return settings_.vocab_size == 0 ? type_ : kept_ids(settings_.vocab_size);
}

Result<VerifiedArray> VerifiedArray::open(io::FileSystem& fs, ArraySource source, const ArrayLedger& ledger,
                                          ChunkTable table, std::shared_ptr<ChunkCache> cache,
                                          const Settings& settings) {
  auto reader = ArrayReader::open(fs, source, ledger.type, ledger.elements, ledger.chunk);
  if (!reader.ok()) return array_error(source.store, source.path, reader.error());
  return VerifiedArray(ledger, std::move(table), std::move(*reader), std::move(cache), settings);
}

Result<VerifiedArray::Chunk> VerifiedArray::chunk(int64_t number) const {
  if (auto found = find(number)) return found;
  const Turn turn(*decoding_, number);
  if (auto found = find(number)) return found;  // the thread that had the turn before has added it
  ASSIGN_OR_RETURN(Chunk chunk, decode(number));
  if (newcomers_ != nullptr && !newcomers_->was_wanted(number, chunk)) return chunk;
  return cache_.add(number, chunk, chunk->bytes.size());
}

VerifiedArray::Chunk VerifiedArray::find(int64_t number) const {
  auto found = cache_.find(number);
  return found != nullptr || newcomers_ == nullptr ? found : newcomers_->find(number);
}

Result<VerifiedArray::Chunk> VerifiedArray::decode(int64_t number) const {
  const auto size = static_cast<size_t>(std::min(chunk_elements_, elements_ - number * chunk_elements_));
  const int64_t vocab = settings_.vocab_size;
  const ElementType type = kept_type();
  auto elements = std::make_shared<ChunkElements>(type, size);
  if (element_bytes(type) == element_bytes(type_)) {
    RETURN_IF_ERROR(read_checked(number, elements->bytes));
    if (vocab > 0 && !keep_ids(type_, elements->bytes, vocab, elements->bytes))
      return bad_id(number, elements->bytes);
  } else {
    std::vector<std::byte> bytes = decoding_->spares.take();
    bytes.resize(size * element_bytes(type_));
    RETURN_IF_ERROR(read_checked(number, bytes));
    if (!keep_ids(type_, bytes, vocab, elements->bytes)) return bad_id(number, bytes);
    decoding_->spares.give(std::move(bytes));
  }
  return Chunk(std::move(elements));
}

Status VerifiedArray::read_checked(int64_t number, std::span<std::byte> out) const {
  const ArraySource& source = reader_.source();
  if (const Status read = reader_.read(number * chunk_elements_, out, !settings_.sparse); !read.ok())
    return array_error(source.store, source.path, read.error());
  ASSIGN_OR_RETURN(const uint32_t expected, table_.crc32c(number));
  if (const uint32_t crc = io::crc32c(out); crc != expected)
    return array_error(source.store, source.path,
                       corrupt(fmt::format("{} has CRC-32C {:08x}, the ledger says {:08x}", describe(number),
                                           crc, expected)));
  if (settings_.digests == nullptr) return {};
  if (const Status same = settings_.digests->check(number, type_, out); !same.ok())
    return array_error(
        source.store, source.path,
        Error(same.error().code(), fmt::format("{} {}", describe(number), same.error().message())));
  return {};
}

// "path: chunk 3"
std::string VerifiedArray::describe(int64_t number) const {
  const int64_t begin = number * chunk_elements_;
  return fmt::format("{}: chunk {}",
                     reader_.source().describe(begin, std::min(chunk_elements_, elements_ - begin)), number);
}

Error VerifiedArray::bad_id(int64_t number, std::span<const std::byte> ids) const {
  const int64_t vocab = settings_.vocab_size;
  return visit_elements(type_, ids, [&](auto all) -> Error {
    const auto bad = std::find_if(all.begin(), all.end(), [vocab](auto id) {
      return static_cast<uint64_t>(id) >= static_cast<uint64_t>(vocab);
    });
    return corrupt(fmt::format("{}: token {} is {}, but the vocabulary has {}", describe(number),
                               number * chunk_elements_ + (bad - all.begin()), *bad, vocab));
  });
}

}  // namespace ostro::data
