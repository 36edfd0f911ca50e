#include "ostro/ir/program/builder.h"

#include "ostro/base/check.h"
#include "ostro/ir/program/op_table.h"

namespace ostro::ir {

Result<std::vector<ValueId>> Builder::try_add(OpKind kind, std::vector<ValueId> operands, Attrs attrs,
                                              std::vector<Block> regions) {
  Op op{kind, std::move(operands), {}, std::move(attrs), std::move(regions), scope_, "", location_};
  std::vector<Shape> in;
  in.reserve(op.operands.size());
  for (ValueId v : op.operands) in.push_back(block_->shape(v));
  ASSIGN_OR_RETURN(std::vector<Shape> out, infer_shapes(op, in));
  for (Shape& s : out) op.results.push_back(block_->add_value(std::move(s)));
  std::vector<ValueId> results = op.results;
  block_->ops.push_back(std::move(op));
  return results;
}

std::vector<ValueId> Builder::add_n(OpKind kind, std::vector<ValueId> operands, Attrs attrs,
                                    std::vector<Block> regions) {
  return try_add(kind, std::move(operands), std::move(attrs), std::move(regions)).value();
}

Attrs shape_attrs(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  for (const Axis& a : axes) {
    names.push_back(a.name);
    sizes.push_back(a.size);
  }
  return Attrs{{"axes", names}, {"sizes", sizes}};
}

ValueId Builder::splat(double value, const Shape& shape) {
  Attrs attrs = shape_attrs(shape.axes);
  attrs.set("dtype", std::string(dtype_name(shape.dtype)));
  attrs.set("value", value);
  return add(OpKind::constant, {}, std::move(attrs));
}

ValueId Builder::i64_scalar(int64_t value) { return splat(static_cast<double>(value), scalar(DType::i64)); }

ValueId Builder::cast(ValueId x, DType dtype) {
  if (shape(x).dtype == dtype) return x;
  return add(OpKind::cast, {x}, {{"dtype", std::string(dtype_name(dtype))}});
}

ValueId Builder::broadcast(ValueId x, const std::vector<Axis>& axes) {
  if (shape(x).axes == axes) return x;
  return add(OpKind::broadcast, {x}, shape_attrs(axes));
}

ValueId Builder::transpose(ValueId x, const std::vector<std::string>& order) {
  if (shape(x).names() == order) return x;
  return add(OpKind::transpose, {x}, {{"axes", order}});
}

ValueId Builder::sum(ValueId x, const std::vector<std::string>& axes, const std::string& order) {
  return add(OpKind::sum, {x}, {{"axes", axes}, {"order", order}});
}

ValueId Builder::dot(ValueId a, ValueId b, const std::vector<std::string>& over, DType dtype) {
  return add(OpKind::dot, {a, b}, {{"over", over}, {"dtype", std::string(dtype_name(dtype))}});
}

ValueId Builder::rename(ValueId x, const std::vector<std::string>& from, const std::vector<std::string>& to) {
  if (from == to) return x;
  return add(OpKind::rename, {x}, {{"from", from}, {"to", to}});
}

void append_copy(Block& to, const Block& from, const Op& op, std::vector<ValueId>& ids) {
  Op copy = op;
  for (ValueId& v : copy.operands) v = ids[static_cast<size_t>(v)];
  for (ValueId& v : copy.results) {
    const ValueId fresh = to.add_value(from.shape(v));
    ValueId& id = ids[static_cast<size_t>(v)];
    if (id < 0) id = fresh;
    v = fresh;
  }
  to.ops.push_back(std::move(copy));
}

std::vector<ValueId> inline_block(Builder& builder, const Block& block, const std::vector<ValueId>& args,
                                  std::vector<ValueId>* map) {
  OSTRO_CHECK(args.size() == block.params.size(), "inlining a block of {} parameters with {} arguments",
              block.params.size(), args.size());
  std::vector<ValueId> ids(block.values.size(), -1);
  for (size_t i = 0; i < args.size(); ++i) ids[static_cast<size_t>(block.params[i])] = args[i];
  for (const Op& op : block.ops) append_copy(builder.block(), block, op, ids);
  std::vector<ValueId> results;
  for (ValueId v : block.results) results.push_back(ids[static_cast<size_t>(v)]);
  if (map != nullptr) *map = std::move(ids);
  return results;
}

}  // namespace ostro::ir
