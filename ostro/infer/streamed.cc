#include "ostro/infer/streamed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <set>

#include "ostro/infer/bucket.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro::infer {
namespace {

using runtime::Buffer;

size_t row_bytes(const Buffer& b) { return static_cast<size_t>(b.shape().bytes() / b.shape().axes[1].size); }

// [batch, pos, ...] with another number of positions.
ir::Shape with_rows(ir::Shape shape, int64_t rows) {
  OSTRO_CHECK(shape.axes.size() >= 2 && shape.axes[0].size == 1 && shape.axes[1].name == "pos",
              "{} is no sequence of rows", shape.str());
  shape.axes[1].size = rows;
  return shape;
}

// How many rows of a buffer on the host, from which on.
struct Take {
  const Buffer* from;
  int64_t first, count;
};

// These rows one after the other, and zeros after them up to `rows`.
Buffer gathered(const std::vector<Take>& parts, int64_t rows) {
  Buffer out = Buffer::zeros(with_rows(parts[0].from->shape(), rows));
  const size_t bytes = row_bytes(out);
  std::byte* to = out.mutable_bytes().data();
  for (const Take& part : parts) {
    std::memcpy(to, part.from->bytes().data() + static_cast<size_t>(part.first) * bytes,
                static_cast<size_t>(part.count) * bytes);
    to += static_cast<size_t>(part.count) * bytes;
  }
  return out;
}

int64_t unfed(const Sequence& s) { return static_cast<int64_t>(s.tokens.size() - s.fed); }

Arrays drop(const Arrays& in, size_t first, size_t last) {
  return Arrays(in.begin() + static_cast<int64_t>(first), in.end() - static_cast<int64_t>(last));
}

}  // namespace

StreamedGenerator::StreamedGenerator(models::LayerFunctions layers, WeightStore& weights,
                                     runtime::Engine& engine, int64_t max_length)
    : layers_(std::move(layers)), weights_(weights), engine_(engine), max_length_(max_length) {}

Result<std::unique_ptr<StreamedGenerator>> StreamedGenerator::create(models::LayerFunctions layers,
                                                                     WeightStore& weights,
                                                                     runtime::Engine& engine,
                                                                     int64_t max_length) {
  if (max_length < 2)
    return invalid_argument(fmt::format("room for {} positions; at least 2 are needed", max_length));
  std::unique_ptr<StreamedGenerator> g(new StreamedGenerator(std::move(layers), weights, engine, max_length));
  trace_program("cache", {}, [&](const Arrays&) {
    g->cache_shape_ = g->layers_.cache(1, max_length).shape();
    return Arrays{};
  });
  return g;
}

Result<StreamedGenerator::Buffers> StreamedGenerator::run(
    const std::string& name, Buffers inputs, const std::vector<int64_t>& donate,
    const std::function<Arrays(const Arrays&)>& traced) {
  auto found =
      std::find_if(programs_.begin(), programs_.end(), [&](const auto& p) { return p.first == name; });
  if (found == programs_.end()) {
    std::vector<ir::Shape> shapes;
    for (const Buffer& b : inputs) shapes.push_back(b.shape());
    try {
      const ir::Program p = trace_program(name, shapes, traced);
      RETURN_IF_ERROR(ir::verify(p));
      runtime::CompileOptions options;
      options.donate = donate;
      ASSIGN_OR_RETURN(auto executable, engine_.compile(p, options));
      programs_.emplace_back(name, std::move(executable));
      found = programs_.end() - 1;
    } catch (const TraceError& e) {
      return invalid_argument(e.what());
    }
  }
  return found->second->run(std::move(inputs));
}

Result<StreamedGenerator::LayerWeights> StreamedGenerator::read_layer(int64_t layer) {
  LayerWeights out;
  if (layer == static_cast<int64_t>(layers_.kind.size())) {
    ASSIGN_OR_RETURN(out.chosen, weights_.whole(layers_.head_reads));
    return out;
  }
  ASSIGN_OR_RETURN(out.attention, weights_.whole(layers_.attention_reads[static_cast<size_t>(layer)]));
  ASSIGN_OR_RETURN(out.chosen, weights_.whole(layers_.chosen_reads[static_cast<size_t>(layer)]));
  return out;
}

Result<Buffer> StreamedGenerator::embed(const Sequence& s) {
  const int64_t count = unfed(s), bucket = bucket_of(count, max_length_);
  ASSIGN_OR_RETURN(Buffers inputs, weights_.whole(layers_.embed_reads));
  ASSIGN_OR_RETURN(Buffer rows, weights_.rows(layers_.embedding, std::span(s.tokens).subspan(s.fed), bucket));
  Buffer places = Buffer::zeros({ir::DType::i32, {{"batch", 1}, {"pos", bucket}}});
  for (int64_t i = 0; i < count; ++i)
    places.mutable_as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  inputs.insert(inputs.begin(), std::move(rows));
  inputs.push_back(std::move(places));
  inputs.push_back(Buffer::scalar(ir::DType::i32, static_cast<int32_t>(s.fed)));
  ASSIGN_OR_RETURN(Buffers out,
                   run(fmt::format("embed {}", bucket), std::move(inputs), {}, [this](const Arrays& in) {
                     const size_t n = in.size();
                     return Arrays{layers_.embed(in[0], drop(in, 1, 2), in[n - 2], in[n - 1])};
                   }));
  return std::move(out[0]);
}

