// The shape and dtype rule of every op.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ostro/ir/op_table.h"

namespace ostro::ir {
namespace {

using Shapes = Result<std::vector<Shape>>;
using In = std::span<const Shape>;

Error fail(const Op& op, const std::string& text) {
  return invalid_argument(fmt::format("{}: {}", op_name(op.kind), text));
}

bool is_float_arith(OpKind k) { return (k >= OpKind::exp && k <= OpKind::floor); }

// f32 for f32 and bf16 operands (bf16 is a storage type: read exactly, computed in f32), f64 for f64.
Result<DType> arithmetic_dtype(const Op& op, In in) {
  bool f64 = false, f32 = false;
  for (const Shape& s : in) {
    f64 |= s.dtype == DType::f64;
    f32 |= s.dtype == DType::f32 || s.dtype == DType::bf16;
  }
  if (f64 && f32)
    return fail(op,
                fmt::format("mixes f64 and {}; cast one",
                            in[0].dtype == DType::f64 ? dtype_name(in[1].dtype) : dtype_name(in[0].dtype)));
  if (f64 || f32) {
    for (const Shape& s : in)
      if (!is_floating(s.dtype))
        return fail(
            op, fmt::format("mixes {} and {}; cast one", dtype_name(in[0].dtype), dtype_name(in[1].dtype)));
    return f64 ? DType::f64 : DType::f32;
  }
  for (const Shape& s : in)
    if (s.dtype != in[0].dtype)
      return fail(op, fmt::format("mixes {} and {}; cast one", dtype_name(in[0].dtype), dtype_name(s.dtype)));
  return in[0].dtype;
}

Status same_axes(const Op& op, In in) {
  for (const Shape& s : in)
    if (s.axes != in[0].axes)
      return fail(op, fmt::format("operands have axes {} and {}; broadcast one", in[0].str(), s.str()));
  return Status();
}

Result<Shape> shape_from_attrs(const Op& op, DType dtype) {
  const auto& axes = op.attrs.strs("axes");
  const auto& sizes = op.attrs.ints("sizes");
  if (axes.size() != sizes.size()) return fail(op, "axes and sizes differ in length");
  Shape s{dtype, {}};
  for (size_t i = 0; i < axes.size(); ++i) {
    if (s.has(axes[i])) return fail(op, fmt::format("axis \"{}\" appears twice", axes[i]));
    if (sizes[i] < 0) return fail(op, fmt::format("axis \"{}\" has size {}", axes[i], sizes[i]));
    s.axes.push_back({axes[i], sizes[i]});
  }
  return s;
}

Result<int64_t> need_axis(const Op& op, const Shape& s, const std::string& axis) {
  const int64_t i = s.find(axis);
  if (i < 0) return fail(op, fmt::format("no axis \"{}\" in {}", axis, s.str()));
  return i;
}

Shapes elementwise(const Op& op, In in) {
  RETURN_IF_ERROR(same_axes(op, in));
  const OpKind k = op.kind;
  Shape out = in[0];
  if (k == OpKind::cast || k == OpKind::use) {
    const auto d = parse_dtype(op.attrs.str("dtype"));
    if (!d) return fail(op, fmt::format("unknown dtype \"{}\"", op.attrs.str("dtype")));
    if (k == OpKind::use && (in[0].dtype != DType::f32 && in[0].dtype != *d))
      return fail(op, "reads f32 parameters");
    return std::vector<Shape>{out.with_dtype(*d)};
  }
  if (k == OpKind::select) {
    if (in[0].dtype != DType::boolean)
      return fail(op, fmt::format("condition is {}, not bool", dtype_name(in[0].dtype)));
    if (in[1].dtype == DType::boolean && in[2].dtype == DType::boolean) return std::vector<Shape>{out};
    if (in[1].dtype == DType::bf16 && in[2].dtype == DType::bf16)
      return std::vector<Shape>{out.with_dtype(DType::bf16)};
    ASSIGN_OR_RETURN(DType d, arithmetic_dtype(op, in.subspan(1)));
    return std::vector<Shape>{out.with_dtype(d)};
  }
  if (k == OpKind::logical_not) {
    if (in[0].dtype != DType::boolean) return fail(op, "needs bool");
    return std::vector<Shape>{out};
  }
  if (k == OpKind::is_finite) {
    if (!is_floating(in[0].dtype)) return fail(op, "needs a floating type");
    return std::vector<Shape>{out.with_dtype(DType::boolean)};
  }
  if (k >= OpKind::eq && k <= OpKind::ge) {
    if (in[0].dtype == DType::boolean && in[1].dtype == DType::boolean &&
        (k == OpKind::eq || k == OpKind::ne))
      return std::vector<Shape>{out};
    ASSIGN_OR_RETURN(DType d, arithmetic_dtype(op, in));
    if (d == DType::boolean) return fail(op, "bool has no order");
    return std::vector<Shape>{out.with_dtype(DType::boolean)};
  }
  ASSIGN_OR_RETURN(DType d, arithmetic_dtype(op, in));
  const bool bitwise = k >= OpKind::bit_and && k <= OpKind::shr;
  if (bitwise) {
    const bool logical = k <= OpKind::bit_xor && d == DType::boolean;
    if (!is_integer(d) && !logical) return fail(op, fmt::format("needs integers, not {}", dtype_name(d)));
  } else if (d == DType::boolean) {
    return fail(op, "no arithmetic on bool; cast it");
  }
  if (k == OpKind::rem && !is_integer(d)) return fail(op, "needs integers");
  if (is_float_arith(k) && !is_floating(d))
    return fail(op, fmt::format("needs a floating type, not {}", dtype_name(d)));
  if (is_float_arith(k) && d == DType::f64 && k != OpKind::sqrt)
    return fail(op, "is defined for f32 and bf16");
  return std::vector<Shape>{out.with_dtype(d)};
}

Shapes broadcast(const Op& op, In in) {
  ASSIGN_OR_RETURN(Shape out, shape_from_attrs(op, in[0].dtype));
  for (const Axis& a : in[0].axes) {
    const int64_t i = out.find(a.name);
    if (i < 0) return fail(op, fmt::format("axis \"{}\" of {} is not in the result", a.name, in[0].str()));
    if (out.axes[static_cast<size_t>(i)].size != a.size)
      return fail(op, fmt::format("axis \"{}\" is {} in the operand but {} in the result", a.name, a.size,
                                  out.axes[static_cast<size_t>(i)].size));
  }
  return std::vector<Shape>{out};
}

Shapes layout(const Op& op, In in) {
  const Shape& x = in[0];
  Shape out = x;
  switch (op.kind) {
    case OpKind::transpose: {
      const auto& axes = op.attrs.strs("axes");
      if (std::multiset<std::string>(axes.begin(), axes.end()) != [&] {
            auto n = x.names();
            return std::multiset<std::string>(n.begin(), n.end());
          }())
        return fail(op, fmt::format("[{}] is not an order of {}", fmt::join(axes, ", "), x.str()));
      out.axes.clear();
      for (const auto& a : axes) out.axes.push_back({a, x.size_of(a)});
      return std::vector<Shape>{out};
    }
    case OpKind::rename: {
      const auto& from = op.attrs.strs("from");
      const auto& to = op.attrs.strs("to");
      if (from.size() != to.size()) return fail(op, "from and to differ in length");
      for (size_t i = 0; i < from.size(); ++i) {
        ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, from[i]));
        out.axes[static_cast<size_t>(at)].name = to[i];
      }
      break;
    }
    case OpKind::split_axis: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, op.attrs.str("axis")));
      ASSIGN_OR_RETURN(Shape parts, shape_from_attrs(op, x.dtype));
      if (parts.count() != x.axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("axis \"{}\" has size {}, its parts {} make {}", op.attrs.str("axis"),
                                    x.axes[static_cast<size_t>(at)].size, parts.str(), parts.count()));
      out.axes.erase(out.axes.begin() + at);
      out.axes.insert(out.axes.begin() + at, parts.axes.begin(), parts.axes.end());
      break;
    }
    case OpKind::merge_axes: {
      const auto& axes = op.attrs.strs("axes");
      if (axes.empty()) return fail(op, "no axes to merge");
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, axes[0]));
      int64_t size = 1;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (x.find(axes[i]) != at + static_cast<int64_t>(i))
          return fail(op, fmt::format("axes [{}] are not neighbours in this order in {}; transpose first",
                                      fmt::join(axes, ", "), x.str()));
        size *= x.size_of(axes[i]);
      }
      out.axes.erase(out.axes.begin() + at, out.axes.begin() + at + static_cast<int64_t>(axes.size()));
      out.axes.insert(out.axes.begin() + at, Axis{op.attrs.str("axis"), size});
      break;
    }
    case OpKind::slice: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, op.attrs.str("axis")));
      const int64_t start = op.attrs.i64("start"), size = op.attrs.i64("size"),
                    stride = op.attrs.i64("stride", 1);
      Axis& a = out.axes[static_cast<size_t>(at)];
      if (start < 0 || size < 0 || stride < 1 || (size > 0 && start + (size - 1) * stride >= a.size))
        return fail(op, fmt::format("start {} size {} stride {} is outside axis \"{}\" of size {}", start,
                                    size, stride, a.name, a.size));
      a.size = size;
      return std::vector<Shape>{out};
    }
    case OpKind::pad: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, op.attrs.str("axis")));
      const int64_t low = op.attrs.i64("low"), high = op.attrs.i64("high");
      if (low < 0 || high < 0) return fail(op, "negative padding; slice instead");
      out.axes[static_cast<size_t>(at)].size += low + high;
      return std::vector<Shape>{out};
    }
    case OpKind::concat: {
      const auto& axis = op.attrs.str("axis");
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, axis));
      for (size_t i = 1; i < in.size(); ++i) {
        Shape a = in[i], b = out;
        ASSIGN_OR_RETURN(int64_t other, need_axis(op, a, axis));
        const int64_t add = a.axes[static_cast<size_t>(other)].size;
        a.axes[static_cast<size_t>(other)].size = b.axes[static_cast<size_t>(at)].size = 0;
        if (a != b)
          return fail(op,
                      fmt::format("{} and {} differ besides axis \"{}\"", in[0].str(), in[i].str(), axis));
        out.axes[static_cast<size_t>(at)].size += add;
      }
      return std::vector<Shape>{out};
    }
    case OpKind::split: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, op.attrs.str("axis")));
      std::vector<Shape> parts;
      int64_t total = 0;
      for (int64_t size : op.attrs.ints("sizes")) {
        out.axes[static_cast<size_t>(at)].size = size;
        total += size;
        parts.push_back(out);
      }
      if (total != x.axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("sizes make {}, axis \"{}\" has {}", total, op.attrs.str("axis"),
                                    x.axes[static_cast<size_t>(at)].size));
      return parts;
    }
    case OpKind::stack: {
      for (const Shape& s : in)
        if (s != x) return fail(op, fmt::format("{} and {} differ", x.str(), s.str()));
      const int64_t position = op.attrs.i64("position");
      if (position < 0 || position > x.rank())
        return fail(op, fmt::format("position {} in {}", position, x.str()));
      out.axes.insert(out.axes.begin() + position,
                      Axis{op.attrs.str("axis"), static_cast<int64_t>(in.size())});
      break;
    }
    case OpKind::unstack: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, op.attrs.str("axis")));
      return std::vector<Shape>(static_cast<size_t>(x.axes[static_cast<size_t>(at)].size),
                                x.without(op.attrs.str("axis")));
    }
    case OpKind::reverse: {
      RETURN_IF_ERROR(need_axis(op, x, op.attrs.str("axis")));
      return std::vector<Shape>{out};
    }
    default:
      return fail(op, "is not a layout op");
  }
  std::set<std::string> seen;
  for (const Axis& a : out.axes)
    if (!seen.insert(a.name).second)
      return fail(op, fmt::format("axis \"{}\" would appear twice in {}", a.name, out.str()));
  return std::vector<Shape>{out};
}

