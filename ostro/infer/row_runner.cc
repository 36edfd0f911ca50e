#include "ostro/infer/row_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace ostro::infer {

Status check_chunks(const RowRunner& runner, std::span<const RowChunk> chunks) {
  const RowLimits& limits = runner.limits();
  int64_t rows = 0;
  std::set<int64_t> sequences;
  for (const RowChunk& chunk : chunks) {
    const auto count = static_cast<int64_t>(chunk.tokens.size());
    OSTRO_CHECK(count > 0 && chunk.wanted >= 0 && chunk.wanted <= count,
                "a chunk of {} tokens of which {} rows are wanted", count, chunk.wanted);
    OSTRO_CHECK(chunk.normed == nullptr || runner.width() > 0,
                "this runner gives no rows behind the final norm");
    OSTRO_CHECK(sequences.insert(chunk.sequence).second, "sequence {} is twice in a step", chunk.sequence);
    if (runner.length(chunk.sequence) + count > limits.positions)
      return invalid_argument(fmt::format("no room for {} tokens after {}; {} are the most", count,
                                          runner.length(chunk.sequence), limits.positions));
    rows += count;
  }
  if (rows > limits.rows)
    return invalid_argument(fmt::format("a step of {} rows; {} are the most", rows, limits.rows));
  return {};
}

Result<runtime::Buffer> logits_of(RowRunner& runner, std::span<const int32_t> tokens, size_t first) {
  if (tokens.empty()) return invalid_argument("the prompt is empty; give at least one token");
  if (static_cast<int64_t>(tokens.size()) > runner.limits().positions)
    return invalid_argument(fmt::format("{} tokens, room for {}", tokens.size(), runner.limits().positions));
  ASSIGN_OR_RETURN(const int64_t sequence, runner.open());
  const auto close = [&](int64_t* s) { runner.close(*s); };
  int64_t held = sequence;
  const std::unique_ptr<int64_t, decltype(close)> guard(&held, close);
  const auto most = static_cast<size_t>(runner.limits().rows);
  runtime::Buffer out;
  size_t filled = 0;
  for (size_t begin = 0; begin < tokens.size();) {
    const size_t count = std::min(most, tokens.size() - begin), end = begin + count;
    const size_t wanted = end <= first ? 0 : std::min(count, end - first);
    const RowChunk chunk{sequence, tokens.subspan(begin, count), static_cast<int64_t>(wanted)};
    ASSIGN_OR_RETURN(const runtime::Buffer rows, runner.step({&chunk, 1}));
    begin = end;
    if (wanted == 0) continue;
    if (!out.valid() && end == tokens.size()) return rows;
    if (!out.valid()) {
      ir::Shape shape = rows.shape();
      shape.axes[0].size = static_cast<int64_t>(tokens.size() - first);
      out = runtime::Buffer::empty(shape);
    }
    std::memcpy(out.mutable_bytes().data() + filled, rows.bytes().data(), rows.bytes().size());
    filled += rows.bytes().size();
  }
  return out;
}

}  // namespace ostro::infer