Result<StreamedGenerator::Buffers> StreamedGenerator::attend(int64_t layer, Buffers inputs, Sequence& s,
                                                             Buffer x) {
  auto& [keys, values] = s.cache[static_cast<size_t>(layer)];
  const int64_t bucket = x.shape().axes[1].size;
  const auto n = static_cast<int64_t>(inputs.size());
  Buffer tokens = Buffer::zeros({ir::DType::i32, {{"batch", 1}, {"pos", bucket}}});
  std::copy(s.tokens.begin() + s.fed, s.tokens.end(), tokens.mutable_as<int32_t>().begin());
  inputs.push_back(std::move(tokens));
  inputs.push_back(std::move(x));
  inputs.push_back(std::move(keys));
  inputs.push_back(std::move(values));
  inputs.push_back(Buffer::scalar(ir::DType::i32, static_cast<int32_t>(s.fed)));
  const std::string name = fmt::format("attention {} {}", layers_.kind[static_cast<size_t>(layer)], bucket);
  ASSIGN_OR_RETURN(Buffers out, run(name, std::move(inputs), {n + 2, n + 3}, [&](const Arrays& in) {
                     const auto at = static_cast<size_t>(n);
                     return layers_.attention(layer, drop(in, 0, 5), in[at], in[at + 1], in[at + 2],
                                              in[at + 3], in[at + 4]);
                   }));
  keys = std::move(out[0]);
  values = std::move(out[1]);
  out.erase(out.begin(), out.begin() + 2);
  return runtime::all_to(std::move(out), runtime::host_memory());
}

Status StreamedGenerator::read_experts(int64_t layer, int64_t rows, Buffer& expert, Buffers& weights) {
  const std::span<int32_t> all = expert.mutable_as<int32_t>();
  const size_t slots = row_bytes(expert) / sizeof(int32_t);
  const std::span<int32_t> named = all.first(static_cast<size_t>(rows) * slots);
  const std::set<int64_t> used(named.begin(), named.end());
  const std::vector<int64_t> ids(used.begin(), used.end());
  for (int32_t& e : named)
    e = static_cast<int32_t>(std::lower_bound(ids.begin(), ids.end(), e) - ids.begin());
  // A program for each number of experts would be many.
  int64_t places = layers_.experts_per_token;
  while (places < static_cast<int64_t>(ids.size())) places *= 2;
  places = std::min(places, layers_.experts);
  const auto& reads = layers_.chosen_reads[static_cast<size_t>(layer)];
  ASSIGN_OR_RETURN(Buffers experts, weights_.experts(reads, ids, places));
  for (size_t i = 0; i < reads.size(); ++i)
    if (reads[i].by_expert) weights[i] = std::move(experts[i]);
  return {};
}

