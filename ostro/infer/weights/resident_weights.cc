#include "ostro/infer/weights/resident_weights.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/machine.h"
#include "ostro/numerics/arrays.h"

namespace ostro::infer {

using runtime::Buffer;

Result<Buffer> as_read(const models::LayerFunctions& layers, size_t k, Buffer value) {
  if (layers.dtype != ir::DType::bf16 || layers.read_in_f32[k] || layers.integers[k]) return value;
  return narrowed(std::move(value));
}

Result<Buffer> narrowed(Buffer value) {
  if (value.shape().dtype != ir::DType::f32) return value;
  ASSIGN_OR_RETURN(const Buffer wide, value.to_host());
  Buffer out = Buffer::empty(wide.shape().with_dtype(ir::DType::bf16));
  numerics::narrow(wide.as<float>(), out.mutable_bytes());
  return out;
}

Result<ResidentWeights> ResidentWeights::create(const models::LayerFunctions& layers,
                                                std::vector<Buffer> parameters, runtime::Engine& engine) {
  OSTRO_CHECK(parameters.size() == layers.read_in_f32.size(), "{} parameters, the model has {}",
              parameters.size(), layers.read_in_f32.size());
  ResidentWeights out;
  for (size_t k = 0; k < parameters.size(); ++k) {
    ASSIGN_OR_RETURN(parameters[k], as_read(layers, k, std::move(parameters[k])));
    ASSIGN_OR_RETURN(parameters[k], parameters[k].to(engine.memory()));
    out.shapes_.push_back(parameters[k].shape());
  }
  out.parameters_ = std::move(parameters);
  out.panels_.resize(out.parameters_.size());
  RETURN_IF_ERROR(out.cut_integers(layers, engine));
  RETURN_IF_ERROR(out.plan_panels(layers, engine));
  return out;
}

Status ResidentWeights::cut_integers(const models::LayerFunctions& layers, runtime::Engine& engine) {
  std::vector<std::vector<models::WeightRead>> all = layers.attention_reads;
  all.insert(all.end(), layers.chosen_reads.begin(), layers.chosen_reads.end());
  all.push_back(layers.head_reads);
  std::vector<int64_t> left(parameters_.size());  // layers of a parameter that are not cut yet
  for (const auto& reads : all)
    for (const models::WeightRead& read : reads) left[read.parameter] += cut_.try_emplace(read).second;
  std::erase_if(cut_, [&](const auto& one) { return !layers.integers[one.first.parameter]; });
  // Layers have the same few shapes; the size of blocks is that of the model.
  std::map<std::pair<std::string, std::vector<std::string>>, std::unique_ptr<runtime::Executable>> programs;
  for (auto& [read, made] : cut_) {
    const auto& how = *layers.integers[read.parameter];
    const ir::Shape of = shape(read);
    auto& program = programs[{of.str(), how.over}];
    if (program == nullptr) {
      ASSIGN_OR_RETURN(program, cut_program(engine, of, how.over, how.block));
    }
    ASSIGN_OR_RETURN(auto integers, program->run({part(read)}));
    made = {std::move(integers[0]), std::move(integers[1])};
    if (--left[read.parameter] > 0) continue;
    Buffer& held = parameters_[read.parameter];
    if (how.alone) {
      held = {};
    } else if (layers.dtype == ir::DType::bf16) {
      ASSIGN_OR_RETURN(held, narrowed(std::move(held)));
      ASSIGN_OR_RETURN(held, held.to(engine.memory()));
    }
  }
  return {};
}

Status ResidentWeights::plan_panels(const models::LayerFunctions& layers, runtime::Engine& engine) {
  std::vector<ir::Shape> held;
  std::vector<bool> may_move;
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const Buffer& all = parameters_[k];
    held.push_back(all.valid() ? all.shape() : shapes_[k]);
    may_move.push_back(all.valid() && all.unique() && all.on_host());
  }
  ASSIGN_OR_RETURN(panels_, find_panels(layers, held, may_move, engine));
  const auto has = [&](size_t k, bool borrowed) {
    return panels_[k] && parameters_[k].block().is_borrowed() == borrowed;
  };
  for (size_t k = 0; k < parameters_.size(); ++k)
    if (has(k, true)) return {};
  const auto threads = default_threads();
  for (size_t k = 0; k < parameters_.size(); ++k) {
    if (!has(k, false)) continue;
    parameters_[k] = in_panels(parameters_[k], *panels_[k], threads.ok() ? *threads : 1);
    is_in_panels_ = true;
  }
  return {};
}

int64_t ResidentWeights::bytes_to_move() const {
  int64_t bytes = 0;
  for (size_t k = 0; k < parameters_.size(); ++k)
    if (panels_[k]) bytes += parameters_[k].shape().bytes();
  return bytes;
}

bool ResidentWeights::may_move() const {
  return !is_in_panels_ &&
         std::ranges::any_of(panels_, [](const auto& panels) { return panels.has_value(); });
}

std::vector<Buffer> ResidentWeights::moved(const std::stop_token& stop) const {
  std::vector<Buffer> out(parameters_.size());
  for (size_t k = 0; k < out.size(); ++k) {
    if (!panels_[k]) continue;
    out[k] = in_panels(parameters_[k], *panels_[k], 1, stop);
    if (!out[k].valid()) return {};
  }
  return out;
}

void ResidentWeights::take(std::vector<Buffer> moved) {
  for (size_t k = 0; k < moved.size(); ++k)
    if (moved[k].valid()) parameters_[k] = std::move(moved[k]);
  is_in_panels_ = true;
}

ir::Shape ResidentWeights::shape(const models::WeightRead& read) const {
  ir::Shape out = shapes_[read.parameter];
  if (read.layer >= 0) out.axes.erase(out.axes.begin());
  return out;
}

Buffer ResidentWeights::part(const models::WeightRead& read) const {
  const Buffer& all = parameters_[read.parameter];
  ir::Shape of = shape(read).with_dtype(all.shape().dtype);
  if (const auto& in = panels(read); in && is_in_panels_) of = in->held(of);
  return (read.layer < 0 ? all : all.rows(read.layer, 1)).with_shape(of);
}

std::vector<Buffer> ResidentWeights::whole(std::span<const models::WeightRead> reads) const {
  std::vector<Buffer> out;
  for (const models::WeightRead& read : reads)
    out.push_back(parameters_[read.parameter].valid() ? part(read) : cut_.at(read).q);
  return out;
}

}  // namespace ostro::infer
