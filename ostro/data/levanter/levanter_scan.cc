#include "ostro/data/levanter/levanter_scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <type_traits>
#include <utility>

#include "ostro/base/parallel.h"
#include "ostro/data/arrays/array_reader.h"
#include "ostro/data/ledger/element_type.h"
#include "ostro/io/arrays/zarr_1d.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

size_t nth(ArrayId id) { return static_cast<size_t>(id); }

// Bytes of text by id, of each as a text of its own: so a piece with SentencePiece's space in front counts
// without the space. The ledger's hash holds the sum. 0 for special tokens and for ids that are not tokens.
std::vector<int64_t> bytes_of_ids(const tokenizer::Tokenizer& tokenizer) {
  std::vector<int64_t> bytes(tokenizer.vocab_size());
  for (uint32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (const auto text = tokenizer.decode_bytes(std::span(&id, 1), true); text.ok())
      bytes[id] = static_cast<int64_t>(text->size());
  return bytes;
}

// True if a weight of this kind may have this value. TokenStream::read_weights() converts lengths of prompts
// to int64 and all other weights to float.
template <typename T>
bool is_weight(WeightKind kind, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!(value >= 0) || !std::isfinite(value)) return false;
    // 2^63 is the smallest positive float that does not fit an int64.
    if (kind == WeightKind::kSourcesLen) return value < 0x1p63f && value == std::floor(value);
  } else {
    if (std::cmp_less(value, 0)) return false;
    if (kind == WeightKind::kSourcesLen) return std::cmp_less_equal(value, INT64_MAX);
  }
  return kind != WeightKind::kAssistantMasks || value == T{0} || value == T{1};
}

// The rule of is_weight in words, for errors.
const char* weights_allowed(WeightKind kind) {
  constexpr const char* kAllowed[] = {
      "", "masks are 0 or 1", "lengths of prompts are whole numbers from 0 to 2^63 - 1",
      "loss weights are finite numbers of 0 or more", "parts of pairs are in no cache"};
  return kAllowed[static_cast<size_t>(kind)];
}

// Types and chunk sizes of a shard's arrays, by ArrayId, and its number of tokens.
struct Shape {
  std::array<ElementType, kArrayCount> types{};
  std::array<int64_t, kArrayCount> chunks{};
  int64_t tokens = 0;
};

class Scan {
 public:
  Scan(io::FileSystem& fs, StoreLedger& ledger, const tokenizer::Tokenizer& tokenizer,
       const BuildSettings& settings)
      : fs_(fs), ledger_(ledger), settings_(settings), id_bytes_(bytes_of_ids(tokenizer)) {}

  // First opens all shards of both splits, which gives the sizes of the whole arrays; then reads every chunk
  // of every array once, checks its values and sums it.
  Status run(const LevanterLedger& told) {
    ledger_.parts = parts_of(told);
    std::array<Shape, 2> shapes;
    size_t part = 0;
    for (const Split split : kSplits) {
      const auto s = static_cast<size_t>(split);
      if (!is_there(told[s])) continue;
      ASSIGN_OR_RETURN(shapes[s], read_shapes(split, *told[s], part));
      part += told[s]->shards.size();
    }
    for (const Split split : kSplits) {
      const auto s = static_cast<size_t>(split);
      if (is_there(told[s]))
        RETURN_IF_ERROR(scan_split(split, shapes[s]));
      else
        set_absent(split);
    }
    return {};
  }

 private:
  // A split without shards has no arrays.
  static bool is_there(const std::optional<LevanterSplit>& told) { return told && !told->shards.empty(); }

  void set_absent(Split split) {
    for (const ArrayPlace& place : ledger_.places())
      ledger_.split(split).array(place.id) =
          array_ledger(place.id, ElementType::kInt64, 0, ArrayLayout{}.chunk, {});
  }