// One pass through all layers. In a layer, attention runs for each sequence alone, since each has its own
// cache; the MLP or the experts run for the rows of all sequences together. A thread reads the next layer
// meanwhile. A layer with experts reads those first, because they are needed now, and then starts the thread.
Result<Buffer> StreamedGenerator::sweep(const std::vector<Sequence*>& sequences) {
  Buffers x;
  int64_t rows = 0;
  for (Sequence* s : sequences) {
    OSTRO_CHECK(unfed(*s) > 0 && static_cast<int64_t>(s->tokens.size()) <= max_length_,
                "{} tokens, {} of them new, room for {}", s->tokens.size(), unfed(*s), max_length_);
    while (s->cache.size() < layers_.kind.size())
      s->cache.emplace_back(Buffer::zeros(cache_shape_), Buffer::zeros(cache_shape_));
    ASSIGN_OR_RETURN(Buffer embedded, embed(*s));
    x.push_back(std::move(embedded));
    rows += unfed(*s);
  }
  const auto layers = static_cast<int64_t>(layers_.kind.size());
  const int64_t bucket = bucket_of(rows);
  const auto ahead = [this](int64_t layer) {
    return std::async(std::launch::async, [this, layer] { return read_layer(layer); });
  };
  std::future<Result<LayerWeights>> next = ahead(0);
  for (int64_t layer = 0; layer < layers; ++layer) {
    ASSIGN_OR_RETURN(LayerWeights weights, next.get());
    std::vector<Buffers> after;
    for (size_t i = 0; i < sequences.size(); ++i) {
      ASSIGN_OR_RETURN(Buffers one, attend(layer, weights.attention, *sequences[i], std::move(x[i])));
      after.push_back(std::move(one));
    }
    weights.attention.clear();
    // Experts, which are needed now, are read before what is needed next.
    const bool with_experts = after[0].size() > 2;
    if (!with_experts) next = ahead(layer + 1);
    Buffers inputs;
    for (size_t part = 0; part < after[0].size(); ++part) {
      std::vector<Take> takes;
      for (size_t i = 0; i < sequences.size(); ++i)
        takes.push_back({&after[i][part], 0, unfed(*sequences[i])});
      inputs.push_back(gathered(takes, bucket));
    }
    int64_t places = 0;
    if (with_experts) {
      RETURN_IF_ERROR(read_experts(layer, rows, inputs[2], weights.chosen));
      next = ahead(layer + 1);
      const auto& reads = layers_.chosen_reads[static_cast<size_t>(layer)];
      for (size_t i = 0; i < reads.size(); ++i)
        if (reads[i].by_expert) places = weights.chosen[i].shape().axes[0].size;
    }
    const size_t parts = inputs.size();
    inputs.insert(inputs.end(), std::make_move_iterator(weights.chosen.begin()),
                  std::make_move_iterator(weights.chosen.end()));
    weights.chosen.clear();
    const std::string name =
        fmt::format("chosen {} {} {}", layers_.kind[static_cast<size_t>(layer)], bucket, places);
    ASSIGN_OR_RETURN(
        const Buffers made, run(name, std::move(inputs), {}, [&](const Arrays& in) {
          return Arrays{layers_.chosen(layer, drop(in, parts, 0), drop(in, 0, in.size() - parts))};
        }));
    ASSIGN_OR_RETURN(const Buffer out, made[0].to_host());
    int64_t first = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const int64_t count = unfed(*sequences[i]);
      x[i] = gathered({{&out, first, count}}, bucket_of(count, max_length_));
      first += count;
    }
    if (on_layer_) on_layer_(layer);
  }

  std::vector<Take> last;
  for (size_t i = 0; i < sequences.size(); ++i) {
    last.push_back({&x[i], unfed(*sequences[i]) - 1, 1});
    sequences[i]->fed = sequences[i]->tokens.size();
  }
  const auto count = static_cast<int64_t>(last.size());
  ASSIGN_OR_RETURN(LayerWeights head, next.get());
  Buffers inputs = std::move(head.chosen);
  inputs.push_back(gathered(last, bucket_of(count)));
  ASSIGN_OR_RETURN(const Buffers out,
                   run(fmt::format("head {}", bucket_of(count)), std::move(inputs), {},
                       [this](const Arrays& in) { return Arrays{layers_.head(drop(in, 0, 1), in.back())}; }));
  const int64_t vocab = out[0].shape().axes.back().size;
  ASSIGN_OR_RETURN(const Buffer logits, out[0].to_host());
  return Buffer::copy_of({ir::DType::f32, {{"pos", count}, {"vocab", vocab}}}, logits.bytes().data());
}

Result<std::vector<std::vector<int32_t>>> StreamedGenerator::generate(
    const std::vector<std::vector<int32_t>>& prompts, const SampleOptions& options,
    const std::function<bool(size_t, int32_t)>& on_token, const std::function<void(int64_t)>& on_layer) {
  on_layer_ = on_layer;
  std::vector<Sequence> sequences;
  for (const auto& prompt : prompts) {
    if (prompt.empty()) return invalid_argument("a prompt is empty; give at least one token");
    if (static_cast<int64_t>(prompt.size()) >= max_length_)
      return invalid_argument(
          fmt::format("a prompt has {} tokens, the model's context {}", prompt.size(), max_length_));
    sequences.push_back({prompt, 0, {}});
  }
  std::vector<std::vector<int32_t>> made(prompts.size());
  std::vector<size_t> active(options.max_new_tokens > 0 ? prompts.size() : 0);
  for (size_t i = 0; i < active.size(); ++i) active[i] = i;
  while (!active.empty()) {
    std::vector<Sequence*> fed;
    for (const size_t i : active) fed.push_back(&sequences[i]);
    ASSIGN_OR_RETURN(const Buffer logits, sweep(fed));
    const auto vocab = static_cast<size_t>(logits.shape().axes[1].size);
    std::vector<size_t> still;
    for (size_t k = 0; k < active.size(); ++k) {
      const size_t i = active[k];
      Sequence& s = sequences[i];
      const int32_t token = next_token(logits.as<float>().subspan(k * vocab, vocab), options,
                                       static_cast<int64_t>(s.tokens.size()));
      made[i].push_back(token);
      s.tokens.push_back(token);
      if (on_token && !on_token(i, token)) return made;
      const bool ended = is_stop(options, token) || static_cast<int64_t>(s.tokens.size()) >= max_length_ ||
                         static_cast<int64_t>(made[i].size()) >= options.max_new_tokens;
      if (ended)
        s.cache.clear();
      else
        still.push_back(i);
    }
    active = std::move(still);
  }
  return made;
}

}  // namespace ostro::infer
