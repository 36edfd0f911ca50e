#include "ostro/data/arrays/recorded_sums.h"

#include <algorithm>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

using Sums = std::optional<std::vector<ChunkSum>>;

// The sums of an array's chunks from its digests. Nothing when the digests do not agree with the ledger.
Result<Sums> sums_from(std::string_view digests, const ArrayPlace& place, const ArrayLedger& array,
                       const ChunkTable& table) {
  std::vector<ChunkSum> sums(static_cast<size_t>(table.chunks()));
  if (digests.size() != sums.size() * sizeof(Sha256Digest)) return Sums();
  for (size_t i = 0; i < sums.size(); ++i) {
    std::copy_n(digests.begin() + static_cast<ptrdiff_t>(i * sizeof(Sha256Digest)), sizeof(Sha256Digest),
                sums[i].sha256.begin());
    ASSIGN_OR_RETURN(sums[i].crc32c, table.crc32c(static_cast<int64_t>(i)));
    if (place.id == ArrayId::kOffsets) {
      ASSIGN_OR_RETURN(sums[i].last, table.last(static_cast<int64_t>(i)));
    }
  }
  if (array_ledger(place.id, array.type, array.elements, array.chunk, sums).sha256 != array.sha256)
    return Sums();
  return Sums(std::move(sums));
}

}  // namespace

std::string digests_path(const std::string& cache_dir) { return io::join_path(cache_dir, "chunks.sha256"); }

Status record_sums(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                   const PerArray<std::vector<ChunkSum>>& sums) {
  std::string digests;
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places())
      for (const ChunkSum& sum : sums[static_cast<size_t>(split)][static_cast<size_t>(place.id)])
        digests.append(reinterpret_cast<const char*>(sum.sha256.data()), sum.sha256.size());
  return io::write_file_atomically(fs, digests_path(cache_dir), digests);
}

Result<PerArray<Sums>> recorded_sums(io::FileSystem& fs, const std::string& cache_dir,
                                     const StoreLedger& ledger, const ChunkTables& tables) {
  PerArray<Sums> out;
  std::string digests;
  if (auto read = fs.read_file(digests_path(cache_dir)); read.ok())
    digests = std::move(*read);
  else if (read.error().code() != ErrorCode::kNotFound)
    return read.error();
  std::string_view left = digests;
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places()) {
      const ChunkTable table = tables.table(split, place.id);
      const std::string_view own = left.substr(0, static_cast<size_t>(table.chunks()) * sizeof(Sha256Digest));
      left.remove_prefix(own.size());
      ASSIGN_OR_RETURN(out[static_cast<size_t>(split)][static_cast<size_t>(place.id)],
                       sums_from(own, place, ledger.split(split).array(place.id), table));
    }
  return out;
}

}  // namespace ostro::data
