// Shape rules of layout ops, and what all rules share.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {

Error fail(const Op& op, const std::string& text) {
  return invalid_argument(fmt::format("{}: {}", op_name(op.kind), text));
}

Status check_shape(const Shape& s) {
  int64_t bytes = dtype_size(s.dtype);
  for (size_t i = 0; i < s.axes.size(); ++i) {
    const Axis& a = s.axes[i];
    if (!is_axis_name(a.name))
      return invalid_argument(
          fmt::format("\"{}\" is not an axis name; use letters, digits, _ . ' / and -", a.name));
    if (s.find(a.name) != static_cast<int64_t>(i))
      return invalid_argument(fmt::format("axis \"{}\" would appear twice in {}", a.name, s.str()));
    if (a.size < 0) return invalid_argument(fmt::format("axis \"{}\" has size {}", a.name, a.size));
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(a.size, 1), &bytes))
      return invalid_argument(fmt::format("{} has more bytes than a 64-bit number counts", s.str()));
  }
  return Status();
}

Result<Shape> shape_from_attrs(const Op& op, DType dtype) {
  const auto& axes = op.attrs.strs("axes");
  const auto& sizes = op.attrs.ints("sizes");
  if (axes.size() != sizes.size()) return fail(op, "axes and sizes differ in length");
  Shape s{dtype, {}};
  for (size_t i = 0; i < axes.size(); ++i) s.axes.push_back({axes[i], sizes[i]});
  if (const Status sound = check_shape(s); !sound.ok()) return fail(op, sound.error().message());
  return s;
}

Result<int64_t> need_axis(const Op& op, const Shape& s, const std::string& axis) {
  const int64_t i = s.find(axis);
  if (i < 0) return fail(op, fmt::format("no axis \"{}\" in {}", axis, s.str()));
  return i;
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
      if (start < 0 || size < 0 || stride < 1 ||
          (size > 0 && (size > a.size || start >= a.size || (size - 1) > (a.size - 1 - start) / stride)))
        return fail(op, fmt::format("start {} size {} stride {} is outside axis \"{}\" of size {}", start,
                                    size, stride, a.name, a.size));
      a.size = size;
      return std::vector<Shape>{out};
    }
    case OpKind::pad: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, x, op.attrs.str("axis")));
      const int64_t low = op.attrs.i64("low"), high = op.attrs.i64("high");
      if (low < 0 || high < 0) return fail(op, "negative padding; slice instead");
      constexpr int64_t kMost = int64_t{1} << 48;
      if (low > kMost || high > kMost) return fail(op, fmt::format("padding by {} and {}", low, high));
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
        if (size < 0 || size > x.axes[static_cast<size_t>(at)].size)
          return fail(op, fmt::format("a part of {} of axis \"{}\" of {}", size, op.attrs.str("axis"),
                                      x.axes[static_cast<size_t>(at)].size));
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
    default: return fail(op, "is not a layout op");
  }
  return std::vector<Shape>{out};
}

}  // namespace ostro::ir::rules