Shapes reduction(const Op& op, In in) {
  Shape out = in[0];
  const bool one_axis = op.kind == OpKind::argmax;
  const std::vector<std::string> axes =
      one_axis ? std::vector<std::string>{op.attrs.str("axis")} : op.attrs.strs("axes");
  for (const auto& a : axes) {
    if (!out.has(a)) return fail(op, fmt::format("no axis \"{}\" in {}", a, in[0].str()));
    out = out.without(a);
  }
  if (op.kind == OpKind::argmax) return std::vector<Shape>{out.with_dtype(DType::i32)};
  if (op.kind == OpKind::sum) {
    const std::string order = op.attrs.str("order", "striped");
    if (order != "striped" && order != "serial")
      return fail(op, fmt::format("order \"{}\"; use striped or serial", order));
    const std::string acc = op.attrs.str("acc", "f32");
    if (acc != "f32" && acc != "f64") return fail(op, fmt::format("acc \"{}\"; use f32 or f64", acc));
    if (is_integer(in[0].dtype)) return std::vector<Shape>{out};
    if (!is_floating(in[0].dtype)) return fail(op, "no sum of bool; cast it");
    if (in[0].dtype == DType::f64 && acc != "f64") return fail(op, "a sum of f64 has acc f64");
    return std::vector<Shape>{out.with_dtype(acc == "f64" ? DType::f64 : DType::f32)};
  }
  if (op.kind == OpKind::tree_sum) {
    if (in[0].dtype != DType::f32 && in[0].dtype != DType::f64) return fail(op, "needs f32 or f64");
    return std::vector<Shape>{out};
  }
  if (in[0].dtype == DType::boolean) return fail(op, "no order on bool; cast it");
  return std::vector<Shape>{out.with_dtype(in[0].dtype == DType::bf16 ? DType::f32 : in[0].dtype)};
}

