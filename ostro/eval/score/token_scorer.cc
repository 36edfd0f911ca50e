#include "ostro/eval/score/token_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ostro/infer/traced.h"
#include "ostro/trace/ops.h"

namespace ostro::eval {
namespace {

using runtime::Buffer;

constexpr int64_t kShortestWindow = 16;
// Logits that one program may hold, where it needs them: 2 GiB of f32.
constexpr int64_t kMostLogits = int64_t{1} << 29;

// Windows are padded to a power of two, so that few programs are compiled.
int64_t padded_length(const Window& window, int64_t context) {
  const auto inputs = static_cast<int64_t>(window.tokens.size()) - 1;
  int64_t length = std::min(kShortestWindow, context);
  while (length < inputs) length *= 2;
  return std::min(length, context);
}

int64_t size_of_axis(const std::vector<Shape>& shapes, std::string_view name) {
  int64_t size = 0;
  for (const Shape& shape : shapes)
    for (const auto& axis : shape.axes)
      if (axis.name == name) size = std::max(size, axis.size);
  return size;
}

}  // namespace

TokenScorer::TokenScorer(models::ModelFunctions model, std::vector<Buffer> params, runtime::Engine& engine,
                         ScorerOptions options)
    : model_(std::move(model)), params_(std::move(params)), engine_(engine), options_(std::move(options)) {}

Result<ir::Program> TokenScorer::traced_program(int64_t rows, int64_t length, bool greedy) const {
  const size_t n = model_.shapes.size();
  std::vector<Shape> shapes = model_.shapes;
  const Shape ids{DType::i32, {{"batch", rows}, {"pos", length}}};
  shapes.insert(shapes.end(), {ids, ids, ids.with_dtype(DType::f32), ir::scalar(DType::i32)});
  return infer::traced(greedy ? "score_greedy" : "score", shapes, options_.leaves, [&](const Arrays& in) {
    const Arrays params(in.begin(), in.begin() + static_cast<int64_t>(n));
    if (!greedy) {
      models::Batch batch;
      batch.tokens = in[n], batch.targets = in[n + 1], batch.loss_mask = in[n + 2];
      return Arrays{model_.loss(params, batch).per_token};
    }
    const Arrays cache = model_.decode.cache(rows, length);
    const Array logits = model_.decode.step(params, in[n], cache, in[n + 3]).first;
    return Arrays{cross_entropy(logits, in[n + 1], "vocab"), argmax(logits, "vocab")};
  });
}

Result<runtime::Executable*> TokenScorer::program(int64_t rows, int64_t length, bool greedy) {
  for (const Compiled& c : programs_)
    if (c.rows == rows && c.length == length && c.greedy == greedy) return c.executable.get();
  ASSIGN_OR_RETURN(const ir::Program p, traced_program(rows, length, greedy));
  ASSIGN_OR_RETURN(auto executable, engine_.compile(p));
  programs_.push_back({rows, length, greedy, std::move(executable)});
  return programs_.back().executable.get();
}

// A power of four, so that few programs are compiled: the largest that the batch may have, or the smallest
// that holds all that is waiting.
int64_t TokenScorer::rows_of(int64_t waiting, int64_t length, bool greedy) const {
  int64_t most = std::max<int64_t>(1, options_.batch_tokens / length);
  if (greedy)
    most = std::clamp<int64_t>(
        kMostLogits / (length * std::max<int64_t>(1, size_of_axis(model_.shapes, "vocab"))), 1, most);
  int64_t rows = 1;
  while (rows < waiting && rows * 4 <= most) rows *= 4;
  return rows;
}

Status TokenScorer::run_batch(std::span<const Window> windows, const Batch& batch, bool greedy,
                              std::vector<WindowScore>& out) {
  const auto& [which, rows, length] = batch;
  ASSIGN_OR_RETURN(runtime::Executable * executable, program(rows, length, greedy));
  const Shape ids{DType::i32, {{"batch", rows}, {"pos", length}}};
  Buffer tokens = Buffer::zeros(ids), targets = Buffer::zeros(ids),
         mask = Buffer::zeros(ids.with_dtype(DType::f32));
  for (size_t row = 0; row < which.size(); ++row) {
    const Window& window = windows[which[row]];
    const size_t begin = row * static_cast<size_t>(length);
    for (size_t i = 0; i + 1 < window.tokens.size(); ++i) {
      tokens.mutable_as<int32_t>()[begin + i] = window.tokens[i];
      targets.mutable_as<int32_t>()[begin + i] = window.tokens[i + 1];
      mask.mutable_as<float>()[begin + i] = i + 1 >= window.first ? 1.0F : 0.0F;
    }
  }
  std::vector<Buffer> inputs = params_;
  inputs.insert(inputs.end(), {tokens, targets, mask, Buffer::scalar(DType::i32, int32_t{0})});
  ASSIGN_OR_RETURN(std::vector<Buffer> made, executable->run(std::move(inputs)));
  ASSIGN_OR_RETURN(const auto results, runtime::all_to(std::move(made), runtime::host_memory()));
  const std::span<const float> losses = results[0].as<float>();
  for (size_t row = 0; row < which.size(); ++row) {
    const Window& window = windows[which[row]];
    const size_t begin = row * static_cast<size_t>(length);
    WindowScore score;
    if (greedy) score.greedy = true;
    for (size_t i = window.first - 1; i + 1 < window.tokens.size(); ++i) {
      score.log_prob -= static_cast<double>(losses[begin + i]);
      if (greedy && results[1].as<int32_t>()[begin + i] != window.tokens[i + 1]) score.greedy = false;
    }
    if (!std::isfinite(score.log_prob))
      return invalid_argument(
          fmt::format("a log-probability is {}: the model's parameters are unusable", score.log_prob));
    out[which[row]] = score;
  }
  return {};
}

// Sorts the windows by their padded length, and puts those of one length together. Lengths are powers of two
// and numbers of rows powers of four, so few programs are compiled.
std::vector<TokenScorer::Batch> TokenScorer::batches(std::span<const Window> windows, bool greedy) const {
  std::vector<size_t> order(windows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto length = [&](size_t i) { return padded_length(windows[i], options_.context); };
  // The longest first: a lack of memory shows at once.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
  std::vector<Batch> out;
  for (size_t begin = 0; begin < order.size();) {
    const int64_t positions = length(order[begin]);
    size_t end = begin;
    while (end < order.size() && length(order[end]) == positions) ++end;
    const int64_t rows = rows_of(static_cast<int64_t>(end - begin), positions, greedy);
    end = std::min(end, begin + static_cast<size_t>(rows));
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
    out.push_back({{first, first + static_cast<std::ptrdiff_t>(end - begin)}, rows, positions});
    begin = end;
  }
  return out;
}

Result<std::vector<WindowScore>> TokenScorer::score(std::span<const Window> windows, bool greedy,
                                                    const Progress& progress) {
  if (greedy && !knows_greedy())
    return unsupported(
        "this model has no cached step (cache() and decode()): whether a token is the most likely one is not "
        "known");
  for (const Window& window : windows) {
    if (window.first < 1 || window.first >= window.tokens.size())
      return invalid_argument(fmt::format("a window of {} tokens whose token {} is the first to be scored",
                                          window.tokens.size(), window.first));
    if (static_cast<int64_t>(window.tokens.size()) > options_.context + 1)
      return invalid_argument(fmt::format("a window of {} tokens; the model's context is {}",
                                          window.tokens.size(), options_.context));
  }
  std::vector<WindowScore> out(windows.size());
  size_t done = 0;
  for (const Batch& batch : batches(windows, greedy)) {
    RETURN_IF_ERROR(run_batch(windows, batch, greedy, out));
    done += batch.windows.size();
    if (progress) progress(done);
  }
  return out;
}

}  // namespace ostro::eval
