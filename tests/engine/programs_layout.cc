// Ops that move elements; values that are made in their places of a stack or concat.
#include <fmt/format.h>

#include "program_collector.h"

namespace ostro::testing {

void add_layout(Collector& c) {
  const std::vector<Axis> axes{{"a", 4}, {"b", 6}, {"c", 5}};
  c.add("layout chain", {f32(axes)}, [](Builder& b, const Values& in) {
    ValueId t = b.transpose(in[0], {"c", "a", "b"});
    ValueId s = b.add(OpKind::split_axis, {t},
                      {{"axis", std::string("b")}, {"axes", Names{"b0", "b1"}}, {"sizes", Ints{2, 3}}});
    ValueId r = b.add(OpKind::reverse, {s}, {{"axis", std::string("b1")}});
    ValueId m = b.add(OpKind::merge_axes, {r}, {{"axes", Names{"b0", "b1"}}, {"axis", std::string("b")}});
    ValueId e = b.add(OpKind::exp, {m});
    ValueId u = b.add(OpKind::merge_axes, {t}, {{"axes", Names{"c", "a"}}, {"axis", std::string("ca")}});
    return Values{t, e, u, b.rename(m, {"c"}, {"z"})};
  });
  c.add("slices", {bf16(axes)}, [](Builder& b, const Values& in) {
    ValueId s = b.add(
        OpKind::slice, {in[0]},
        {{"axis", std::string("b")}, {"start", int64_t{1}}, {"size", int64_t{2}}, {"stride", int64_t{3}}});
    Values parts = b.add_n(OpKind::split, {in[0]}, {{"axis", std::string("c")}, {"sizes", Ints{2, 3}}});
    Values rows = b.add_n(OpKind::unstack, {in[0]}, {{"axis", std::string("a")}});
    return Values{s, parts[0], parts[1], rows[2], b.add(OpKind::mul, {rows[0], rows[3]})};
  });
  c.add("joins", {f32(axes), f32(axes)}, [](Builder& b, const Values& in) {
    ValueId n = b.add(OpKind::neg, {in[0]});
    ValueId k = b.add(OpKind::concat, {n, in[1], in[0]}, {{"axis", std::string("b")}});
    ValueId s = b.add(OpKind::stack, {in[1], n}, {{"axis", std::string("new")}, {"position", int64_t{1}}});
    ValueId p =
        b.add(OpKind::pad, {n}, {{"axis", std::string("c")}, {"low", int64_t{2}}, {"high", int64_t{1}}});
    return Values{k, s, p};
  });
  c.add("broadcasts", {f32({{"c", 5}}), f32({{"b", 6}, {"a", 4}}), f32({})},
        [axes](Builder& b, const Values& in) {
          ValueId x = b.add(OpKind::mul, {b.broadcast(in[0], axes), b.broadcast(in[1], axes)});
          return Values{b.add(OpKind::add, {x, b.broadcast(in[2], axes)}), b.broadcast(in[1], axes)};
        });
  c.add(
      "dynamic slices", {f32(axes), f32({{"a", 4}, {"b", 2}, {"c", 5}}), i32({}), i32({{"a", 4}})},
      [](Builder& b, const Values& in) {
        return Values{
            b.add(OpKind::dynamic_slice, {in[0], in[2]}, {{"axis", std::string("b")}, {"size", int64_t{3}}}),
            b.add(OpKind::dynamic_update_slice, {in[0], in[1], in[2]}, {{"axis", std::string("b")}}),
            b.add(OpKind::dynamic_update_slice, {in[0], in[1], in[3]}, {{"axis", std::string("b")}})};
      });
  c.add("parameters as results", {f32(axes)}, [axes](Builder& b, const Values& in) {
    ValueId one = b.splat(1.0, f32(axes));
    return Values{in[0], in[0], one, b.transpose(in[0], {"b", "a", "c"})};
  });
}

namespace {

// x less its greatest element over some axes: a kernel of rows.
ValueId below_extreme(Builder& b, ValueId x, const Names& over) {
  const std::vector<Axis> axes = b.shape(x).axes;
  const ValueId m = b.add(OpKind::reduce_max, {x}, {{"axes", over}});
  return b.add(OpKind::sub, {x, b.broadcast(m, axes)});
}

// stack on axis number `at` of the result, or concat.
ValueId join(Builder& b, bool stack, const Values& parts, int64_t at) {
  if (stack) return b.add(OpKind::stack, parts, {{"axis", std::string("new")}, {"position", at}});
  return b.add(OpKind::concat, parts, {{"axis", b.shape(parts[0]).axes[static_cast<size_t>(at)].name}});
}

}  // namespace

void add_joined(Collector& c) {
  const std::vector<Axis> axes{{"b", 2}, {"a", 3}, {"c", 4}};
  for (DType d : {DType::f32, DType::bf16})
    for (bool stack : {true, false})
      for (const Names& over : {Names{"c"}, Names{"a", "c"}, Names{"b", "a", "c"}}) {
        // On every axis: two parts made of rows; one of rows and one element by element; what is left of
        // rows.
        const int64_t places = stack ? 4 : 3;
        const auto row_axes = static_cast<int64_t>(axes.size() - over.size());
        std::vector<Shape> params;
        for (int64_t at = 0; at < places; ++at)
          for (int64_t i = 0; i < 6; ++i) {
            params.push_back(of(d, axes));
            if (!stack && i % 2 == 0) params.back().axes[static_cast<size_t>(at)].size += 3;
          }
        c.add(fmt::format("{} of parts {} [{}]", stack ? "stack" : "concat", ir::dtype_name(d),
                          fmt::join(over, ",")),
              params, [=](Builder& b, const Values& in) {
                Values out;
                for (int64_t at = 0; at < places; ++at) {
                  const auto* x = &in[static_cast<size_t>(6 * at)];
                  const auto parts = [&](ValueId one, ValueId two) {
                    out.push_back(b.add(OpKind::neg, {join(b, stack, {one, two}, at)}));
                  };
                  parts(below_extreme(b, x[0], over), below_extreme(b, x[1], over));
                  parts(below_extreme(b, x[2], over), b.add(OpKind::add, {x[3], x[3]}));
                  const auto row = [&](ValueId v) {
                    return b.add(OpKind::tanh, {b.add(OpKind::reduce_min, {v}, {{"axes", over}})});
                  };
                  if (at < row_axes + (stack ? 1 : 0)) parts(row(x[4]), row(x[5]));
                }
                return out;
              });
      }
}

}  // namespace ostro::testing
