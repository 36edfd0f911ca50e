// A Grok whose matrices are int8 gives the bits of the one whose matrices are these times their scales, in
// memory and layer by layer, whatever reads them.
#include <doctest/doctest.h>

#include <cmath>

#include "ostro/interp/engine/engine.h"
#include "ostro/models/decoder/decoder_for_test.h"
#include "ostro/models/model_functions.h"
#include "ostro/numerics/bf16.h"

namespace ostro::models {
namespace {

using runtime::Buffer;

DecoderOptions int8_grok(int64_t groups) {
  DecoderOptions o = test::small("grok");
  o.int8_row_groups = groups;
  return o;
}

uint64_t int8_noise(uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  i = (i ^ i >> 27) * 0x94d049bb133111ebu;
  return i ^ i >> 31;
}

// Values for each parameter; scales so that weights are about 0.3 at most.
std::vector<Buffer> int8_parameters(const ModelFunctions& model, DType compute) {
  std::vector<Buffer> out;
  for (size_t k = 0; k < model.paths.size(); ++k) {
    Shape shape = model.shapes[k];
    const bool scales = model.paths[k].ends_with("scales");
    if (scales && compute == DType::bf16) shape.dtype = DType::bf16;
    Buffer b = Buffer::empty(shape);
    for (size_t i = 0; i < static_cast<size_t>(shape.count()); ++i) {
      const uint64_t r = int8_noise(i * 131 + k);
      const float scale = std::ldexp(1.0f + static_cast<float>(r & 127) / 128.0f, -9);
      const float value = static_cast<float>(r >> 8 & 255) / 256.0f - 0.5f;
      if (shape.dtype == DType::i8)
        b.mutable_as<int8_t>()[i] = static_cast<int8_t>(r >> 16);
      else if (shape.dtype == DType::bf16)
        b.mutable_as<numerics::Bf16>()[i] = numerics::to_bf16(scale);
      else
        b.mutable_as<float>()[i] = scales                                             ? scale
                                   : model.paths[k].find("norm") != std::string::npos ? 1 + value
                                                                                      : value;
    }
    out.push_back(b);
  }
  return out;
}

// The same values for the model without int8, whose parameters are these without the scales: each matrix
// behind its axes of layers and experts is [rows, columns], the columns those of its scales.
std::vector<Buffer> widened_parameters(const ModelFunctions& int8, const std::vector<Buffer>& values,
                                       DType compute) {
  std::vector<Buffer> out;
  for (size_t k = 0; k < values.size(); ++k) {
    if (int8.paths[k].ends_with("scales")) continue;
    if (values[k].shape().dtype != DType::i8) {
      out.push_back(values[k]);
      continue;
    }
    const Buffer& scales = values[k + 1];
    const int64_t at = scales.shape().find(nn::kScaleGroupsAxis),
                  groups = scales.shape().axes[static_cast<size_t>(at)].size;
    int64_t before = 1, after = 1;
    for (int64_t i = 0; i < scales.shape().rank(); ++i)
      if (i != at) (i < at ? before : after) *= scales.shape().axes[static_cast<size_t>(i)].size;
    const int64_t rows = values[k].shape().count() / before / after;
    Buffer b = Buffer::empty(values[k].shape().with_dtype(compute));
    for (int64_t i = 0; i < b.shape().count(); ++i) {
      const int64_t row = i / after % rows, block = i / after / rows;
      const auto s = static_cast<size_t>((block * groups + row / (rows / groups)) * after + i % after);
      const float scale =
          compute == DType::bf16 ? numerics::to_f32(scales.as<numerics::Bf16>()[s]) : scales.as<float>()[s];
      const float x = static_cast<float>(values[k].as<int8_t>()[static_cast<size_t>(i)]) * scale;
      if (compute == DType::bf16)
        b.mutable_as<numerics::Bf16>()[static_cast<size_t>(i)] = numerics::to_bf16(x);
      else
        b.mutable_as<float>()[static_cast<size_t>(i)] = x;
    }
    out.push_back(b);
  }
  return out;
}

// Logits of `count` tokens, `piece` at a time.
std::vector<float> step_logits(const ModelFunctions& model, const std::vector<Buffer>& values,
                               runtime::Engine& engine, int64_t count, int64_t piece) {
  std::vector<float> out;
  std::vector<Buffer> cache;
  trace_program("cache", {}, [&](const Arrays&) {
    for (const Array& a : model.decode.cache(1, count)) cache.push_back(Buffer::zeros(a.shape()));
    return Arrays{};
  });
  for (int64_t at = 0; at < count; at += piece) {
    const int64_t n = std::min(piece, count - at);
    std::vector<Buffer> inputs = values;
    Buffer tokens = Buffer::empty({DType::i32, {{"batch", 1}, {"pos", n}}});
    for (int64_t i = 0; i < n; ++i)
      tokens.mutable_as<int32_t>()[static_cast<size_t>(i)] =
          static_cast<int32_t>((at + i) * 7 % test::kVocab);
    inputs.push_back(tokens);
    inputs.push_back(Buffer::scalar(DType::i32, static_cast<int32_t>(at)));
    inputs.insert(inputs.end(), cache.begin(), cache.end());
    std::vector<Shape> shapes;
    for (const Buffer& b : inputs) shapes.push_back(b.shape());
    const size_t parameters = values.size();
    const ir::Program program = trace_program("step", shapes, [&](const Arrays& in) {
      const auto first = in.begin();
      const auto [scores, filled] = model.decode.step(
          Arrays(first, first + static_cast<int64_t>(parameters)), in[parameters],
          Arrays(first + static_cast<int64_t>(parameters) + 2, in.end()), in[parameters + 1]);
      Arrays results{scores};
      results.insert(results.end(), filled.begin(), filled.end());
      return results;
    });
    auto made = (*engine.compile(program))->run(inputs);
    check_ok(made.ok() ? Status() : Status(made.error()));
    const auto scores = (*made)[0].as<float>();
    out.insert(out.end(), scores.begin(), scores.end());
    cache.assign(made->begin() + 1, made->end());
  }
  return out;
}

TEST_CASE("a Grok with int8 matrices has the bits of the one that they stand for") {
  const auto interp = interp::make_interpreter();
  const auto cpu = cpu::make_cpu_engine({.isa = {}, .threads = 2, .generated_code = false});
  REQUIRE(cpu.ok());
  for (const DType compute : {DType::f32, DType::bf16}) {
    const auto stored = model_functions<Decoder>(int8_grok(4), test::kVocab, compute);
    const auto wide = model_functions<Decoder>(test::small("grok"), test::kVocab, compute);
    const std::vector<Buffer> values = int8_parameters(stored, compute);
    const std::vector<Buffer> others = widened_parameters(stored, values, compute);
    REQUIRE(others.size() == wide.paths.size());
    const std::vector<float> expected = step_logits(wide, others, *interp, 12, 12);
    CHECK(std::isfinite(expected[0]));
    CHECK(step_logits(stored, values, *interp, 12, 12) == expected);
    for (const int64_t piece : {int64_t{1}, int64_t{5}, int64_t{12}}) {
      CHECK(step_logits(wide, others, **cpu, 12, piece) == expected);
      CHECK(step_logits(stored, values, **cpu, 12, piece) == expected);
    }
    // One int8 more is seen.
    std::vector<Buffer> changed = values;
    for (size_t k = 0; k < changed.size(); ++k)
      if (stored.paths[k].ends_with("attention/o/weight")) {
        Buffer b = Buffer::copy_of(changed[k].shape(), changed[k].bytes().data());
        b.mutable_as<int8_t>()[0] = static_cast<int8_t>(b.as<int8_t>()[0] ^ 64);
        changed[k] = b;
      }
    CHECK(step_logits(stored, changed, **cpu, 12, 12) != expected);
  }
}

}  // namespace
}  // namespace ostro::models
