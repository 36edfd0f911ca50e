#include "ostro/nn/adapters.h"

#include <algorithm>
#include <cmath>

#include "ostro/config/glob.h"
#include "ostro/nn/init.h"

namespace ostro::nn {
namespace {

// Between the path of a Linear and its adapters: the name of Linear::lora.
constexpr const char* kLora = "/lora/";

// The axes of a weight: those of its copies (layers), then its inputs, then its outputs.
struct WeightAxes {
  std::vector<Axis> copies, in, out;
};

WeightAxes axes_of(const Linear& linear) {
  WeightAxes axes;
  for (const Axis& a : linear.weight.shape().axes) {
    if (std::find(linear.in.begin(), linear.in.end(), a.name) != linear.in.end())
      axes.in.push_back(a);
    else
      (axes.in.empty() ? axes.copies : axes.out).push_back(a);
  }
  return axes;
}

std::string last_component(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<Axis> operator+(std::vector<Axis> a, const std::vector<Axis>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

bool LoraSpec::wants(const std::string& path, const std::string& name, bool is_head) const {
  if (!targets) return !is_head;
  return std::any_of(targets->begin(), targets->end(), [&](const std::string& glob) {
    return config::glob_matches(glob, name) || config::glob_matches(glob, path);
  });
}

std::string adapter_path(const std::string& linear, const std::string& name, char factor) {
  return linear + kLora + name + "/" + factor;
}

bool is_adapter(const std::string& path) { return path.find(kLora) != std::string::npos; }

void add_lora(Linear& linear, const std::string& path, const LoraSpec& spec, const Array& key,
              std::vector<AdaptedMatrix>& matrices) {
  const WeightAxes axes = axes_of(linear);
  const bool is_head =
      std::any_of(axes.out.begin(), axes.out.end(), [](const Axis& a) { return a.name == "vocab"; });
  if (linear.fused.parts.empty()) linear.fused.parts = {{last_component(path), 1}};
  const Axis rank{kRankAxis, spec.rank};
  std::vector<Axis> copies = axes.copies;
  if (spec.adapters > 0) copies.push_back({kAdaptersAxis, spec.adapters});
  double fan_in = 1;
  for (const Axis& a : axes.in) fan_in *= static_cast<double>(a.size);
  const double bound = 1 / std::sqrt(fan_in);
  for (const Fused::Part& part : linear.fused.parts) {
    AdaptedMatrix matrix{path, part.name};
    matrix.has_adapter = spec.wants(matrix.path(), part.name, is_head);
    matrices.push_back(matrix);
    if (!matrix.has_adapter) continue;
    std::vector<Axis> out = axes.out;
    for (Axis& a : out)
      if (a.name == linear.fused.axis) a.size = part.count;
    LowRank p;
    p.name = part.name;
    p.scale = spec.scale;
    const Array k = key_of_path(key, adapter_path(path, part.name, 'a'));
    p.a = (random_uniform(k, copies + axes.in + std::vector{rank}) * 2.0 - 1.0) * bound;
    p.b = zeros(copies + std::vector{rank} + out);
    linear.lora.push_back(std::move(p));
  }
}

Array merged_weight(const Linear& linear) {
  const Array whole = cast(linear.weight, DType::f32);
  std::vector<int64_t> counts;
  for (const Fused::Part& part : linear.fused.parts) counts.push_back(part.count);
  const bool is_fused = !linear.fused.axis.empty();
  std::vector<Array> parts = is_fused ? split(whole, linear.fused.axis, counts) : std::vector{whole};
  for (size_t i = 0; i < parts.size(); ++i)
    for (const LowRank& p : linear.lora) {
      if (p.name != linear.fused.parts[i].name) continue;
      const Array product = dot(cast(p.a, DType::f32), cast(p.b, DType::f32), kRankAxis);
      parts[i] = parts[i] + broadcast_to(product, parts[i].shape().axes) * p.scale;
    }
  return is_fused ? concat(parts, linear.fused.axis) : parts[0];
}

}  // namespace ostro::nn
