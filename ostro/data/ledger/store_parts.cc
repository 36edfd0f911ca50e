#include "ostro/data/ledger/store_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "ostro/base/check.h"
#include "ostro/data/ledger/ledger_file.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

// The folder of the arrays of a store without parts. The folders of parts are relative to it.
const std::string& base_folder(const std::string& cache_dir, const StoreLedger& ledger) {
  return ledger.levanter_cache.empty() ? cache_dir : ledger.levanter_cache;
}

}  // namespace

std::string part_folder(const std::string& cache_dir, const StoreLedger& ledger, const StorePart& part) {
  const std::string joined = io::join_path(base_folder(cache_dir, ledger), part.folder);
  const std::string scheme(io::path_scheme(joined));
  const std::filesystem::path path(joined.substr(scheme.size()));
  return scheme + path.lexically_normal().generic_string();
}

std::string folder_of_part(const std::string& folder, const std::string& cache_dir) {
  if (folder.starts_with('/') || !io::path_scheme(folder).empty()) return io::clean_path(folder);
  const auto absolute = [](const std::string& path) {
    std::error_code failed;  // without a working directory check_parts fails later
    return std::filesystem::absolute(io::clean_path(path), failed).lexically_normal();
  };
  const std::filesystem::path part = absolute(folder);
  return (io::path_scheme(cache_dir).empty() ? part.lexically_relative(absolute(cache_dir)) : part)
      .generic_string();
}

StoreName store_name(const std::string& cache_dir, const StoreLedger& ledger) {
  return {.folder = cache_dir, .levanter_cache = ledger.levanter_cache, .in_parts = !ledger.parts.empty()};
}

ArraySource array_source(const std::string& cache_dir, const StoreLedger& ledger, Split split,
                         const ArrayPlace& place) {
  const std::string within = io::join_path(split_name(split), place.path);
  ArraySource source;
  source.store = store_name(cache_dir, ledger);
  source.path = io::join_path(base_folder(cache_dir, ledger), within);
  source.in_parts = !ledger.parts.empty();
  if (!source.in_parts) return source;
  const bool offsets = is_offsets(place.id);
  if (offsets) source.head = ledger.split(split).rows;
  const auto s = static_cast<size_t>(split);
  int64_t begin = offsets ? 1 : 0;
  int64_t before = 0;  // elements in earlier parts of the array that the row ends refer to
  for (size_t i = 0; i < ledger.parts.size(); ++i) {
    const StorePart& part = ledger.parts[i];
    const auto count = [&](ArrayId id) {
      return array_elements(id, part.rows[s], part.tokens[s], ledger.preprocessing.fields.weights);
    };
    const int64_t own = offsets ? part.rows[s] : count(place.id);
    if (own == 0) continue;
    const std::string folder = part_folder(cache_dir, ledger, part);
    source.pieces.push_back(
        {.path = io::join_path(folder, ledger.levanter_cache.empty() ? within : place.path),
         .part = i,
         .begin = begin,
         .first = offsets ? 1 : 0,
         .count = own,
         .added = before});
    begin += own;
    if (offsets) before += count(place.id == ArrayId::kOffsets ? ArrayId::kData : ArrayId::kWeights);
  }
  return source;
}

Status ArraySource::read(int64_t start, size_t item, std::span<std::byte> out,
                         const std::function<Status(size_t, int64_t, std::span<std::byte>)>& read) const {
  if (head && start == 0 && !out.empty()) {
    OSTRO_CHECK(item == sizeof(*head), "{}: offsets of {} bytes", path, item);
    std::memcpy(out.data(), &*head, item);
    out = out.subspan(item);
    ++start;
  }
  for (size_t i = piece_of(start); !out.empty(); ++i) {
    OSTRO_CHECK(i < pieces.size(), "{}: {} bytes behind the end", path, out.size());
    const ArrayPiece& piece = pieces[i];
    const int64_t skipped = start - piece.begin;
    const size_t taken = std::min(out.size(), static_cast<size_t>(piece.count - skipped) * item);
    const std::span<std::byte> own = out.first(taken);
    RETURN_IF_ERROR(read(i, piece.first + skipped, own));
    for (size_t at = 0; piece.added != 0 && at < taken; at += item) {
      int64_t end, moved;
      std::memcpy(&end, own.data() + at, sizeof(end));
      if (__builtin_add_overflow(end, piece.added, &moved))
        return corrupt(fmt::format("{}: element {} is {}, behind {} elements of the parts before",
                                   describe(start + static_cast<int64_t>(at / item), 1),
                                   piece.first + skipped + static_cast<int64_t>(at / item), end,
                                   piece.added));
      std::memcpy(own.data() + at, &moved, sizeof(moved));
    }
    out = out.subspan(taken);
    start += static_cast<int64_t>(taken / item);
  }
  return {};
}

size_t ArraySource::piece_of(int64_t element) const {
  const auto behind = std::upper_bound(pieces.begin(), pieces.end(), element,
                                       [](int64_t at, const ArrayPiece& piece) { return at < piece.begin; });
  return behind == pieces.begin() ? 0 : static_cast<size_t>(behind - pieces.begin()) - 1;
}

std::string ArraySource::describe(int64_t start, int64_t count) const {
  std::string in;
  for (size_t i = piece_of(start); i < pieces.size() && pieces[i].begin < start + count; ++i)
    in += (in.empty() ? " (in " : ", ") + pieces[i].path;
  return path + in + (in.empty() ? "" : ")");
}

Status check_parts(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger) {
  for (const StorePart& part : ledger.parts) {
    if (part.hash.empty()) continue;  // part of a Levanter cache; its chunks are checked when they are read
    const std::string folder = part_folder(cache_dir, ledger, part);
    const auto found = LedgerFile::open(fs, folder);
    if (!found.ok() && !is_damage(found.error()))
      return record_error({.folder = folder}, "ledger.json", found.error())
          .with_context(fmt::format("a part of {}", cache_dir));
    if (!found.ok())
      return invalid_argument(fmt::format(
          "{}: is a part of the token store in {} and cannot be read ({}); restore it, or join the "
          "parts anew from where they are",
          folder, cache_dir, found.error().message()));
    if ((*found)->hash() != part.hash)
      return invalid_argument(fmt::format(
          "{}: has ledger hash {} now, and had {} when it became a part of the token store in {}; "
          "restore it, or join the parts anew, which makes another store",
          folder, (*found)->hash(), part.hash, cache_dir));
  }
  return {};
}

}  // namespace ostro::data