Shapes dot(const Op& op, In in) {
  const Shape &a = in[0], &b = in[1];
  if (a.dtype != b.dtype || (a.dtype != DType::f32 && a.dtype != DType::bf16))
    return fail(op, fmt::format("operands are {} and {}; both must be f32 or both bf16: cast one",
                                dtype_name(a.dtype), dtype_name(b.dtype)));
  const auto& over = op.attrs.strs("over");
  const auto d = parse_dtype(op.attrs.str("dtype", "f32"));
  if (!d || (*d != DType::f32 && *d != DType::bf16) || (*d == DType::bf16 && a.dtype == DType::f32))
    return fail(op, "gives f32, or bf16 from bf16 operands");
  const std::set<std::string> contracted(over.begin(), over.end());
  for (const auto& n : over)
    if (!a.has(n) || !b.has(n))
      return fail(op, fmt::format("no axis \"{}\" in {}", n, a.has(n) ? b.str() : a.str()));
  for (const Axis& x : a.axes)
    if (b.has(x.name) && b.size_of(x.name) != x.size)
      return fail(op, fmt::format("axis \"{}\" is {} in {} but {} in {}", x.name, x.size, a.str(),
                                  b.size_of(x.name), b.str()));
  Shape out{*d, {}};
  for (const Axis& x : a.axes)
    if (!contracted.count(x.name)) out.axes.push_back(x);
  for (const Axis& x : b.axes)
    if (!contracted.count(x.name) && !a.has(x.name)) out.axes.push_back(x);
  return std::vector<Shape>{out};
}

