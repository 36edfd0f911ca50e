#include "ostro/infer/generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/infer/bucket.h"
#include "ostro/infer/choose.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/text.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro::infer {

using runtime::Buffer;

Generator::Generator(const models::ModelFunctions& model, std::vector<Buffer> params, runtime::Engine& engine,
                     int64_t max_length, numerics::LeafTable leaves)
    : model_(model),
      params_(std::move(params)),
      engine_(engine),
      max_length_(max_length),
      leaves_(std::move(leaves)) {}

Result<std::unique_ptr<Generator>> Generator::create(const models::ModelFunctions& model,
                                                     std::vector<Buffer> params, runtime::Engine& engine,
                                                     int64_t max_length, numerics::LeafTable leaves) {
  if (!model.decode.step)
    return unsupported(
        "this model has no cached step, so it cannot generate: its struct needs cache(batch, length, dtype) "
        "and decode(tokens, cache, start), which ostro/models/model_functions.h describes");
  if (max_length < 2)
    return invalid_argument(fmt::format("room for {} positions; at least 2 are needed", max_length));
  ASSIGN_OR_RETURN(params, runtime::all_to(std::move(params), engine.memory()));
  std::unique_ptr<Generator> g(
      new Generator(model, std::move(params), engine, max_length, std::move(leaves)));
  try {
    // Only the shapes are wanted: an empty cache is zeros.
    trace_program("cache", {}, [&](const Arrays&) {
      for (const Array& a : model.decode.cache(1, max_length)) g->cache_.push_back(Buffer::zeros(a.shape()));
      return Arrays{};
    });
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
  return g;
}

// (parameters, tokens, start, cache) -> (logits, cache).
Result<ir::Program> Generator::traced(int64_t bucket) const {
  std::vector<Shape> shapes = model_.shapes;
  const size_t n = shapes.size();
  shapes.push_back({DType::i32, {{"batch", 1}, {"pos", bucket}}});
  shapes.push_back(ir::scalar(DType::i32));
  for (const Buffer& b : cache_) shapes.push_back(b.shape());
  try {
    ir::Program p = trace_program("decode", shapes, [&](const Arrays& in) {
      const Arrays params(in.begin(), in.begin() + static_cast<int64_t>(n));
      const Arrays cache(in.begin() + static_cast<int64_t>(n) + 2, in.end());
      auto [logits, filled] = model_.decode.step(params, in[n], cache, in[n + 1]);
      Arrays out{logits};
      out.insert(out.end(), filled.begin(), filled.end());
      return out;
    });
    p.leaves = leaves_;
    RETURN_IF_ERROR(ir::verify(p));
    return p;
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
}

Result<runtime::Executable*> Generator::program(int64_t bucket) {
  for (const auto& [size, executable] : programs_)
    if (size == bucket) return executable.get();
  ASSIGN_OR_RETURN(const ir::Program p, traced(bucket));
  runtime::CompileOptions options;
  const size_t n = model_.shapes.size();
  for (size_t i = 0; i < cache_.size(); ++i) options.donate.push_back(static_cast<int64_t>(n + 2 + i));
  ASSIGN_OR_RETURN(auto executable, engine_.compile(p, options));
  programs_.emplace_back(bucket, std::move(executable));
  return programs_.back().second.get();
}

Status Generator::prepare() {
  for (int64_t count = 1; count <= max_length_; count = bucket_of(count, max_length_) + 1)
    RETURN_IF_ERROR(program(bucket_of(count, max_length_)));
  return {};
}

Result<std::string> Generator::program_hash() {
  ASSIGN_OR_RETURN(const ir::Program p, traced(1));
  return ir::program_hash(p);
}

Result<Buffer> Generator::start(std::span<const int32_t> prompt) {
  if (prompt.empty()) return invalid_argument("the prompt is empty; give at least one token");
  if (static_cast<int64_t>(prompt.size()) > max_length_)
    return invalid_argument(fmt::format("{} tokens, room for {}", prompt.size(), max_length_));
  reset();
  tokens_.assign(prompt.begin(), prompt.end());
  return feed(tokens_, 0, tokens_.size());
}

Result<Buffer> Generator::next(int32_t token) {
  if (static_cast<int64_t>(tokens_.size()) >= max_length_)
    return invalid_argument(fmt::format("no room for a token after {}", max_length_));
  tokens_.push_back(token);
  return feed(tokens_, tokens_.size() - 1, tokens_.size());
}

void Generator::reset() {
  for (Buffer& b : cache_) b = Buffer::zeros(b.shape());
}

// The padding's rows of the cache are overwritten by the next call, which begins at `end`. The cache is
// donated to the program, so that it can be updated in place.
Result<Buffer> Generator::feed(const std::vector<int32_t>& tokens, size_t begin, size_t end) {
  const auto count = static_cast<int64_t>(end - begin);
  const int64_t bucket = bucket_of(count, max_length_);
  OSTRO_CHECK(static_cast<int64_t>(begin) + bucket <= max_length_,
              "{} tokens padded to {} at position {} run over a cache of {}", count, bucket, begin,
              max_length_);
  ASSIGN_OR_RETURN(runtime::Executable * executable, program(bucket));
  Buffer ids = Buffer::zeros(Shape{DType::i32, {{"batch", 1}, {"pos", bucket}}});
  std::copy(tokens.begin() + static_cast<int64_t>(begin), tokens.begin() + static_cast<int64_t>(end),
            ids.mutable_as<int32_t>().begin());
  std::vector<Buffer> inputs = params_;
  inputs.push_back(std::move(ids));
  inputs.push_back(Buffer::scalar(DType::i32, static_cast<int32_t>(begin)));
  for (Buffer& b : cache_) inputs.push_back(std::move(b));
  ASSIGN_OR_RETURN(std::vector<Buffer> out, executable->run(std::move(inputs)));
  for (size_t i = 0; i < cache_.size(); ++i) cache_[i] = std::move(out[i + 1]);
  const int64_t vocab = out[0].shape().axes.back().size;
  ASSIGN_OR_RETURN(const Buffer logits, out[0].to_host());
  return Buffer::copy_of(Shape{DType::f32, {{"pos", count}, {"vocab", vocab}}}, logits.bytes().data());
}

bool is_stop(const SampleOptions& options, int32_t token) {
  return std::find(options.stops.begin(), options.stops.end(), token) != options.stops.end();
}

int32_t next_token(std::span<const float> logits, const SampleOptions& options, int64_t position) {
  const auto known = static_cast<size_t>(options.tokens);
  if (known > 0 && known < logits.size()) logits = logits.first(known);
  return choose(logits, {.temperature = options.temperature, .seed = options.seed}, {}, position);
}

Result<std::vector<int32_t>> Generator::generate(const std::vector<int32_t>& prompt,
                                                 const SampleOptions& options,
                                                 const std::function<bool(int32_t)>& on_token) {
  if (prompt.empty()) return invalid_argument("the prompt is empty; give at least one token");
  const auto length = static_cast<int64_t>(prompt.size());
  if (length >= max_length_)
    return invalid_argument(
        fmt::format("the prompt has {} tokens, the model's context {}", length, max_length_));
  ASSIGN_OR_RETURN(Buffer logits, start(prompt));
  std::vector<int32_t> out;
  while (static_cast<int64_t>(out.size()) < options.max_new_tokens) {
    const auto vocab = static_cast<size_t>(logits.shape().axes[1].size);
    const int32_t token =
        next_token(logits.as<float>().last(vocab), options, static_cast<int64_t>(tokens_.size()));
    out.push_back(token);
    if (on_token && !on_token(token)) break;
    if (is_stop(options, token) || static_cast<int64_t>(tokens_.size()) + 1 >= max_length_) break;
    if (static_cast<int64_t>(out.size()) == options.max_new_tokens) break;
    ASSIGN_OR_RETURN(logits, next(token));
  }
  return out;
}

Result<std::vector<float>> Generator::score(const std::vector<int32_t>& tokens, int64_t prefill) {
  if (static_cast<int64_t>(tokens.size()) > max_length_)
    return invalid_argument(fmt::format("{} tokens, room for {}", tokens.size(), max_length_));
  reset();
  std::vector<float> losses;
  std::unique_ptr<runtime::Executable> loss_program;
  int64_t loss_rows = 0;
  for (size_t begin = 0; begin + 1 < tokens.size();) {
    const size_t end =
        begin == 0
            ? static_cast<size_t>(std::clamp<int64_t>(prefill, 1, static_cast<int64_t>(tokens.size()) - 1))
            : begin + 1;
    ASSIGN_OR_RETURN(const Buffer logits, feed(tokens, begin, end));
    // The loss of each row's target, with the same op as the training loss.
    const Shape targets{DType::i32, {logits.shape().axes[0]}};
    if (loss_program == nullptr || loss_rows != targets.count()) {
      ir::Program p = trace_program("loss", {logits.shape(), targets}, [](const Arrays& in) {
        return Arrays{cross_entropy(in[0], in[1], "vocab")};
      });
      p.leaves = leaves_;
      ASSIGN_OR_RETURN(loss_program, engine_.compile(p));
      loss_rows = targets.count();
    }
    ASSIGN_OR_RETURN(auto loss,
                     loss_program->run({logits, Buffer::copy_of(targets, tokens.data() + begin + 1)}));
    ASSIGN_OR_RETURN(const Buffer values, loss[0].to_host());
    losses.insert(losses.end(), values.as<float>().begin(), values.as<float>().end());
    begin = end;
  }
  return losses;
}

}  // namespace ostro::infer
