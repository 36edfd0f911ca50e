#include "ostro/data/store/store_stats.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace ostro::data {
namespace {

// Counts lengths exactly below kExact. Above, there are 64 cells between two powers of 2.
class LengthHistogram {
 public:
  static constexpr int64_t kExact = 4096, kCells = 64;
  LengthHistogram() : counts_(static_cast<size_t>(kExact + (63 - 12) * kCells)) {}

  void add(int64_t length) { ++counts_[cell(length)]; }

  // The quantile: the smallest length that at least `percent` of `total` rows do not exceed, rounded down to
  // its cell.
  int64_t quantile(int percent, int64_t total) const {
    const int64_t wanted = std::max<int64_t>(1, total / 100 * percent + total % 100 * percent / 100);
    int64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i)
      if ((seen += counts_[i]) >= wanted) return begin(static_cast<int64_t>(i));
    return 0;
  }

 private:
  static size_t cell(int64_t length) {
    if (length < kExact) return static_cast<size_t>(length);
    const auto octave = static_cast<int>(std::bit_width(static_cast<uint64_t>(length))) - 1;  // >= 12
    const int64_t within = (length >> (octave - 6)) & (kCells - 1);
    return static_cast<size_t>(kExact + (octave - 12) * kCells + within);
  }
  static int64_t begin(int64_t cell) {
    if (cell < kExact) return cell;
    const int64_t octave = 12 + (cell - kExact) / kCells, within = (cell - kExact) % kCells;
    return (kCells + within) << (octave - 6);
  }
  std::vector<int64_t> counts_;
};

}  // namespace

Result<LengthStats> length_stats(const TokenStream& stream) {
  constexpr int64_t kPiece = 1 << 16;
  LengthStats out{.rows = stream.rows(), .tokens = stream.tokens(), .shortest = INT64_MAX};
  LengthHistogram histogram;
  for (int64_t row = 0; row < stream.rows(); row += kPiece) {
    const int64_t count = std::min(kPiece, stream.rows() - row);
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, count));
    for (size_t i = 1; i < ends.size(); ++i) {
      const int64_t length = std::max<int64_t>(0, ends[i] - ends[i - 1]);
      histogram.add(length);
      out.empty += length == 0;
      ++out.by_power[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(length, 1))) -
                                         1)];
      out.shortest = std::min(out.shortest, length);
      out.longest = std::max(out.longest, length);
    }
  }
  if (out.rows == 0) out.shortest = 0;
  for (size_t q = 0; q < out.quantiles.size(); ++q)
    out.quantiles[q] = histogram.quantile(kLengthQuantiles[q], out.rows);
  return out;
}

FileCounts file_counts(std::span<const FileLedger> files) {
  FileCounts counts;
  for (const FileLedger& file : files) {
    ++counts.files;
    counts.file_bytes += file.source.size;
    counts.documents += file.documents;
    counts.empty += file.empty;
    counts.repaired += file.repaired;
    counts.no_loss += file.no_loss;
    counts.skipped += file.skipped;
    for (const auto& [reason, rows] : file.left_out) counts.left_out[reason] += rows;
  }
  return counts;
}

}  // namespace ostro::data