Shapes gather(const Op& op, In in) {
  const Shape &table = in[0], &index = in[1];
  const auto& axis = op.attrs.str("axis");
  RETURN_IF_ERROR(need_axis(op, table, axis));
  if (index.dtype != DType::i32)
    return fail(op, fmt::format("index is {}, not i32", dtype_name(index.dtype)));
  if (index.has(axis))
    return fail(op, fmt::format("index {} has the gathered axis \"{}\"; rename it", index.str(), axis));
  Shape out{table.dtype, index.axes};
  for (const Axis& a : table.axes) {
    if (a.name == axis) continue;
    if (!index.has(a.name))
      out.axes.push_back(a);
    else if (index.size_of(a.name) != a.size)
      return fail(op, fmt::format("axis \"{}\" is {} in the table but {} in the index", a.name, a.size,
                                  index.size_of(a.name)));
  }
  return std::vector<Shape>{out};
}

Shapes scatter_add(const Op& op, In in) {
  const Shape &update = in[0], &index = in[1];
  if (!is_floating(update.dtype) || update.dtype == DType::f64) return fail(op, "update must be f32 or bf16");
  if (index.dtype != DType::i32)
    return fail(op, fmt::format("index is {}, not i32", dtype_name(index.dtype)));
  // Axes of index that the table shares ("batch" attr) stay; the rest of index is summed over.
  const std::vector<std::string> batch =
      op.attrs.has("batch") ? op.attrs.strs("batch") : std::vector<std::string>{};
  Shape out{DType::f32, {}};
  for (const Axis& a : update.axes)
    if (!index.has(a.name) || std::find(batch.begin(), batch.end(), a.name) != batch.end())
      out.axes.push_back(a);
  for (const Axis& a : index.axes)
    if (!update.has(a.name) || update.size_of(a.name) != a.size)
      return fail(
          op, fmt::format("axis \"{}\" of index {} is not in update {}", a.name, index.str(), update.str()));
  const int64_t position = op.attrs.i64("position");
  if (position < 0 || position > out.rank())
    return fail(op, fmt::format("position {} in {}", position, out.str()));
  out.axes.insert(out.axes.begin() + position, Axis{op.attrs.str("axis"), op.attrs.i64("size")});
  return std::vector<Shape>{out};
}

