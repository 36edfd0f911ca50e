#include "models.h"

#include <utility>

#include "ostro/base/check.h"
#include "ostro/checkpoint/save.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder_for_test.h"
#include "ostro/serve/model/adapter_rows.h"
#include "ostro/serve/model_for_test.h"

namespace ostro::workloads {
namespace {

using models::Decoder;
using models::DecoderOptions;

nn::Precision precision_of(Numbers numbers) {
  switch (numbers) {
    case Numbers::kF32: return ir::DType::f32;
    case Numbers::kBf16: return ir::DType::bf16;
    case Numbers::kInt8: return {ir::DType::bf16, 8};  // small blocks, so that rows have several
  }
  return ir::DType::f32;
}

DecoderOptions long_one(DecoderOptions o) {
  o.seq_len = kContext;
  check_ok(o.resolve());
  return o;
}

}  // namespace

const char* word_of(Numbers numbers) {
  switch (numbers) {
    case Numbers::kF32: return "f32";
    case Numbers::kBf16: return "bf16";
    case Numbers::kInt8: return "int8";
  }
  return "";
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    using namespace models::test;
    const std::vector<Numbers> any = {Numbers::kF32, Numbers::kBf16, Numbers::kInt8};
    DecoderOptions released = small("grok");
    released.rounding = models::Rounding::kReleased;
    return std::vector<Kind>{{"dense", long_one(small("llama")), any},
                             {"odd", long_one(odd_decoder()), any, {{"*"}}},
                             {"windows", long_one(small("gemma2")), any},
                             {"mixture", long_one(odd_mixture()), any, {{"q_proj", "o_proj"}}},
                             {"latent", long_one(odd_latent()), any},
                             {"gathered", long_one(released), {Numbers::kBf16}}};
  }();
  return all;
}

models::LayerFunctions Weights::layers(int64_t adapters) const {
  std::optional<nn::LoraSpec> lora = lora_;
  if (lora) lora->adapters = adapters;
  return models::decoder_by_layer(kind_.options, serve::test_tokenizer()->vocab_size(), precision_, lora,
                                  functions_.paths);
}

Weights::Weights(const Kind& kind, Numbers numbers, int adapter)
    : kind_(kind), precision_(precision_of(numbers)) {
  if (adapter > 0) lora_ = nn::LoraSpec{.rank = 3, .scale = 0.7, .targets = kind.adapted};
  functions_ = models::model_functions<Decoder>(kind.options, serve::test_tokenizer()->vocab_size(),
                                                precision_, lora_);
  layers_ = layers(0);
  test::DefaultInterpreter use;
  const auto init = jit([this, adapter](const Array& key) {
    Arrays leaves = functions_.init(key);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const std::string& path = functions_.paths[i];
      const bool begins_alike = path.find("norm") != std::string::npos ||
                                path.find("bias") != std::string::npos || nn::is_adapter(path);
      const std::string name = path + (nn::is_adapter(path) && adapter > 1 ? std::to_string(adapter) : "");
      if (begins_alike)
        leaves[i] = leaves[i] + random_normal(fold_in(key, name), leaves[i].shape().axes) * 0.3;
    }
    return leaves;
  });
  for (const Array& a : init(make_key(3))) values_.push_back(a.buffer());
  save();
}

void Weights::save() {
  std::vector<checkpoint::Tensor> tensors;
  for (size_t i = 0; i < values_.size(); ++i) {
    checkpoint::TensorSpec spec{functions_.paths[i], "f32", {}, {}, {}};
    for (const ir::Axis& axis : values_[i].shape().axes) {
      spec.axes.push_back(axis.name);
      spec.shape.push_back(axis.size);
      spec.cell.push_back((axis.size + 1) / 2);
    }
    tensors.push_back({spec, values_[i].bytes(), nullptr});
  }
  checkpoint_ = checkpoint::save(fs_, "root", {}, tensors).value().path;
}

std::shared_ptr<runtime::Engine> engine_of(const Setting& setting) {
  if (setting.interpreted) return interp::make_interpreter();
  static std::map<std::pair<std::string, int>, std::shared_ptr<runtime::Engine>> made;
  std::shared_ptr<runtime::Engine>& engine = made[{setting.isa, setting.threads}];
  if (engine == nullptr)
    engine = cpu::make_cpu_engine({.isa = setting.isa, .threads = setting.threads, .generated_code = false})
                 .value();
  return engine;
}

serve::ServedModel Weights::served(const Setting& setting,
                                   const std::function<void(models::LayerFunctions&)>& change) const {
  serve::ServedModel out = serve::test_model(kContext);
  out.engine = engine_of(setting);
  infer::LayerRows::Model model{functions_, layers_};
  if (change) change(model.layers);
  if (!setting.streamed) {
    out.runner = infer::LayerRows::create(std::move(model), values_, *out.engine, setting.limits).value();
    return out;
  }
  const auto found = checkpoint::Checkpoint::open(fs_, checkpoint_);
  auto reader = checkpoint::PartReader::open(fs_, found.value(), functions_.paths);
  out.store = std::make_shared<infer::WeightStore>(std::move(reader.value()), functions_.shapes, layers_,
                                                   setting.keep_bytes);
  out.runner = infer::LayerRows::streamed(std::move(model), *out.store, *out.engine, setting.limits).value();
  return out;
}

std::vector<serve::ServedModel> Weights::served_together(const std::vector<const Weights*>& adapted,
                                                         const Setting& setting) {
  const Weights& first = *adapted[0];
  const auto engine = engine_of(setting);
  std::vector<runtime::Buffer> values;
  for (size_t i = 0; i < first.values_.size(); ++i) {
    std::vector<runtime::Buffer> factors;
    for (const Weights* one : adapted) factors.push_back(one->values_[i]);
    const bool is_factor = nn::is_adapter(first.functions_.paths[i]);
    values.push_back(is_factor ? serve::side_by_side(std::move(factors)).value() : factors[0]);
  }
  const std::shared_ptr<infer::LayerRows> rows =
      infer::LayerRows::create({first.functions_, first.layers(std::ssize(adapted)), {}, std::ssize(adapted)},
                               std::move(values), *engine, setting.limits)
          .value();
  std::vector<serve::ServedModel> out;
  for (int32_t adapter = infer::LayerRows::kNoAdapter; adapter < std::ssize(adapted); ++adapter) {
    out.push_back(serve::test_model(kContext));
    out.back().engine = engine;
    out.back().runner = std::make_unique<serve::AdapterRows>(rows, adapter, "");
    out.back().rows = rows;
  }
  return out;
}

}  // namespace ostro::workloads
