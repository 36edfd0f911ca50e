#include "ostro/data/levanter_cache.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "ostro/data/array_writer.h"
#include "ostro/data/ledger_json.h"
#include "ostro/data/store_check.h"
#include "ostro/io/path.h"

namespace ostro::data {
namespace {

std::string shard_ledger_path(const std::string& place, Split split) {
  return io::join_path(io::join_path(place, split_name(split)), "shard_ledger.json");
}

// Rows that Levanter's ledger of a split tells of; -1 when there is no such split.
Result<int64_t> rows_told(io::FileSystem& fs, const std::string& place, Split split) {
  const std::string path = shard_ledger_path(place, split);
  auto text = fs.read_file(path, int64_t{1} << 32);
  if (!text.ok() && text.error().code() == ErrorCode::kNotFound) return int64_t{-1};
  if (!text.ok()) return text.error();
  ASSIGN_OR_RETURN(const Json json, io::parse_json(*text, path));
  const io::JsonFields fields(json, path);
  ASSIGN_OR_RETURN(const bool finished, fields.boolean("is_finished"));
  if (!finished)
    return invalid_argument(
        fmt::format("{}: \"is_finished\" is false; let the program that builds the cache end first", path));
  if (fields.has("layout")) {
    ASSIGN_OR_RETURN(const std::string layout, fields.string("layout"));
    if (layout != "consolidated")
      return unsupported(
          fmt::format("{}: \"layout\" is \"{}\" where \"consolidated\" is expected; join the caches that it "
                      "lists into one with "
                      "Levanter's consolidate_shard_caches",
                      path, layout));
  }
  return fields.integer("total_num_rows", 0, INT64_MAX - 1);
}

// Bytes of text of every id: 0 for special tokens and ids that are no token.
std::vector<int64_t> bytes_of_ids(const tokenizer::Tokenizer& tokenizer) {
  std::vector<int64_t> bytes(tokenizer.vocab_size());
  for (uint32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (const auto text = tokenizer.decode_bytes(std::span(&id, 1), true); text.ok())
      bytes[id] = static_cast<int64_t>(text->size());
  return bytes;
}

// Reads one cache and makes its ledger.
class Scan {
 public:
  Scan(io::FileSystem& fs, StoreLedger& ledger, const tokenizer::Tokenizer& tokenizer,
       const BuildSettings& settings)
      : fs_(fs), ledger_(ledger), settings_(settings), id_bytes_(bytes_of_ids(tokenizer)) {}

  Status run() {
    for (const Split split : kSplits) {
      ASSIGN_OR_RETURN(const int64_t rows, rows_told(fs_, ledger_.levanter_cache, split));
      if (rows < 0 && split == Split::kTrain)
        return not_found(fmt::format("{}: missing", shard_ledger_path(ledger_.levanter_cache, split)));
      if (rows < 0)
        set_absent(split);
      else
        RETURN_IF_ERROR(scan_split(split, rows));
    }
    return {};
  }

 private:
  void set_absent(Split split) {
    for (const ArrayPlace& place : ledger_.places())
      ledger_.split(split).array(place.id) =
          array_ledger(place.id, ElementType::kInt64, 0, ArrayLayout{}.chunk, {});
  }

  Status scan_split(Split split, int64_t rows) {
    SplitLedger& out = ledger_.split(split);
    out.rows = rows;
    for (const ArrayPlace& place : ledger_.places()) {
      const std::string path = array_folder_of(split, place);
      auto opened = io::Zarr1dReader::open(fs_, path, 1);
      if (!opened.ok() && opened.error().code() == ErrorCode::kNotFound)
        return invalid_argument(
            fmt::format("{}: the cache has no such field; see the format of its component", path));
      if (!opened.ok()) return opened.error();
      const std::optional<ElementType> type = parse_element(opened->spec().dtype);
      const bool floats = place.id == ArrayId::kWeights;
      const bool offsets = place.id == ArrayId::kOffsets || place.id == ArrayId::kWeightOffsets;
      if (!type || (!is_integer(*type) && !floats) || (offsets && *type != ElementType::kInt64))
        return unsupported(fmt::format("{}: elements of {}; {}", path, opened->spec().dtype,
                                       offsets ? "offsets are int64" : "ids are integers of 8 to 64 bits"));
      int64_t elements = 0;
      if (offsets) {
        int64_t told = 0;
        RETURN_IF_ERROR(opened->read(0, std::span(&told, 1), false));
        if (told != rows)
          return corrupt(fmt::format("{}: element 0, the number of rows, is {}; shard_ledger.json says {}",
                                     path, told, rows));
        elements = rows + 1;
      } else {
        const std::string ends = place.path.substr(0, place.path.size() - 4) + "offsets";
        ASSIGN_OR_RETURN(elements, last_end(io::join_path(folder(split), ends), rows));
      }
      if (place.id == ArrayId::kWeights && elements != expected_weights(out))
        return corrupt(fmt::format("{}: {} elements, where {} rows with {} tokens need {}", path, elements,
                                   out.rows, out.tokens, expected_weights(out)));
      ASSIGN_OR_RETURN(out.array(place.id), scan_array(path, place, *opened, *type, elements, out));
      if (place.id == ArrayId::kData) out.tokens = elements;
    }
    return check_weights(split);
  }

  std::string folder(Split split) const { return io::join_path(ledger_.levanter_cache, split_name(split)); }
  std::string array_folder_of(Split split, const ArrayPlace& place) const {
    return io::join_path(folder(split), place.path);
  }

  Result<int64_t> last_end(const std::string& offsets, int64_t rows) {
    if (rows == 0) return int64_t{0};
    ASSIGN_OR_RETURN(const io::Zarr1dReader reader, io::Zarr1dReader::open(fs_, offsets, 1));
    if (reader.spec().dtype != "int64")
      return unsupported(fmt::format("{}: offsets of {}, not int64", offsets, reader.spec().dtype));
    int64_t end = 0;
    RETURN_IF_ERROR(reader.read(rows, std::span(&end, 1), false));
    if (end < 0) return corrupt(fmt::format("{}: row {} ends at {}", offsets, rows - 1, end));
    return end;
  }

  // Sums of all chunks, several threads at a time.
  Result<ArrayLedger> scan_array(const std::string& path, const ArrayPlace& place,
                                 const io::Zarr1dReader& reader, ElementType type, int64_t elements,
                                 SplitLedger& out) {
    const int64_t chunk = reader.spec().chunk[0];
    if (chunk < 2) return unsupported(fmt::format("{}: chunks of {} elements", path, chunk));
    // Writers leave out chunks of zeros, which masks may have and ids have not.
    const bool must_exist = place.id != ArrayId::kWeights;
    if (elements > 0) {  // before room is made for all chunks that a damaged offset may tell of
      std::vector<std::byte> last(element_bytes(type));
      RETURN_IF_ERROR(reader.read(elements - 1, std::span(last), must_exist));
    }
    const int64_t count = (elements + chunk - 1) / chunk;
    std::vector<ChunkSum> sums(static_cast<size_t>(count));
    std::vector<int64_t> firsts(sums.size());
    progress_.bytes_total += elements * static_cast<int64_t>(element_bytes(type));
    std::atomic<int64_t> next{0}, text_bytes{0};
    std::mutex mutex;
    Status failed;
    const auto work = [&] {
      std::vector<std::byte> bytes;
      for (int64_t i = next++; i < count; i = next++) {
        const int64_t begin = i * chunk, size = std::min(chunk, elements - begin);
        bytes.resize(static_cast<size_t>(size) * element_bytes(type));
        Status status = reader.read(begin, std::span(bytes), must_exist);
        if (status.ok()) status = check_chunk(path, place, type, bytes, begin, text_bytes);
        const auto at = static_cast<size_t>(i);
        sums[at] = sum_chunk(type, bytes);
        if (type == ElementType::kInt64)
          firsts[at] = reinterpret_cast<const int64_t*>(bytes.data())[i == 0 && size > 1];
        const std::lock_guard lock(mutex);
        if (!status.ok()) {
          if (failed.ok()) failed = status;
          next = count;
          return;
        }
        progress_.bytes_done += static_cast<int64_t>(bytes.size());
        if (place.id == ArrayId::kData) progress_.tokens += size;
        if (place.id == ArrayId::kOffsets) progress_.documents += size - (i == 0);
        if (settings_.progress) settings_.progress(progress_);
      }
    };
    {
      const int threads = settings_.threads > 0
                              ? settings_.threads
                              : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
      std::vector<std::jthread> others;
      for (int t = 1; t < threads; ++t) others.emplace_back(work);
      work();
    }
    RETURN_IF_ERROR(failed);
    if (place.id == ArrayId::kOffsets || place.id == ArrayId::kWeightOffsets)
      for (size_t i = 1; i < sums.size(); ++i)
        if (firsts[i] < sums[i - 1].last)
          return corrupt(fmt::format("{}: ends fall from {} to {} at element {}", path, sums[i - 1].last,
                                     firsts[i], static_cast<int64_t>(i) * chunk));
    if (place.id == ArrayId::kData) out.bytes = text_bytes;
    return array_ledger(place.id, type, elements, chunk, sums);
  }

  // What must hold within a chunk: ids in the vocabulary, ends that do not fall.
  Status check_chunk(const std::string& path, const ArrayPlace& place, ElementType type,
                     std::span<const std::byte> bytes, int64_t begin,
                     std::atomic<int64_t>& text_bytes) const {
    const auto vocab = static_cast<uint64_t>(ledger_.preprocessing.vocab_size);
    return visit_elements(type, bytes, [&](auto elements) -> Status {
      if (place.id == ArrayId::kData) {
        int64_t sum = 0;
        for (size_t i = 0; i < elements.size(); ++i) {
          const auto id = static_cast<uint64_t>(elements[i]);
          if (id >= vocab)
            return invalid_argument(fmt::format(
                "{}: token {} is {}, but data.tokenizer has {} tokens; name the tokenizer that the "
                "cache was made with",
                path, begin + static_cast<int64_t>(i), elements[i], vocab));
          sum += id_bytes_[id];
        }
        text_bytes += sum;
      } else if (place.id == ArrayId::kOffsets || place.id == ArrayId::kWeightOffsets) {
        for (size_t i = begin == 0 ? 2 : 1; i < elements.size(); ++i)
          if (elements[i] < elements[i - 1])
            return corrupt(fmt::format("{}: ends fall from {} to {} at element {}", path, elements[i - 1],
                                       elements[i], begin + static_cast<int64_t>(i)));
      }
      return {};
    });
  }

  int64_t expected_weights(const SplitLedger& s) const {
    return ledger_.preprocessing.fields.weights == WeightKind::kSourcesLen ? s.rows : s.tokens;
  }

  // Weights of tokens have the rows of the ids.
  Status check_weights(Split split) const {
    const SplitLedger& s = ledger_.split(split);
    const StoreFields& fields = ledger_.preprocessing.fields;
    if (fields.weights == WeightKind::kNone || fields.weights == WeightKind::kSourcesLen ||
        s.array(ArrayId::kWeightOffsets).sha256 == s.array(ArrayId::kOffsets).sha256)
      return {};
    return corrupt(
        fmt::format("{}: {}/offsets and {}/offsets differ: the weights are of other rows than the ids",
                    folder(split), fields.weights_name, fields.ids));
  }

  io::FileSystem& fs_;
  StoreLedger& ledger_;
  const BuildSettings& settings_;
  const std::vector<int64_t> id_bytes_;
  BuildProgress progress_;
};

}  // namespace

Result<bool> is_levanter_cache(io::FileSystem& fs, const std::string& folder) {
  ASSIGN_OR_RETURN(const bool ours, fs.exists(ledger_path(folder)));
  if (ours) return false;
  return fs.exists(shard_ledger_path(folder, Split::kTrain));
}

Result<StoreLedger> check_levanter_cache(io::FileSystem& fs, const std::string& place,
                                         const std::string& cache_dir, const Preprocessing& wanted,
                                         const tokenizer::Tokenizer& tokenizer,
                                         const BuildSettings& settings) {
  const auto known = [&]() -> Result<std::optional<StoreLedger>> {
    auto ledger = read_ledger(fs, cache_dir);
    if (!ledger.ok() && ledger.error().code() == ErrorCode::kNotFound) return std::optional<StoreLedger>();
    if (!ledger.ok())
      return ledger.error().with_context(
          "check data of a Levanter cache; delete its folder to make it again");
    if (ledger->levanter_cache != place)
      return invalid_argument(fmt::format(
          "{}: holds {}, not check data of {}; name another data.cache_dir, or delete it", cache_dir,
          ledger->levanter_cache.empty() ? "a token store" : "check data of " + ledger->levanter_cache,
          place));
    RETURN_IF_ERROR(check_preprocessing(cache_dir, ledger->preprocessing, wanted));
    for (const Split split : kSplits) {
      ASSIGN_OR_RETURN(const int64_t rows, rows_told(fs, place, split));
      if (std::max<int64_t>(rows, 0) != ledger->split(split).rows)
        return invalid_argument(
            fmt::format("{}: has {} rows now, and had {} when it was checked; delete {} to check it again, "
                        "which makes it "
                        "another data set",
                        io::join_path(place, split_name(split)), rows, ledger->split(split).rows, cache_dir));
    }
    return std::optional<StoreLedger>(std::move(*ledger));
  };
  ASSIGN_OR_RETURN(std::optional<StoreLedger> found, known());
  if (found) return std::move(*found);
  RETURN_IF_ERROR(fs.make_dirs(cache_dir));
  auto lock = fs.lock(io::join_path(cache_dir, "build.lock"),
                      fmt::format("a check of the Levanter cache {}, process {}", place, getpid()));
  if (!lock.ok()) return lock.error();
  ASSIGN_OR_RETURN(found, known());
  if (found) return std::move(*found);
  StoreLedger ledger;
  ledger.preprocessing = wanted;
  ledger.levanter_cache = place;
  RETURN_IF_ERROR(Scan(fs, ledger, tokenizer, settings).run());
  RETURN_IF_ERROR(write_ledger(fs, cache_dir, ledger));
  return ledger;
}

}  // namespace ostro::data