// q [.., pos, .., head_dim], k and v [.., key_pos, .., head_dim]; attrs name the axes: "query", "key",
// "head_dim".
Shapes attention(const Op& op, In in) {
  const Shape &q = in[0], &k = in[1], &v = in[2];
  const auto &query = op.attrs.str("query"), &key = op.attrs.str("key"), &head = op.attrs.str("head_dim");
  for (const auto& n : {query, head})
    if (!q.has(n)) return fail(op, fmt::format("q {} has no axis \"{}\"", q.str(), n));
  for (const auto& n : {key, head})
    if (!k.has(n) || !v.has(n))
      return fail(op, fmt::format("k {} or v {} has no axis \"{}\"", k.str(), v.str(), n));
  if (k.axes != v.axes) return fail(op, fmt::format("k {} and v {} differ", k.str(), v.str()));
  if (q.dtype != k.dtype || q.dtype != v.dtype || (q.dtype != DType::f32 && q.dtype != DType::bf16))
    return fail(op, fmt::format("q, k, v are {}, {}, {}; all must be f32 or all bf16", dtype_name(q.dtype),
                                dtype_name(k.dtype), dtype_name(v.dtype)));
  for (const Axis& a : k.axes)
    if (a.name != key && (!q.has(a.name) || q.size_of(a.name) != a.size))
      return fail(
          op, fmt::format("axis \"{}\" of k {} is not in q {}; q may have more axes (head groups), k may not",
                          a.name, k.str(), q.str()));
  if (q.axes.back().name != head || k.axes.back().name != head)
    return fail(op,
                fmt::format("axis \"{}\" must be last in q {} and k {}; transpose", head, q.str(), k.str()));
  const Shape row = q.without(head).with_dtype(DType::f32);
  if (op.kind == OpKind::attention) return std::vector<Shape>{q, row, row};
  std::vector<Shape> out{q.with_dtype(DType::f32), k.with_dtype(DType::f32), v.with_dtype(DType::f32)};
  if (op.attrs.i64("sink", 0) != 0) out.push_back(in.back());
  return out;
}