  // Opens all shards of a split. Their parts in the ledger, if it has parts, begin at number `first`.
  Result<Shape> read_shapes(Split split, const LevanterSplit& told, size_t first) {
    std::vector<std::optional<Shape>> shapes(told.shards.size());
    RETURN_IF_ERROR(parallel_for(static_cast<int64_t>(shapes.size()), settings_.threads_or_all(),
                                 [&](int64_t i) -> Status {
                                   const LevanterShard& shard = told.shards[static_cast<size_t>(i)];
                                   if (shard.rows == 0 && told.is_sharded) return {};  // perhaps no arrays
                                   ASSIGN_OR_RETURN(shapes[static_cast<size_t>(i)], read_shape(shard));
                                   return {};
                                 }));
    SplitLedger& out = ledger_.split(split);
    out.rows = told.rows;
    std::optional<Shape> all;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (!shapes[i]) continue;
      const Shape& shape = *shapes[i];
      if (!all) all = shape;
      for (const ArrayPlace& place : ledger_.places())
        if (shape.types[nth(place.id)] != all->types[nth(place.id)])
          return unsupported(fmt::format(
              "{}: elements of {}; in a shard before it they are of {}", folder(told.shards[i], place.path),
              element_name(shape.types[nth(place.id)]), element_name(all->types[nth(place.id)])));
      if (shape.tokens > INT64_MAX - out.tokens)
        return corrupt(
            fmt::format("{}: {} tokens behind {}", folder(told.shards[i], ""), shape.tokens, out.tokens));
      out.tokens += shape.tokens;
      if (!ledger_.parts.empty()) ledger_.parts[first + i].tokens[static_cast<size_t>(split)] = shape.tokens;
    }
    if (all) return *all;
    Shape none;
    none.types.fill(ElementType::kInt64);
    none.chunks.fill(ArrayLayout{}.chunk);
    return none;
  }

  std::string folder(const LevanterShard& shard, const std::string& path) const {
    return io::join_path(io::join_path(ledger_.levanter_cache, shard.folder), path);
  }

  Result<Shape> read_shape(const LevanterShard& shard) const {
    const StoreFields& fields = ledger_.preprocessing.fields;
    Shape shape;
    std::array<int64_t, 2> ends{};  // of ids and of weights
    std::vector<io::Zarr1dReader> readers;
    for (const ArrayPlace& place : ledger_.places()) {
      const std::string path = folder(shard, place.path);
      auto opened = io::Zarr1dReader::open(fs_, path, 1);
      if (!opened.ok() && opened.error().code() == ErrorCode::kNotFound)
        return invalid_argument(
            fmt::format("{}: the cache has no such field; see the format of its component", path));
      if (!opened.ok()) return opened.error();
      const io::Zarr1dReader& reader = readers.emplace_back(std::move(*opened));
      const io::ZarrSpec& spec = reader.spec();
      const std::optional<ElementType> type = parse_element(spec.dtype);
      const bool floats = place.id == ArrayId::kWeights, offsets = is_offsets(place.id);
      if (!type || (!is_integer(*type) && !floats) || (offsets && *type != ElementType::kInt64))
        return unsupported(fmt::format("{}: elements of {}; {}", path, spec.dtype,
                                       offsets ? "offsets are int64" : "ids are integers of 8 to 64 bits"));
      if (spec.chunk[0] < 2)
        return unsupported(fmt::format("{}: chunks of {} elements", path, spec.chunk[0]));
      shape.types[nth(place.id)] = *type;
      shape.chunks[nth(place.id)] = spec.chunk[0];
      if (!offsets) continue;
      int64_t told = 0, end = 0;
      RETURN_IF_ERROR(reader.read(0, std::span(&told, 1), false));
      if (told != shard.rows)
        return corrupt(fmt::format("{}: element 0, the number of rows, is {}; shard_ledger.json says {}",
                                   path, told, shard.rows));
      if (shard.rows > 0) RETURN_IF_ERROR(reader.read(shard.rows, std::span(&end, 1), false));
      if (end < 0) return corrupt(fmt::format("{}: row {} ends at {}", path, shard.rows - 1, end));
      const bool ids = place.id == ArrayId::kOffsets;
      ends[ids ? 0 : 1] = end;
      if (const auto known = shard.elements.find(ids ? fields.ids : fields.weights_name);
          known != shard.elements.end() && known->second != end)
        return corrupt(
            fmt::format("{}: the last row ends at {}; shard_ledger.json says {}", path, end, known->second));
    }
    shape.tokens = ends[0];
    const int64_t weights = array_elements(ArrayId::kWeights, shard.rows, shape.tokens, fields.weights);
    if (fields.weights != WeightKind::kNone && ends[1] != weights)
      return corrupt(fmt::format("{}: {} elements, where {} rows with {} tokens need {}",
                                 folder(shard, fields.weights_name), ends[1], shard.rows, shape.tokens,
                                 weights));
    RETURN_IF_ERROR(check_last(shard, shape, readers));
    return shape;
  }

  // Checks that the last element of each array exists. Otherwise a damaged offset could make us allocate
  // memory for an absurd number of chunks.
  Status check_last(const LevanterShard& shard, const Shape& shape,
                    const std::vector<io::Zarr1dReader>& readers) const {
    auto reader = readers.begin();
    for (const ArrayPlace& place : ledger_.places()) {
      const io::Zarr1dReader& array = *reader++;
      const int64_t elements =
          array_elements(place.id, shard.rows, shape.tokens, ledger_.preprocessing.fields.weights);
      if (elements == 0) continue;
      std::vector<std::byte> last(element_bytes(shape.types[nth(place.id)]));
      RETURN_IF_ERROR(array.read(elements - 1, std::span(last), must_exist(place.id)));
    }
    return {};
  }

  // Writers leave out chunks that are all zero. That can happen in masks, but not in ids.
  static bool must_exist(ArrayId id) { return id != ArrayId::kWeights; }

  Status scan_split(Split split, const Shape& shape) {
    SplitLedger& out = ledger_.split(split);
    for (const ArrayPlace& place : ledger_.places()) {
      const int64_t elements =
          array_elements(place.id, out.rows, out.tokens, ledger_.preprocessing.fields.weights);
      const ElementType type = shape.types[nth(place.id)];
      const int64_t chunk = shape.chunks[nth(place.id)];
      ASSIGN_OR_RETURN(
          const ArrayReader reader,
          ArrayReader::open(fs_, array_source("", ledger_, split, place), type, elements, chunk));
      ASSIGN_OR_RETURN(out.array(place.id), scan_array(place.id, reader, type, elements, chunk, out));
    }
    return check_weights(split);
  }

  // Computes the sums of all chunks in several threads.
  Result<ArrayLedger> scan_array(ArrayId id, const ArrayReader& reader, ElementType type, int64_t elements,
                                 int64_t chunk, SplitLedger& out) {
    const int64_t count = (elements + chunk - 1) / chunk;
    std::vector<ChunkSum> sums(static_cast<size_t>(count));
    std::vector<int64_t> firsts(sums.size());
    progress_.bytes_total += elements * static_cast<int64_t>(element_bytes(type));
    std::atomic<int64_t> text_bytes{0};
    std::mutex mutex;
    RETURN_IF_ERROR(parallel_for(count, settings_.threads_or_all(), [&](int64_t i) -> Status {
      const int64_t begin = i * chunk, size = std::min(chunk, elements - begin);
      std::vector<std::byte> bytes(static_cast<size_t>(size) * element_bytes(type));
      RETURN_IF_ERROR(reader.read(begin, bytes, must_exist(id)));
      RETURN_IF_ERROR(check_chunk(id, reader.source(), type, bytes, begin, text_bytes));
      const auto at = static_cast<size_t>(i);
      sums[at] = sum_chunk(type, bytes);
      if (type == ElementType::kInt64)
        firsts[at] = reinterpret_cast<const int64_t*>(bytes.data())[i == 0 && size > 1];
      const std::lock_guard lock(mutex);
      progress_.count_chunk(id, i, size, element_bytes(type));
      if (settings_.progress) settings_.progress(progress_);
      return {};
    }));
    if (is_offsets(id))
      for (size_t i = 1; i < sums.size(); ++i)
        if (firsts[i] < sums[i - 1].last)
          return falling(reader.source(), static_cast<int64_t>(i) * chunk, sums[i - 1].last, firsts[i]);
    if (id == ArrayId::kData) out.bytes = text_bytes;
    return array_ledger(id, type, elements, chunk, sums);
  }

  static Error falling(const ArraySource& source, int64_t element, int64_t from, int64_t to) {
    return corrupt(fmt::format("{}: ends fall from {} to {} at element {}", source.describe(element, 1), from,
                               to, element));
  }

  // Checks the values of a chunk: ids lie in the vocabulary, weights are valid, row ends do not decrease.
  Status check_chunk(ArrayId id, const ArraySource& source, ElementType type,
                     std::span<const std::byte> bytes, int64_t begin,
                     std::atomic<int64_t>& text_bytes) const {
    const auto vocab = static_cast<uint64_t>(ledger_.preprocessing.vocab_size);
    return visit_elements(type, bytes, [&](auto elements) -> Status {
      const auto number = [begin](size_t i) { return begin + static_cast<int64_t>(i); };
      if (id == ArrayId::kData) {
        int64_t sum = 0;
        for (size_t i = 0; i < elements.size(); ++i) {
          const auto token = static_cast<uint64_t>(elements[i]);
          if (token >= vocab)
            return invalid_argument(fmt::format(
                "{}: token {} is {}, but data.tokenizer has {} tokens; name the tokenizer that the "
                "cache was made with",
                source.describe(number(i), 1), number(i), elements[i], vocab));
          sum += id_bytes_[token];
        }
        text_bytes += sum;
      } else if (id == ArrayId::kWeights) {
        const WeightKind kind = ledger_.preprocessing.fields.weights;
        for (size_t i = 0; i < elements.size(); ++i)
          if (!is_weight(kind, elements[i]))
            return corrupt(fmt::format(
                "{}: element {} is {}; {}; write the cache anew with such values, or name the format that it "
                "was made with",
                source.describe(number(i), 1), number(i), elements[i], weights_allowed(kind)));
      } else if constexpr (std::is_same_v<decltype(elements), std::span<const int64_t>>) {
        for (size_t i = 1; is_offsets(id) && i < elements.size(); ++i) {
          // Element 0 of the whole array is the number of rows, and the first row begins at 0.
          const int64_t before = number(i) == 1 ? 0 : elements[i - 1];
          if (elements[i] < before) return falling(source, number(i), before, elements[i]);
        }
      }
      return {};
    });
  }

  // Arrays of weights by token must have the same rows as the ids.
  Status check_weights(Split split) const {
    const SplitLedger& s = ledger_.split(split);
    const StoreFields& fields = ledger_.preprocessing.fields;
    if (fields.weights == WeightKind::kNone || fields.weights == WeightKind::kSourcesLen ||
        s.array(ArrayId::kWeightOffsets).sha256 == s.array(ArrayId::kOffsets).sha256)
      return {};
    return corrupt(fmt::format(
        "{}: {}/offsets and {}/offsets differ: the weights are of other rows than the ids",
        io::join_path(ledger_.levanter_cache, split_name(split)), fields.weights_name, fields.ids));
  }

  io::FileSystem& fs_;
  StoreLedger& ledger_;
  const BuildSettings& settings_;
  const std::vector<int64_t> id_bytes_;
  BuildProgress progress_;
};

}  // namespace

Status scan_levanter_cache(io::FileSystem& fs, const LevanterLedger& told,
                           const tokenizer::Tokenizer& tokenizer, const BuildSettings& settings,
                           StoreLedger& ledger) {
  return Scan(fs, ledger, tokenizer, settings).run(told);
}

}  // namespace ostro::data
