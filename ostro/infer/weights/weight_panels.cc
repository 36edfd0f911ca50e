// WeightPanels, take_panels: the shape of a weight in panels, and programs that read it.
#include "ostro/infer/weights/weight_panels.h"

#include <algorithm>
#include <map>

#include "ostro/infer/weights/readers.h"
#include "ostro/nn/linear.h"

namespace ostro::infer {

ir::Shape WeightPanels::held(const ir::Shape& weight) const {
  ir::Shape out{weight.dtype, {}};
  if (weight.find(nn::kLayersAxis) == 0) out.axes.push_back(weight.axes[0]);
  for (const ir::Axis& a : weight.axes)
    if (a.name != axis && a.name != nn::kLayersAxis && std::ranges::count(over, a.name) == 0)
      out.axes.push_back(a);
  out.axes.push_back({kPanelAxis, weight.size_of(axis) / columns});
  for (const std::string& name : over) out.axes.push_back({name, weight.size_of(name)});
  out.axes.push_back({axis, columns});
  return out;
}

void take_panels(ir::Program& p, size_t input, const WeightPanels& panels) {
  ir::Block& body = p.body;
  const ir::ValueId param = body.params[input];
  const ir::Shape whole = body.shape(param), held = panels.held(whole);
  const auto merge = [&](ir::ValueId apart, ir::ValueId whole_again) {
    ir::Op op{.kind = ir::OpKind::merge_axes, .operands = {apart}, .results = {whole_again}};
    op.attrs = {{"axes", std::vector<std::string>{kPanelAxis, panels.axis}}, {"axis", panels.axis}};
    return op;
  };
  // In front, for those that need it: the weight in order.
  std::vector<ir::Op> ops;
  ir::ValueId in_order = -1;
  const auto make_in_order = [&] {
    if (in_order >= 0) return;
    ir::Shape apart{whole.dtype, {}};
    for (const ir::Axis& a : whole.axes) {
      if (a.name == panels.axis) apart.axes.push_back({kPanelAxis, held.size_of(kPanelAxis)});
      apart.axes.push_back({a.name, held.size_of(a.name)});
    }
    const ir::ValueId moved = body.add_value(apart);
    in_order = body.add_value(whole);
    ops.push_back({ir::OpKind::transpose, {param}, {moved}, {{"axes", apart.names()}}, {}, {}, {}, {}});
    ops.push_back(merge(moved, in_order));
  };
  std::map<size_t, ir::Op> merged;  // behind these products
  for (const Reader& reader : all_readers_of(body, param)) {
    ir::Op& op = body.ops[reader.op];
    if (!is_product_with(body, op, reader.value) || op.attrs.strs("over") != panels.over) {
      make_in_order();
      std::ranges::replace(op.operands, reader.value, in_order);
      continue;
    }
    ir::Shape apart = body.shape(op.results[0]);
    const auto at = apart.axes.begin() + apart.find(panels.axis);
    at->size = panels.columns;
    apart.axes.insert(at, {kPanelAxis, held.size_of(kPanelAxis)});
    const ir::ValueId product = body.add_value(apart);
    ir::Op& last = merged[reader.op] = merge(product, op.results[0]);
    last.scope = op.scope;
    last.location = op.location;
    op.results = {product};
  }
  for (const ir::ValueId same : plain_uses_of(body, param)) body.values[static_cast<size_t>(same)] = held;
  body.values[static_cast<size_t>(param)] = held;
  for (size_t i = 0; i < body.ops.size(); ++i) {
    ops.push_back(std::move(body.ops[i]));
    if (const auto found = merged.find(i); found != merged.end()) ops.push_back(std::move(found->second));
  }
  body.ops = std::move(ops);
}

}  // namespace ostro::infer