Shapes cross_entropy(const Op& op, In in) {
  const auto& axis = op.attrs.str("axis");
  if (in[0].dtype != DType::f32) return fail(op, "logits must be f32");
  if (!in[0].has(axis) || in[0].axes.back().name != axis)
    return fail(op, fmt::format("axis \"{}\" must be last in logits {}", axis, in[0].str()));
  const Shape row = in[0].without(axis);
  if (in[1] != row.with_dtype(DType::i32))
    return fail(op, fmt::format("target {} does not fit logits {}", in[1].str(), in[0].str()));
  if (op.kind == OpKind::cross_entropy) return std::vector<Shape>{row, row, row, row};
  const auto d = parse_dtype(op.attrs.str("dtype", "f32"));
  if (!d || (*d != DType::f32 && *d != DType::bf16)) return fail(op, "gives f32 or bf16");
  return std::vector<Shape>{in[0].with_dtype(*d)};
}

Shapes regions(const Op& op, In in) {
  auto matches = [&](const Block& b, std::span<const Shape> args, const char* what) -> Status {
    if (b.params.size() != args.size())
      return fail(op, fmt::format("{} takes {} values, {} given", what, b.params.size(), args.size()));
    for (size_t i = 0; i < args.size(); ++i)
      if (b.shape(b.params[i]) != args[i])
        return fail(op, fmt::format("{}: parameter {} is {}, given {}", what, i, b.shape(b.params[i]).str(),
                                    args[i].str()));
    return Status();
  };
  auto results_of = [](const Block& b) {
    std::vector<Shape> s;
    for (ValueId v : b.results) s.push_back(b.shape(v));
    return s;
  };
  if (op.kind == OpKind::scan) {
    if (op.regions.size() != 1) return fail(op, "has one region");
    const Block& body = op.regions[0];
    const auto consts = static_cast<size_t>(op.attrs.i64("consts")),
               carries = static_cast<size_t>(op.attrs.i64("carries"));
    const auto& axis = op.attrs.str("axis");
    const int64_t length = op.attrs.i64("length");
    if (consts + carries > in.size()) return fail(op, "has fewer operands than consts and carries");
    std::vector<Shape> args(in.begin(), in.end());
    for (size_t i = consts + carries; i < in.size(); ++i) {
      if (in[i].axes.empty() || in[i].axes[0].name != axis || in[i].axes[0].size != length)
        return fail(op, fmt::format("{} is scanned over \"{}\" of {}: that axis must be its first",
                                    in[i].str(), axis, length));
      args[i] = in[i].without(axis);
    }
    RETURN_IF_ERROR(matches(body, args, "body"));
    std::vector<Shape> out = results_of(body);
    if (out.size() < carries) return fail(op, "body returns fewer values than carries");
    for (size_t i = 0; i < carries; ++i)
      if (out[i] != args[consts + i])
        return fail(op, fmt::format("carry {} goes in as {} and comes out as {}", i, args[consts + i].str(),
                                    out[i].str()));
    for (size_t i = carries; i < out.size(); ++i) out[i].axes.insert(out[i].axes.begin(), Axis{axis, length});
    return out;
  }
  if (op.kind == OpKind::cond) {
    if (op.regions.size() != 2) return fail(op, "has two regions");
    if (in[0] != scalar(DType::boolean))
      return fail(op, fmt::format("predicate is {}, not a bool scalar", in[0].str()));
    for (const Block& b : op.regions) RETURN_IF_ERROR(matches(b, in.subspan(1), "branch"));
    if (results_of(op.regions[0]) != results_of(op.regions[1]))
      return fail(op, "branches return different shapes");
    return results_of(op.regions[0]);
  }
  if (op.regions.size() != 3) return fail(op, "has three regions");
  RETURN_IF_ERROR(matches(op.regions[0], in, "function"));
  RETURN_IF_ERROR(matches(op.regions[1], in, "forward"));
  const auto out = results_of(op.regions[0]);
  const auto forward = results_of(op.regions[1]);
  if (forward.size() < out.size() || !std::equal(out.begin(), out.end(), forward.begin()))
    return fail(op, "forward does not return the function's results first");
  return out;
}

