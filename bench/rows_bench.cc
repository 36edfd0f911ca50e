// Tokens a second of a model that continues 1, 4, 16 and 32 texts at a time: all in one step of a runner
// layer by layer, beside one after the other by the model's cached step.
//
//   rows_bench [--dtype f32|bf16|int8] [--threads N] [--steps N] [--layers N]
//
// A Llama of 125 M parameters (12 layers of 768, 32,000 tokens) with made weights; the texts are 64 tokens
// long at the beginning. One JSON line for each number of texts: tokens a second of CPU time (that of all
// threads) of both, their ratio, and whether all bits of their logits are equal. The two take turns.
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "bench/arguments.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/infer/generate.h"
#include "ostro/ir/program/int8_limits.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder.h"

namespace {

using namespace ostro;
using runtime::Buffer;

constexpr int64_t kVocab = 32'000, kPrompt = 64;

struct Args {
  nn::Precision precision = ir::DType::f32;
  int threads = 2;
  int64_t steps = 8, layers = 12;
};

double cpu_seconds() {
  rusage r;
  getrusage(RUSAGE_SELF, &r);
  const auto time = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return time(r.ru_utime) + time(r.ru_stime);
}

// Weights of the size that an initialisation gives; norms are ones.
Buffer made(const ir::Shape& shape, const std::string& path, uint32_t& state) {
  Buffer out = Buffer::empty(shape);
  const bool is_norm = path.find("norm") != std::string::npos;
  for (float& x : out.mutable_as<float>()) {
    state = state * 1664525 + 1013904223;
    x = is_norm ? 1.0F : (static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F) * 0.07F;
  }
  return out;
}

// Feeds the next token of each text, in one step or one after the other. Returns their logits.
std::vector<float> fed(infer::RowRunner& runner, const std::vector<int64_t>& sequences,
                       const std::vector<std::vector<int32_t>>& texts, int64_t at, int64_t count,
                       bool together) {
  std::vector<infer::RowChunk> chunks;
  for (size_t i = 0; i < texts.size(); ++i)
    chunks.push_back(
        {sequences[i], std::span(texts[i]).subspan(static_cast<size_t>(at), static_cast<size_t>(count)), 1});
  std::vector<float> out;
  const size_t each = together ? chunks.size() : 1;
  for (size_t i = 0; i < chunks.size(); i += each) {
    const Buffer rows = runner.step(std::span(chunks).subspan(i, each)).value();
    out.insert(out.end(), rows.as<float>().begin(), rows.as<float>().end());
  }
  return out;
}

int run(const Args& args) {
  models::DecoderOptions o("llama");
  o.seq_len = 1024;
  o.hidden_dim = 768;
  o.intermediate_dim = 2048;
  o.num_layers = args.layers;
  o.num_heads = o.num_kv_heads = 12;
  if (const Status s = o.resolve(); !s.ok()) {
    fmt::print(stderr, "{}\n", s.error().message());
    return 1;
  }
  const auto functions = models::model_functions<models::Decoder>(o, kVocab, args.precision);
  const auto layers = models::decoder_by_layer(o, kVocab, args.precision, {}, functions.paths);
  std::vector<Buffer> params;
  uint32_t state = 7;
  for (size_t i = 0; i < functions.paths.size(); ++i)
    params.push_back(made(functions.shapes[i], functions.paths[i], state));
  const auto engine = cpu::make_cpu_engine({.threads = args.threads}).value();
  const infer::RowLimits limits{o.seq_len, 32, 2048};
  const auto rows = infer::make_runner(functions, layers, params, *engine, limits).value();
  const auto alone = infer::make_runner(functions, {}, params, *engine, limits).value();
  for (const size_t count : {1, 4, 16, 32}) {
    std::vector<std::vector<int32_t>> texts(count);
    for (auto& text : texts)
      for (int64_t i = 0; i < kPrompt + args.steps + 1; ++i) {
        state = state * 1664525 + 1013904223;
        text.push_back(static_cast<int32_t>((state >> 8) % kVocab));
      }
    std::vector<int64_t> of_rows, of_alone;
    for (size_t i = 0; i < count; ++i) {
      of_rows.push_back(rows->open().value());
      of_alone.push_back(alone->open().value());
    }
    double by_rows = 0, one_by_one = 0;
    bool equal = true;
    for (int64_t step = -1; step <= args.steps; ++step) {
      const int64_t at = step < 0 ? 0 : kPrompt + step, tokens = step < 0 ? kPrompt : 1;
      const double begin = cpu_seconds();
      const auto a = fed(*rows, of_rows, texts, at, tokens, true);
      const double middle = cpu_seconds();
      const auto b = fed(*alone, of_alone, texts, at, tokens, false);
      equal = equal && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
      if (step <= 0) continue;  // the prompts; programs are compiled
      by_rows += middle - begin;
      one_by_one += cpu_seconds() - middle;
    }
    const auto made_tokens = static_cast<double>(count) * static_cast<double>(args.steps);
    fmt::print(
        "{{\"texts\": {}, \"rows\": {:.2f}, \"one_by_one\": {:.2f}, \"ratio\": {:.2f}, \"equal\": {}}}\n",
        count, made_tokens / by_rows, made_tokens / one_by_one, one_by_one / by_rows, equal);
    std::fflush(stdout);
    for (size_t i = 0; i < count; ++i) {
      rows->close(of_rows[i]);
      alone->close(of_alone[i]);
    }
    if (!equal) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Args args;
  const Status read = bench::read_options(argc, argv,
                                          {{"--dtype", "f32 or bf16 or int8",
                                            [&](const std::string& value) {
                                              if (value == "bf16") args.precision = ir::DType::bf16;
                                              if (value == "int8")
                                                args.precision = {ir::DType::bf16, ir::kInt8Block};
                                              return value == "f32" || value == "bf16" || value == "int8";
                                            }},
                                           bench::count_option("--threads", args.threads),
                                           bench::count_option("--steps", args.steps),
                                           bench::count_option("--layers", args.layers)});
  if (!read.ok()) {
    fmt::print(stderr, "{}\n", read.error().message());
    return 2;
  }
  return run(args);
}
