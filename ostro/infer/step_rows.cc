#include "ostro/infer/step_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ostro/infer/decode_program.h"

namespace ostro::infer {

using runtime::Buffer;

StepRows::StepRows(const models::ModelFunctions& model, std::vector<Buffer> params, runtime::Engine& engine,
                   const RowLimits& limits, numerics::LeafTable leaves, std::vector<ir::Shape> cache)
    : model_(model),
      params_(std::move(params)),
      engine_(engine),
      limits_(limits),
      leaves_(std::move(leaves)),
      cache_(std::move(cache)) {}

Result<std::unique_ptr<StepRows>> StepRows::create(const models::ModelFunctions& model,
                                                   std::vector<Buffer> params, runtime::Engine& engine,
                                                   const RowLimits& limits, numerics::LeafTable leaves) {
  if (limits.pages > 0)
    return invalid_argument(
        fmt::format("a cache of {} pages: this model has only a cached step, whose sequences have no pages; "
                    "give no number",
                    limits.pages));
  ASSIGN_OR_RETURN(std::vector<ir::Shape> cache, cache_shapes(model, limits.positions));
  ASSIGN_OR_RETURN(params, runtime::all_to(std::move(params), engine.memory()));
  return std::unique_ptr<StepRows>(
      new StepRows(model, std::move(params), engine, limits, std::move(leaves), std::move(cache)));
}

Result<runtime::Executable*> StepRows::program(int64_t rows) {
  if (const auto found = programs_.find(rows); found != programs_.end()) return found->second.get();
  ASSIGN_OR_RETURN(const ir::Program p, decode_program(model_, cache_, rows, leaves_));
  runtime::CompileOptions options;
  for (size_t i = 0; i < cache_.size(); ++i)
    options.donate.push_back(static_cast<int64_t>(model_.shapes.size() + 2 + i));
  ASSIGN_OR_RETURN(auto executable, engine_.compile(p, options));
  return programs_.emplace(rows, std::move(executable)).first->second.get();
}

Status StepRows::prepare() {
  for (int64_t rows = 1; rows <= std::min(padded_rows(limits_.rows), limits_.positions); rows *= 2)
    RETURN_IF_ERROR(program(rows));
  return {};
}

Result<std::string> StepRows::program_hash() { return forward_hash(model_, limits_.positions, leaves_); }

Result<int64_t> StepRows::open() {
  if (static_cast<int64_t>(sequences_.size()) >= limits_.sequences)
    return invalid_argument(fmt::format("{} sequences are open, the most", limits_.sequences));
  int64_t free = 0;
  while (sequences_.contains(free)) ++free;
  Sequence& made = sequences_[free];
  for (const ir::Shape& shape : cache_) made.cache.push_back(Buffer::zeros(shape));
  return free;
}

// The cache of a model is its own affair, so the tokens are run again.
Status StepRows::copy(int64_t from, int64_t to, int64_t count) {
  const std::vector<int32_t> tokens = sequences_.at(from).tokens;
  Sequence& s = sequences_.at(to);
  OSTRO_CHECK(count <= static_cast<int64_t>(tokens.size()) && s.length == 0,
              "{} positions of {} copied to a sequence with {}", count, tokens.size(), s.length);
  for (auto left = std::span(tokens).first(static_cast<size_t>(count)); !left.empty();) {
    const auto piece = left.first(std::min(left.size(), static_cast<size_t>(limits_.rows)));
    RETURN_IF_ERROR(feed(s, piece));
    left = left.subspan(piece.size());
  }
  return {};
}

// The cache is donated to the program, so that it can be updated in place. Padding would run over the end of
// the cache where the padded number does not fit; then the tokens go in pieces that are powers of two.
Result<Buffer> StepRows::feed(Sequence& s, std::span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t rows = padded_rows(count), taken = count;
  if (s.length + rows > limits_.positions) {
    rows /= 2;
    while (rows > count) rows /= 2;
    taken = std::max<int64_t>(rows, 1);
    rows = taken;
  }
  ASSIGN_OR_RETURN(runtime::Executable * executable, program(rows));
  Buffer ids = Buffer::zeros({ir::DType::i32, {{"batch", 1}, {"pos", rows}}});
  std::copy(tokens.begin(), tokens.begin() + taken, ids.mutable_as<int32_t>().begin());
  std::vector<Buffer> inputs = params_;
  inputs.push_back(std::move(ids));
  inputs.push_back(Buffer::scalar(ir::DType::i32, static_cast<int32_t>(s.length)));
  for (Buffer& b : s.cache) inputs.push_back(std::move(b));
  ASSIGN_OR_RETURN(std::vector<Buffer> out, executable->run(std::move(inputs)));
  for (size_t i = 0; i < s.cache.size(); ++i) s.cache[i] = std::move(out[i + 1]);
  s.length += taken;
  s.tokens.insert(s.tokens.end(), tokens.begin(), tokens.begin() + taken);
  ASSIGN_OR_RETURN(const Buffer logits, out[0].to_host());
  const int64_t vocab = logits.shape().axes.back().size;
  const ir::Shape shape{ir::DType::f32, {{"pos", count}, {"vocab", vocab}}};
  if (taken == count)
    return logits.with_shape({ir::DType::f32, {{"pos", rows}, {"vocab", vocab}}}).rows(0, count);
  Buffer all = Buffer::empty(shape);
  ASSIGN_OR_RETURN(const Buffer rest, feed(s, tokens.subspan(static_cast<size_t>(taken))));
  const size_t bytes = static_cast<size_t>(taken * vocab) * sizeof(float);
  std::memcpy(all.mutable_bytes().data(), logits.bytes().data(), bytes);
  std::memcpy(all.mutable_bytes().data() + bytes, rest.bytes().data(), rest.bytes().size());
  return all;
}

Result<Buffer> StepRows::step(std::span<const RowChunk> chunks) {
  RETURN_IF_ERROR(check_chunks(*this, chunks));
  std::vector<Buffer> parts;
  int64_t wanted = 0;
  for (const RowChunk& chunk : chunks) {
    ASSIGN_OR_RETURN(const Buffer rows, feed(sequences_.at(chunk.sequence), chunk.tokens));
    if (chunk.wanted == 0) continue;
    parts.push_back(rows.rows(static_cast<int64_t>(chunk.tokens.size()) - chunk.wanted, chunk.wanted));
    wanted += chunk.wanted;
  }
  if (parts.size() <= 1) return parts.empty() ? Buffer() : parts[0];
  ir::Shape shape = parts[0].shape();
  shape.axes[0].size = wanted;
  Buffer out = Buffer::empty(shape);
  size_t at = 0;
  for (const Buffer& part : parts) {
    std::memcpy(out.mutable_bytes().data() + at, part.bytes().data(), part.bytes().size());
    at += part.bytes().size();
  }
  return out;
}

}  // namespace ostro::infer