Shapes state(const Op& op, In in) {
  if (op.kind == OpKind::fingerprint) return std::vector<Shape>{Shape{DType::i64, {{"lane", 2}}}};
  const auto& axes = op.attrs.strs("axes");
  const auto& cells = op.attrs.ints("cells");  // number of boxes along each named axis
  if (axes.size() != cells.size()) return fail(op, "axes and cells differ in length");
  if (in[0].dtype != DType::f32) return fail(op, "needs f32");
  Shape out{DType::f64, {}};
  for (const Axis& a : in[0].axes)
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i] == a.name) out.axes.push_back({a.name, cells[i]});
  if (out.axes.size() != axes.size())
    return fail(op, fmt::format("an axis of [{}] is not in {}", fmt::join(axes, ", "), in[0].str()));
  return std::vector<Shape>{out};
}

Shapes collective(const Op& op, In in) {
  Shape out = in[0];
  switch (op.kind) {
    case OpKind::all_gather:
    case OpKind::shard_slice:
    case OpKind::reduce_scatter_tree: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, out, op.attrs.str("axis")));
      out.axes[static_cast<size_t>(at)].size = op.attrs.i64("size");
      return std::vector<Shape>{out};
    }
    default:
      return std::vector<Shape>{out};
  }
}

Shapes infer(const Op& op, In in) {
  const OpKind k = op.kind;
  auto arity = [&](size_t n) -> Status {
    if (in.size() != n) return fail(op, fmt::format("takes {} operands, {} given", n, in.size()));
    return Status();
  };
  if (is_elementwise(k)) {
    RETURN_IF_ERROR(arity(k >= OpKind::add && k <= OpKind::ge ? 2 : k == OpKind::select ? 3 : 1));
    return elementwise(op, in);
  }
  if (is_collective(k)) {
    RETURN_IF_ERROR(arity(1));
    return collective(op, in);
  }
  switch (k) {
    case OpKind::constant: {
      RETURN_IF_ERROR(arity(0));
      const auto d = parse_dtype(op.attrs.str("dtype"));
      if (!d) return fail(op, fmt::format("unknown dtype \"{}\"", op.attrs.str("dtype")));
      ASSIGN_OR_RETURN(Shape out, shape_from_attrs(op, *d));
      if (op.attrs.has("data") && static_cast<int64_t>(op.attrs.str("data").size()) != 2 * out.bytes())
        return fail(op, fmt::format("data has {} hex digits, {} needs {}", op.attrs.str("data").size(),
                                    out.str(), 2 * out.bytes()));
      if (!op.attrs.has("data") && !op.attrs.has("value")) return fail(op, "has neither value nor data");
      return std::vector<Shape>{out};
    }
    case OpKind::iota:
      RETURN_IF_ERROR(arity(1));
      return std::vector<Shape>{Shape{DType::i32, {{op.attrs.str("axis"), op.attrs.i64("size")}}}};
    case OpKind::random: {
      ASSIGN_OR_RETURN(Shape out,
                       shape_from_attrs(op, op.attrs.str("kind") == "bits" ? DType::u32 : DType::f32));
      RETURN_IF_ERROR(arity(1 + out.axes.size()));
      if (in[0].dtype != DType::u32 || in[0].count() != 2)
        return fail(op, fmt::format("key is {}, not u32[word:2]", in[0].str()));
      return std::vector<Shape>{out};
    }
    case OpKind::fold_in:
      RETURN_IF_ERROR(arity(2));
      if (in[0].dtype != DType::u32 || in[0].count() != 2 || !in[1].axes.empty() || !is_integer(in[1].dtype))
        return fail(op, "takes a key and an integer scalar");
      return std::vector<Shape>{in[0]};
    case OpKind::broadcast:
      RETURN_IF_ERROR(arity(1));
      return broadcast(op, in);
    case OpKind::concat:
    case OpKind::stack:
      if (in.empty()) return fail(op, "needs at least one operand");
      return layout(op, in);
    case OpKind::transpose:
    case OpKind::rename:
    case OpKind::split_axis:
    case OpKind::merge_axes:
    case OpKind::slice:
    case OpKind::pad:
    case OpKind::split:
    case OpKind::unstack:
    case OpKind::reverse:
      RETURN_IF_ERROR(arity(1));
      return layout(op, in);
    case OpKind::dynamic_slice: {
      RETURN_IF_ERROR(arity(2));
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, in[0], op.attrs.str("axis")));
      if (in[1] != scalar(DType::i32))
        return fail(op, fmt::format("start is {}, not an i32 scalar", in[1].str()));
      Shape out = in[0];
      if (op.attrs.i64("size") > out.axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("size {} exceeds {}", op.attrs.i64("size"), in[0].str()));
      out.axes[static_cast<size_t>(at)].size = op.attrs.i64("size");
      return std::vector<Shape>{out};
    }
    case OpKind::dynamic_update_slice: {
      RETURN_IF_ERROR(arity(3));
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, in[0], op.attrs.str("axis")));
      Shape update = in[1];
      if (!update.has(op.attrs.str("axis")) ||
          update.size_of(op.attrs.str("axis")) > in[0].axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("update {} does not fit into {}", in[1].str(), in[0].str()));
      update.axes[static_cast<size_t>(at)].size = in[0].axes[static_cast<size_t>(at)].size;
      if (update != in[0])
        return fail(op, fmt::format("update {} does not fit into {}", in[1].str(), in[0].str()));
      if (in[2].dtype != DType::i32) return fail(op, "start must be i32");
      for (const Axis& a : in[2].axes)
        if (a.name == op.attrs.str("axis") || !in[0].has(a.name) || in[0].size_of(a.name) != a.size)
          return fail(op, fmt::format("start {} has axes that {} has not", in[2].str(), in[0].str()));
      return std::vector<Shape>{in[0]};
    }
    case OpKind::gather:
      RETURN_IF_ERROR(arity(3));
      return gather(op, in);
    case OpKind::scatter_add:
      RETURN_IF_ERROR(arity(3));
      return scatter_add(op, in);
    case OpKind::sort: {
      RETURN_IF_ERROR(arity(1));
      RETURN_IF_ERROR(need_axis(op, in[0], op.attrs.str("axis")));
      return std::vector<Shape>{in[0], in[0].with_dtype(DType::i32)};
    }
    case OpKind::top_k: {
      RETURN_IF_ERROR(arity(1));
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, in[0], op.attrs.str("axis")));
      Shape out = in[0];
      if (op.attrs.i64("k") < 1 || op.attrs.i64("k") > out.axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("k {} for {}", op.attrs.i64("k"), in[0].str()));
      out.axes[static_cast<size_t>(at)].size = op.attrs.i64("k");
      return std::vector<Shape>{out, out.with_dtype(DType::i32)};
    }
    case OpKind::sum:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::argmax:
    case OpKind::tree_sum:
      RETURN_IF_ERROR(arity(1));
      return reduction(op, in);
    case OpKind::dot:
      RETURN_IF_ERROR(arity(2));
      return dot(op, in);
    case OpKind::attention:
      if (in.size() < 4) return fail(op, "takes q, k, v, q_origin and mask operands");
      return attention(op, in);
    case OpKind::attention_grad:
      if (in.size() < 8) return fail(op, "takes q, k, v, o, m, r, do, q_origin and mask operands");
      return attention(op, in);
    case OpKind::cross_entropy:
      RETURN_IF_ERROR(arity(3));
      return cross_entropy(op, in);
    case OpKind::cross_entropy_grad:
      RETURN_IF_ERROR(arity(7));
      return cross_entropy(op, in);
    case OpKind::box_sumsq:
      RETURN_IF_ERROR(arity(1));
      return state(op, in);
    case OpKind::fingerprint:
      RETURN_IF_ERROR(arity(1 + in[0].axes.size()));
      return state(op, in);
    case OpKind::scan:
    case OpKind::cond:
    case OpKind::custom:
      return regions(op, in);
    default:
      return fail(op, "has no shape rule");
  }
}

}  // namespace

Result<std::vector<Shape>> infer_shapes(const Op& op, std::span<const Shape> in) {
  try {
    return infer(op, in);
  } catch (const AttrError& e) {
    return fail(op, e.message);
  }
}

}  // namespace ostro::ir
