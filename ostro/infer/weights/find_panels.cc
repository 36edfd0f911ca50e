// find_panels: which parameters of a model are best held in panels.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ostro/infer/traced.h"
#include "ostro/infer/weights/readers.h"
#include "ostro/infer/weights/weight_panels.h"
#include "ostro/nn/adapter_of_row.h"
#include "ostro/nn/linear.h"
#include "ostro/trace/ops.h"

namespace ostro::infer {
namespace {

// The panels that serve this reader of the weight best; nothing if it is no such product.
std::optional<WeightPanels> panels_of(const ir::Block& body, const ir::Op& op, ir::ValueId weight,
                                      const runtime::Engine& engine) {
  if (!is_product_with(body, op, weight)) return std::nullopt;
  const ir::Shape& shape = body.shape(weight);
  WeightPanels out{op.attrs.strs("over"), "", engine.panel_columns(shape.dtype)};
  for (const ir::Axis& axis : shape.axes)
    if (std::ranges::count(out.over, axis.name) == 0) out.axis = axis.name;
  const bool fits = out.columns > 0 && !out.axis.empty() && shape.size_of(out.axis) % out.columns == 0;
  return fits ? std::optional(out) : std::nullopt;
}

// The panels in which all that reads this input finds it; nothing if there are none.
std::optional<WeightPanels> common_panels(const ir::Block& body, size_t input,
                                          const runtime::Engine& engine) {
  std::optional<WeightPanels> out;
  for (const Reader& reader : all_readers_of(body, body.params[input])) {
    const auto one = panels_of(body, body.ops[reader.op], reader.value, engine);
    if (!one || (out && *out != *one)) return std::nullopt;
    out = one;
  }
  return out;
}

// All parts of a model, one layer of each kind: which weights they read, and how.
struct AllParts {
  const models::LayerFunctions& f;
  std::vector<int64_t> layers;  // the first of each kind
  std::vector<models::WeightRead> reads;

  explicit AllParts(const models::LayerFunctions& functions) : f(functions) {
    const auto add = [&](const std::vector<models::WeightRead>& more) {
      reads.insert(reads.end(), more.begin(), more.end());
    };
    reads.push_back({.parameter = f.embedding});
    add(f.embed_reads);
    std::set<int64_t> kinds;
    for (size_t layer = 0; layer < f.kind.size(); ++layer) {
      if (!kinds.insert(f.kind[layer]).second) continue;
      layers.push_back(static_cast<int64_t>(layer));
      add(f.attention_reads[layer]);
      add(f.chosen_reads[layer]);
    }
    add(f.norm_reads);
    add(f.head_reads);
  }

  // `in`: the reads, then tokens, positions, start.
  Arrays trace(const Arrays& in) const {
    const nn::AdapterOfRow none{Array()};
    auto next = in.begin();
    const auto take = [&](size_t count) {
      const Arrays out(next, next + static_cast<int64_t>(count));
      next += static_cast<int64_t>(count);
      return out;
    };
    const Array &tokens = in[reads.size()], &positions = in[reads.size() + 1], &start = in[reads.size() + 2];
    const Array table = take(1)[0];
    Array x = f.embed(table, take(f.embed_reads.size()), tokens, positions);
    for (const int64_t layer : layers) {
      const Arrays attention = take(f.attention_reads[static_cast<size_t>(layer)].size());
      const Arrays chosen = take(f.chosen_reads[static_cast<size_t>(layer)].size());
      const Arrays qkv = f.project(layer, attention, tokens, x, positions);
      const Array attended = f.attend(layer, attention, qkv[0], rename(qkv[1], "pos", "key_pos"),
                                      rename(qkv[2], "pos", "key_pos"), start);
      x = f.chosen(layer, chosen, f.after_attention(layer, attention, x, attended));
    }
    const Arrays norm = take(f.norm_reads.size());
    return {f.normed(norm, x), f.head(take(f.head_reads.size()), x)};
  }
};

// Layers of one kind share their programs, also where each has parameters of its own. Pairs of parameters
// that stand at one place: in the first layer of a kind, and in another one.
std::vector<std::pair<size_t, size_t>> at_one_place(const models::LayerFunctions& f) {
  std::vector<std::pair<size_t, size_t>> out;
  std::map<int64_t, size_t> first_of;
  for (size_t layer = 0; layer < f.kind.size(); ++layer) {
    const size_t first = first_of.try_emplace(f.kind[layer], layer).first->second;
    for (const auto* reads : {&f.attention_reads, &f.chosen_reads})
      for (size_t i = 0; i < (*reads)[layer].size(); ++i)
        out.emplace_back((*reads)[first][i].parameter, (*reads)[layer][i].parameter);
  }
  return out;
}

}  // namespace

Result<std::vector<std::optional<WeightPanels>>> find_panels(const models::LayerFunctions& layers,
                                                             const std::vector<ir::Shape>& parameters,
                                                             std::vector<bool> may_move,
                                                             const runtime::Engine& engine) {
  std::vector<std::optional<WeightPanels>> out(parameters.size());
  if (engine.panel_columns(ir::DType::bf16) == 0 && engine.panel_columns(ir::DType::f32) == 0) return out;
  // Programs of these parts read weights in order.
  may_move[layers.embedding] = false;
  for (const auto* reads : {&layers.embed_reads, &layers.norm_reads})
    for (const models::WeightRead& read : *reads) may_move[read.parameter] = false;
  const AllParts parts(layers);
  std::vector<ir::Shape> inputs;
  for (const models::WeightRead& read : parts.reads) {
    inputs.push_back(parameters[read.parameter]);
    if (read.layer >= 0) inputs.back().axes.erase(inputs.back().axes.begin());
  }
  inputs.push_back({ir::DType::i32, {{"batch", 1}, {"pos", 1}}});
  inputs.push_back({ir::DType::i32, {{"pos", 1}}});
  inputs.push_back({ir::DType::i32, {{"batch", 1}}});
  ASSIGN_OR_RETURN(const ir::Program p,
                   traced("reads", inputs, {}, [&](const Arrays& in) { return parts.trace(in); }));
  std::vector<bool> seen(parameters.size());
  for (size_t i = 0; i < parts.reads.size(); ++i) {
    const size_t k = parts.reads[i].parameter;
    const bool whole_stack = parts.reads[i].layer < 0 && parameters[k].find(nn::kLayersAxis) == 0;
    std::optional<WeightPanels> panels;
    if (may_move[k] && !whole_stack) panels = common_panels(p.body, i, engine);
    if (!seen[k]) out[k] = panels;
    if (seen[k] && out[k] != panels) out[k].reset();
    seen[k] = true;
  }
  const auto pairs = at_one_place(layers);
  for (const auto& [first, other] : pairs)
    if (!seen[other] && may_move[other]) out[other] = out[first];
  // All at one place, or none of them: until nothing changes, for a parameter may stand at several places.
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [first, other] : pairs) {
      if (out[first] == out[other]) continue;
      out[first].reset();
      out[other].reset();
      changed = true;
    }
  }
  return out;
}

}  // namespace ostro::infer
