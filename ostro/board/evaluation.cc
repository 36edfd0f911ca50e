#include "ostro/board/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/io/files/path.h"

namespace ostro::board {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of a file

}  // namespace

Result<Evaluation> read_files(io::FileSystem& fs, const std::string& folder,
                              const std::vector<std::string>& files) {
  Evaluation out;
  std::string sums;
  for (const std::string& name : files) {
    ASSIGN_OR_RETURN(std::string text, fs.read_file(io::join_path(folder, name), kMostBytes));
    sums += sha256_hex(text) + "\n";
    out.bytes += std::ssize(text);
    out.names.push_back(name);
    out.documents.push_back(std::move(text));
  }
  out.sha256 = sha256_hex(sums);
  return out;
}

Result<Evaluation> read_evaluation(io::FileSystem& fs, const Track& track) {
  ASSIGN_OR_RETURN(Evaluation out, read_files(fs, track.folder, track.evaluation.files));
  if (out.sha256 != track.evaluation.sha256)
    return corrupt(
        fmt::format("the evaluation of the track {} has other bytes: evaluation.sha256 is {}, that "
                    "of its files is {}. Put the files back as the track's maker has them",
                    track.name, track.evaluation.sha256, out.sha256));
  return out;
}

Result<EvaluationTokens> encode(io::FileSystem& fs, const Evaluation& evaluation,
                                const tokenizer::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const auto formatter,
                   data::make_row_formatter(fs, data::TextFormat{}, "evaluation", "", tokenizer, {}));
  tokenizer::Encoder encoder(tokenizer);
  EvaluationTokens out;
  for (const std::string& text : evaluation.documents) {
    data::Row row;
    row.is_text = true, row.bytes = text, row.end = std::ssize(text);
    ASSIGN_OR_RETURN(const data::FormattedRow formatted, formatter->format(row, encoder));
    out.documents.emplace_back(formatted.ids.begin(), formatted.ids.end());
    out.row_hashes.push_back(data::hash_row(formatted.ids, formatted.weights));
  }
  return out;
}

int64_t Windows::all_targets() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

int64_t window_rows(const std::vector<std::vector<int32_t>>& documents, int64_t length) {
  int64_t rows = 0;
  for (const std::vector<int32_t>& ids : documents)
    if (ids.size() > 1) rows += (std::ssize(ids) - 2) / length + 1;
  return rows;
}

Windows make_windows(const std::vector<std::vector<int32_t>>& documents, int64_t length) {
  Windows out;
  out.length = length;
  for (const std::vector<int32_t>& ids : documents) {
    for (int64_t first = 0; first + 1 < std::ssize(ids); first += length) {
      const int64_t count = std::min(length, std::ssize(ids) - 1 - first);
      out.counts.push_back(count);
      out.tokens.resize(out.tokens.size() + static_cast<size_t>(length));
      out.targets.resize(out.tokens.size());
      const auto from = ids.begin() + first;
      std::copy(from, from + count, out.tokens.end() - length);
      std::copy(from + 1, from + 1 + count, out.targets.end() - length);
    }
  }
  return out;
}

}  // namespace ostro::board
