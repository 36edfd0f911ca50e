#include "programs.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "ostro/numerics/bf16.h"
#include "ostro/numerics/threefry.h"
#include "program_collector.h"

namespace ostro::testing {
namespace {

void add_elementwise(Collector& c) {
  const std::vector<Axis> axes{{"batch", 3}, {"embed", 77}};
  for (int k = static_cast<int>(OpKind::neg); k <= static_cast<int>(OpKind::ge); ++k) {
    const auto kind = static_cast<OpKind>(k);
    if (kind == OpKind::cast || kind == OpKind::use) continue;
    const bool binary = kind >= OpKind::add;
    for (DType d :
         {DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u32, DType::boolean}) {
      ir::Program p;
      Values in{p.body.add_param(of(d, axes))};
      if (binary) in.push_back(p.body.add_param(of(d, axes)));
      Builder b(p.body);
      auto out = b.try_add(kind, in);
      if (!out.ok()) continue;
      p.body.results = *out;
      c.programs.push_back({fmt::format("{} {}", ir::op_name(kind), ir::dtype_name(d)), std::move(p), false});
    }
  }
  const DType all[] = {DType::f32, DType::bf16, DType::f64,    DType::i32,
                       DType::i64, DType::u32,  DType::boolean};
  for (DType from : all)
    for (DType to : all)
      c.add(fmt::format("cast {} {}", ir::dtype_name(from), ir::dtype_name(to)), {of(from, axes)},
            [&](Builder& b, const Values& in) {
              return Values{b.add(OpKind::cast, {in[0]}, {{"dtype", std::string(ir::dtype_name(to))}})};
            });
  for (DType d : all)
    c.add(fmt::format("select {}", ir::dtype_name(d)), {of(DType::boolean, axes), of(d, axes), of(d, axes)},
          [](Builder& b, const Values& in) { return Values{b.add(OpKind::select, in)}; });
  c.add("mixed bf16 f32", {bf16(axes), f32(axes)}, [](Builder& b, const Values& in) {
    return Values{b.cast(b.add(OpKind::mul, {in[0], in[1]}), DType::bf16)};
  });
}

void add_reductions(Collector& c) {
  const std::vector<Axis> axes{{"batch", 5}, {"pos", 7}, {"embed", 201}};
  const numerics::LeafTable cut{{{"pos", 2}, {"embed", 3}}};
  for (DType d : {DType::f32, DType::bf16, DType::i32, DType::f64})
    for (const Names& over :
         {Names{"embed"}, Names{"batch", "pos"}, Names{"pos"}, Names{"batch", "pos", "embed"}})
      for (const char* order : {"striped", "serial"})
        for (const char* acc : {"f32", "f64"})
          for (bool leaves : {false, true}) {
            if (d == DType::f64 && acc[1] == '3') continue;
            c.add(
                fmt::format("sum {} [{}] {} {}{}", ir::dtype_name(d), fmt::join(over, ","), order, acc,
                            leaves ? " leaves" : ""),
                {of(d, axes)},
                [&](Builder& b, const Values& in) {
                  return Values{
                      b.add(OpKind::sum, {in[0]},
                            {{"axes", over}, {"order", std::string(order)}, {"acc", std::string(acc)}})};
                },
                leaves ? cut : numerics::LeafTable{});
          }
  for (DType d : {DType::f32, DType::bf16, DType::i32})
    c.add(fmt::format("extrema {}", ir::dtype_name(d)), {of(d, axes)}, [](Builder& b, const Values& in) {
      return Values{b.add(OpKind::reduce_max, {in[0]}, {{"axes", Names{"embed"}}}),
                    b.add(OpKind::reduce_min, {in[0]}, {{"axes", Names{"batch", "embed"}}}),
                    b.add(OpKind::argmax, {in[0]}, {{"axis", std::string("pos")}}),
                    b.add(OpKind::argmax, {in[0]}, {{"axis", std::string("embed")}})};
    });
  // The same place of another view holds another element: what is summed cannot all be in registers.
  c.add("serial sum of a value beside its reverse", {f32({{"a", 9}, {"b", 20}})},
        [](Builder& b, const Values& in) {
          const ValueId e = b.add(OpKind::abs, {in[0]});
          const ValueId back = b.add(OpKind::reverse, {e}, {{"axis", std::string("a")}});
          return Values{b.sum(b.add(OpKind::mul, {e, back}), {"a", "b"}, "serial")};
        });
  c.add("serial sum of a value less its first row", {f32({{"a", 9}, {"b", 20}})},
        [](Builder& b, const Values& in) {
          const ValueId e = b.add(OpKind::abs, {in[0]});
          const ValueId row = b.add(
              OpKind::slice, {e}, {{"axis", std::string("a")}, {"start", int64_t{0}}, {"size", int64_t{1}}});
          const ValueId first = b.broadcast(b.sum(row, {"a"}, "striped"), b.shape(e).axes);
          const ValueId rows =
              b.broadcast(b.add_n(OpKind::unstack, {e}, {{"axis", std::string("a")}})[0], b.shape(e).axes);
          return Values{b.sum(b.add(OpKind::sub, {e, rows}), {"a"}, "serial"),
                        b.sum(b.add(OpKind::sub, {e, first}), {"b"}, "serial")};
        });
  c.add("a bf16 value negated twice", {bf16(axes)}, [](Builder& b, const Values& in) {
    return Values{b.add(OpKind::neg, {b.add(OpKind::neg, {in[0]})})};
  });
  c.add("sums of nothing", {f32({{"batch", 3}, {"none", 0}})}, [](Builder& b, const Values& in) {
    return Values{b.add(OpKind::tree_sum, {in[0]}, {{"axes", Names{"none"}}}),
                  b.sum(in[0], {"none"}, "striped")};
  });
  c.add("tree_sum", {f32(axes), of(DType::f64, axes)}, [](Builder& b, const Values& in) {
    return Values{b.add(OpKind::tree_sum, {in[0]}, {{"axes", Names{"pos"}}}),
                  b.add(OpKind::tree_sum, {in[1]}, {{"axes", Names{"batch", "pos"}}})};
  });
  c.add("sort", {f32(axes), i32({{"n", 9}})}, [](Builder& b, const Values& in) {
    Values s = b.add_n(OpKind::sort, {in[0]}, {{"axis", std::string("pos")}, {"descending", int64_t{0}}});
    Values t = b.add_n(OpKind::top_k, {in[0]}, {{"axis", std::string("embed")}, {"k", int64_t{4}}});
    Values d = b.add_n(OpKind::sort, {in[1]}, {{"axis", std::string("n")}, {"descending", int64_t{1}}});
    return Values{s[0], s[1], t[0], t[1], d[0], d[1]};
  });
}

void add_dots(Collector& c) {
  const numerics::LeafTable cut{{{"mlp", 2}, {"heads", 3}}};
  for (DType d : {DType::f32, DType::bf16})
    for (bool leaves : {false, true})
      c.add(
          fmt::format("dots {}{}", ir::dtype_name(d), leaves ? " leaves" : ""),
          {of(d, {{"batch", 3}, {"pos", 5}, {"mlp", 37}}), of(d, {{"mlp", 37}, {"embed", 19}}),
           of(d, {{"batch", 3}, {"heads", 5}, {"hd", 8}}),
           of(d, {{"heads", 5}, {"hd", 8}, {"batch", 3}, {"out", 11}})},
          [d](Builder& b, const Values& in) {
            ValueId x = b.dot(in[0], in[1], {"mlp"});
            ValueId y = b.dot(in[2], in[3], {"hd", "heads"});
            ValueId z = b.dot(in[2], in[3], {"heads"});
            ValueId t = b.dot(b.transpose(in[0], {"mlp", "pos", "batch"}), in[0], {"batch", "pos"});
            Values out{x, y, z, t};
            if (d == DType::bf16) {
              out.push_back(b.dot(in[0], in[1], {"mlp"}, DType::bf16));
              out.push_back(b.cast(b.dot(in[2], in[3], {"hd"}), DType::bf16));
            }
            return out;
          },
          leaves ? cut : numerics::LeafTable{});
}

// Operands as models have them: contracted axes that join to one, which lie together or apart, and sizes that
// are multiples of 8; then sizes that are not, with enough rows and columns for tiles.
void add_regular_dots(Collector& c) {
  for (DType d : {DType::f32, DType::bf16})
    c.add(
        fmt::format("regular dots {}", ir::dtype_name(d)),
        {of(d, {{"batch", 2}, {"pos", 24}, {"embed", 40}}), of(d, {{"embed", 40}, {"gate", 2}, {"mlp", 24}}),
         of(d, {{"batch", 2}, {"pos", 24}, {"heads", 3}, {"hd", 16}}),
         of(d, {{"heads", 3}, {"hd", 16}, {"embed", 40}}), of(d, {{"batch", 2}, {"pos", 20}, {"odd", 39}}),
         of(d, {{"odd", 39}, {"mlp", 36}})},
        [d](Builder& b, const Values& in) {
          const ValueId y = b.dot(in[0], in[1], {"embed"});
          const ValueId dy = d == DType::bf16 ? b.cast(y, d) : y;
          return Values{y,
                        b.dot(dy, in[1], {"gate", "mlp"}),
                        b.dot(in[0], dy, {"batch", "pos"}),
                        b.dot(b.transpose(in[1], {"mlp", "gate", "embed"}), in[0], {"embed"}),
                        b.dot(in[2], in[3], {"hd"}),
                        b.dot(in[2], in[3], {"heads", "hd"}, d),
                        b.dot(in[4], in[5], {"odd"})};
        });
}

void add_indexed(Collector& c) {
  c.add("gather", {f32({{"vocab", 6}, {"embed", 9}}), i32({{"batch", 3}, {"pos", 4}}), of(DType::i64, {})},
        [](Builder& b, const Values& in) {
          ValueId origin = b.i64_scalar(0);
          return Values{b.add(OpKind::gather, {in[0], in[1], origin}, {{"axis", std::string("vocab")}}),
                        b.add(OpKind::gather, {b.transpose(in[0], {"embed", "vocab"}), in[1], origin},
                              {{"axis", std::string("vocab")}})};
        });
  c.add("gather from a cast table", {f32({{"vocab", 60}, {"embed", 9}}), i32({{"batch", 3}, {"pos", 4}})},
        [](Builder& b, const Values& in) {
          return Values{b.add(OpKind::gather, {b.cast(in[0], DType::bf16), in[1], b.i64_scalar(0)},
                              {{"axis", std::string("vocab")}})};
        });
  c.add("gather paired", {bf16({{"batch", 3}, {"vocab", 6}, {"x", 2}}), i32({{"batch", 3}, {"pos", 4}})},
        [](Builder& b, const Values& in) {
          return Values{
              b.add(OpKind::gather, {in[0], in[1], b.i64_scalar(1)}, {{"axis", std::string("vocab")}})};
        });
  for (bool leaves : {false, true})
    c.add(
        leaves ? "scatter_add leaves" : "scatter_add",
        {f32({{"batch", 3}, {"pos", 140}, {"embed", 5}}), i32({{"batch", 3}, {"pos", 140}}),
         bf16({{"batch", 3}, {"pos", 140}, {"embed", 5}})},
        [](Builder& b, const Values& in) {
          ValueId origin = b.i64_scalar(0);
          const Attrs attrs{{"axis", std::string("vocab")}, {"size", int64_t{6}}, {"position", int64_t{0}}};
          Attrs last = attrs, batch = attrs;
          last.set("position", int64_t{1});
          batch.set("batch", Names{"batch"});
          return Values{b.add(OpKind::scatter_add, {in[0], in[1], origin}, attrs),
                        b.add(OpKind::scatter_add, {in[2], in[1], origin}, last),
                        b.add(OpKind::scatter_add, {in[0], in[1], origin}, batch)};
        },
        leaves ? numerics::LeafTable{{{"pos", 2}}} : numerics::LeafTable{});
}

void add_fused(Collector& c) {
  for (DType d : {DType::f32, DType::bf16}) {
    c.add(fmt::format("attention {}", ir::dtype_name(d)),
          {of(d, {{"batch", 2}, {"pos", 9}, {"kv", 2}, {"group", 2}, {"hd", 8}}),
           of(d, {{"batch", 2}, {"key_pos", 9}, {"kv", 2}, {"hd", 8}}),
           of(d, {{"batch", 2}, {"key_pos", 9}, {"kv", 2}, {"hd", 8}}),
           of(d, {{"batch", 2}, {"pos", 9}, {"kv", 2}, {"group", 2}, {"hd", 8}})},
          [](Builder& b, const Values& in) {
            const Attrs attrs{{"query", std::string("pos")},
                              {"key", std::string("key_pos")},
                              {"head_dim", std::string("hd")},
                              {"scale", 0.25},
                              {"causal", int64_t{1}}};
            ValueId zero = b.i64_scalar(0);
            Values f = b.add_n(OpKind::attention, {in[0], in[1], in[2], zero}, attrs);
            Values g =
                b.add_n(OpKind::attention_grad, {in[0], in[1], in[2], f[0], f[1], f[2], in[3], zero}, attrs);
            f.insert(f.end(), g.begin(), g.end());
            Attrs partial = attrs;
            partial.set("partial", int64_t{1});
            g = b.add_n(OpKind::attention_grad, {in[0], in[1], in[2], f[0], f[1], f[2], in[3], zero},
                        partial);
            f.insert(f.end(), g.begin(), g.end());
            return f;
          });
    c.add(fmt::format("attention heads first {}", ir::dtype_name(d)),
          {of(d, {{"kv", 2}, {"batch", 2}, {"pos", 9}, {"hd", 8}}),
           of(d, {{"key_pos", 9}, {"batch", 2}, {"hd", 8}}), i32({{"batch", 2}})},
          [](Builder& b, const Values& in) {
            Attrs attrs{{"query", std::string("pos")},   {"key", std::string("key_pos")},
                        {"head_dim", std::string("hd")}, {"scale", 0.25},
                        {"window", int64_t{4}},          {"key_limit", int64_t{1}}};
            Values f = b.add_n(OpKind::attention, {in[0], in[1], in[1], b.i64_scalar(3), in[2]}, attrs);
            return f;
          });
    // Chosen keys, by example and query and for all alike; the last operand is not the mask.
    for (bool each : {false, true})
      c.add(fmt::format("attention visible {} {}", ir::dtype_name(d), each ? "each" : "all"),
            {of(d, {{"batch", 2}, {"pos", 70}, {"kv", 2}, {"hd", 8}}),
             of(d, {{"batch", 2}, {"key_pos", 150}, {"kv", 2}, {"hd", 8}}),
             of(DType::boolean, each ? std::vector<Axis>{{"batch", 2}, {"pos", 70}, {"key_pos", 150}}
                                     : std::vector<Axis>{{"key_pos", 150}}),
             of(DType::f32, {{"kv", 2}})},
            [](Builder& b, const Values& in) {
              const Attrs attrs{{"query", std::string("pos")},
                                {"key", std::string("key_pos")},
                                {"head_dim", std::string("hd")},
                                {"scale", 0.25},
                                {"causal", int64_t{1}},
                                {"visible", int64_t{1}},
                                {"sink", int64_t{1}}};
              const ValueId from = b.i64_scalar(40);
              Values f = b.add_n(OpKind::attention, {in[0], in[1], in[1], from, in[2], in[3]}, attrs);
              Values g = b.add_n(OpKind::attention_grad,
                                 {in[0], in[1], in[1], f[0], f[1], f[2], in[0], from, in[2], in[3]}, attrs);
              f.insert(f.end(), g.begin(), g.end());
              return f;
            });
  }
  // A head: the gradient runs behind the loss and takes the place of the logits, except where these are a
  // result.
  for (DType d : {DType::f32, DType::bf16})
    for (bool leaves : {false, true})
      for (bool want_logits : {false, true})
        c.add(
            fmt::format("cross_entropy of a head {}{}{}", ir::dtype_name(d), leaves ? " leaves" : "",
                        want_logits ? " with logits" : ""),
            {of(d, {{"batch", 2}, {"pos", 33}, {"embed", 24}}), of(d, {{"embed", 24}, {"vocab", 83}}),
             i32({{"batch", 2}, {"pos", 33}}), f32({{"batch", 2}, {"pos", 33}})},
            [d, want_logits](Builder& b, const Values& in) {
              ValueId zero = b.i64_scalar(0);
              const Attrs attrs{{"axis", std::string("vocab")}, {"z", 0.0}};
              ValueId logits = b.dot(in[0], in[1], {"embed"});
              Values f = b.add_n(OpKind::cross_entropy, {logits, in[2], zero}, attrs);
              ValueId w = b.add(OpKind::mul, {in[3], in[3]});
              Attrs typed = attrs;
              typed.set("dtype", ir::dtype_name(d));
              ValueId g =
                  b.add(OpKind::cross_entropy_grad, {logits, in[2], f[1], f[2], f[3], w, zero}, typed);
              f.push_back(b.dot(g, in[1], {"vocab"}));
              f.push_back(b.dot(in[0], g, {"batch", "pos"}));
              if (want_logits) f.push_back(logits);
              return f;
            },
            leaves ? numerics::LeafTable{{{"vocab", 2}}} : numerics::LeafTable{});
  for (bool leaves : {false, true})
    c.add(
        leaves ? "cross_entropy leaves" : "cross_entropy",
        {f32({{"pos", 5}, {"vocab", 83}}), i32({{"pos", 5}}), f32({{"pos", 5}})},
        [](Builder& b, const Values& in) {
          ValueId zero = b.i64_scalar(0);
          const Attrs attrs{{"axis", std::string("vocab")}, {"z", 0.001}};
          Values f = b.add_n(OpKind::cross_entropy, {in[0], in[1], zero}, attrs);
          Attrs half = attrs;
          half.set("dtype", std::string("bf16"));
          f.push_back(b.add(OpKind::cross_entropy_grad, {in[0], in[1], f[1], f[2], f[3], in[2], zero}, half));
          f.push_back(b.add(OpKind::cross_entropy_sum, {in[0], f[1]}, {{"axis", std::string("vocab")}}));
          return f;
        },
        leaves ? numerics::LeafTable{{{"vocab", 2}}} : numerics::LeafTable{});
}

void add_state(Collector& c) {
  c.add("box_sumsq", {f32({{"layer", 2}, {"embed", 10}, {"mlp", 67}}), f32({})},
        [](Builder& b, const Values& in) {
          return Values{
              b.add(OpKind::box_sumsq, {in[0]}, {{"axes", Names{"layer", "embed"}}, {"cells", Ints{2, 3}}}),
              b.add(OpKind::box_sumsq, {in[0]}, {{"axes", Names{"layer", "mlp"}}, {"cells", Ints{2, 4}}}),
              b.add(OpKind::box_sumsq, {in[0]},
                    {{"axes", Names{"layer", "embed"}}, {"cells", Ints{2, 4}}, {"lengths", Ints{1, 3}}}),
              b.add(OpKind::box_sumsq, {in[0]},
                    {{"axes", Names{"embed", "mlp"}}, {"cells", Ints{1, 5}}, {"lengths", Ints{12, 16}}}),
              b.add(OpKind::box_sumsq, {in[0]}, {{"axes", Names{}}, {"cells", Ints{}}}),
              b.add(OpKind::box_sumsq, {in[1]}, {{"axes", Names{}}, {"cells", Ints{}}})};
        });
  for (DType d : {DType::f32, DType::bf16, DType::f64, DType::boolean})
    c.add(fmt::format("fingerprint {}", ir::dtype_name(d)), {of(d, {{"a", 3}, {"b", 13}}), of(d, {})},
          [](Builder& b, const Values& in) {
            ValueId zero = b.i64_scalar(0), two = b.i64_scalar(2), eight = b.i64_scalar(8);
            return Values{b.add(OpKind::fingerprint, {in[0], zero, zero}, {{"global_sizes", Ints{3, 13}}}),
                          b.add(OpKind::fingerprint, {in[0], two, eight}, {{"global_sizes", Ints{9, 21}}}),
                          b.add(OpKind::fingerprint, {in[1]}, {{"global_sizes", Ints{}}})};
          });
  // Of values that a kernel makes in several pieces and on two threads: rows of whole words and others, from
  // operands in the result's order and across it.
  for (int64_t n : {7000, 7002, 7001})
    c.add(fmt::format("fingerprint behind a kernel, rows of {}", n),
          {f32({{"a", 5}, {"b", n}}), f32({{"b", n}, {"a", 5}})}, [n](Builder& b, const Values& in) {
            const std::vector<Axis> axes{{"a", 5}, {"b", n}};
            ValueId zero = b.i64_scalar(0), two = b.i64_scalar(2), eight = b.i64_scalar(8);
            const auto print = [&](ValueId x, ValueId first_row, ValueId first, Ints sizes) {
              return b.add(OpKind::fingerprint, {x, first_row, first}, {{"global_sizes", std::move(sizes)}});
            };
            ValueId flat = b.add(OpKind::mul, {in[0], in[0]});
            ValueId narrow = b.cast(b.add(OpKind::add, {in[0], flat}), DType::bf16);
            ValueId across = b.add(OpKind::sub, {b.transpose(in[1], {"a", "b"}), in[0]});
            return Values{flat,
                          print(flat, zero, zero, {5, n}),
                          narrow,
                          print(narrow, zero, zero, {5, n}),
                          print(narrow, two, zero, {9, n}),
                          across,
                          print(across, zero, zero, {5, n}),
                          print(across, two, eight, {9, n + 8})};
          });
  c.add("random", {of(DType::u32, {{"word", 2}})}, [](Builder& b, const Values& in) {
    Values out;
    for (const char* kind : {"bits", "uniform", "normal", "trunc_normal"})
      out.push_back(b.add(OpKind::random, {in[0], b.i64_scalar(1), b.i64_scalar(2)},
                          {{"kind", std::string(kind)},
                           {"axes", Names{"a", "b"}},
                           {"sizes", Ints{4, 7}},
                           {"global_sizes", Ints{6, 11}}}));
    out.push_back(b.add(OpKind::fold_in, {in[0], b.i64_scalar(77)}));
    out.push_back(b.add(OpKind::iota, {b.i64_scalar(5)}, {{"axis", std::string("a")}, {"size", int64_t{6}}}));
    return out;
  });
}

void add_control(Collector& c) {
  for (int64_t length : {0, 1, 2, 5})
    for (bool reverse : {false, true})
      c.add(fmt::format("scan of {}{}", length, reverse ? " reversed" : ""),
            {f32({{"embed", 33}}), f32({{"embed", 33}}), f32({{"layer", length}, {"embed", 33}})},
            [&](Builder& b, const Values& in) {
              ir::Block body;
              Values p{body.add_param(f32({{"embed", 33}})), body.add_param(f32({{"embed", 33}})),
                       body.add_param(f32({{"embed", 33}}))};
              Builder inner(body);
              ValueId x = inner.add(OpKind::add, {inner.add(OpKind::mul, {p[0], p[1]}), p[2]});
              ValueId t = inner.add(OpKind::tanh, {x});
              ValueId unread = inner.add(OpKind::exp, {t});
              body.results = {t, x, p[2], unread};
              Values out = b.add_n(OpKind::scan, in,
                                   {{"axis", std::string("layer")},
                                    {"length", length},
                                    {"consts", int64_t{1}},
                                    {"carries", int64_t{1}},
                                    {"reverse", int64_t{reverse}}},
                                   {body});
              return Values{out[0], out[1], out[2]};
            });
  c.add("cond", {of(DType::boolean, {}), f32({{"embed", 33}}), f32({{"embed", 33}})},
        [](Builder& b, const Values& in) {
          std::vector<ir::Block> regions(2);
          for (int i = 0; i < 2; ++i) {
            Values p{regions[i].add_param(f32({{"embed", 33}})), regions[i].add_param(f32({{"embed", 33}}))};
            Builder inner(regions[i]);
            regions[i].results = {i == 0 ? inner.add(OpKind::sub, p) : p[1], p[0]};
          }
          Values first = b.add_n(OpKind::cond, in, {}, regions);
          ValueId no = b.add(OpKind::logical_not, {in[0]});
          Values second = b.add_n(OpKind::cond, {no, in[1], in[2]}, {}, regions);
          first.insert(first.end(), second.begin(), second.end());
          return first;
        });
}

// What models are made of.
void add_model_parts(Collector& c) {
  for (DType d : {DType::f32, DType::bf16})
    for (int64_t embed : {64, 70, 33}) {
      const std::vector<Axis> axes{{"batch", 2}, {"pos", 5}, {"embed", embed}}, row{{"batch", 2}, {"pos", 5}};
      c.add(fmt::format("rmsnorm {} {}", ir::dtype_name(d), embed),
            {of(d, axes), f32({{"embed", embed}}), of(d, axes)}, [=](Builder& b, const Values& in) {
              ValueId x = b.cast(in[0], DType::f32);
              ValueId mean = b.add(OpKind::mul, {b.sum(b.add(OpKind::mul, {x, x}), {"embed"}, "striped"),
                                                 b.splat(1.0f / static_cast<float>(embed), f32(row))});
              ValueId rs = b.add(OpKind::rsqrt, {b.add(OpKind::add, {mean, b.splat(0x1p-17, f32(row))})});
              ValueId hat = b.add(OpKind::mul, {x, b.broadcast(rs, axes)});
              ValueId y = b.cast(b.add(OpKind::mul, {hat, b.broadcast(in[1], axes)}), d);
              // and its gradient
              ValueId dy = b.cast(in[2], DType::f32);
              ValueId dhat = b.add(OpKind::mul, {dy, b.broadcast(in[1], axes)});
              ValueId dot = b.sum(b.add(OpKind::mul, {dhat, hat}), {"embed"}, "striped");
              ValueId k = b.add(OpKind::mul, {dot, b.splat(1.0f / static_cast<float>(embed), f32(row))});
              ValueId dx = b.add(OpKind::mul,
                                 {b.add(OpKind::sub, {dhat, b.add(OpKind::mul, {hat, b.broadcast(k, axes)})}),
                                  b.broadcast(rs, axes)});
              ValueId dw = b.sum(b.add(OpKind::mul, {dy, hat}), {"batch", "pos"}, "serial");
              return Values{y, rs, b.cast(dx, d), dw};
            });
    }
  c.add("softmax", {f32({{"pos", 6}, {"vocab", 131}})}, [](Builder& b, const Values& in) {
    const std::vector<Axis> axes{{"pos", 6}, {"vocab", 131}};
    ValueId m = b.add(OpKind::reduce_max, {in[0]}, {{"axes", Names{"vocab"}}});
    ValueId e = b.add(OpKind::exp, {b.add(OpKind::sub, {in[0], b.broadcast(m, axes)})});
    ValueId s = b.sum(e, {"vocab"}, "striped");
    return Values{b.add(OpKind::div, {e, b.broadcast(s, axes)}), m};
  });
  c.add("swiglu", {bf16({{"pos", 6}, {"two", 2}, {"mlp", 40}})}, [](Builder& b, const Values& in) {
    Values parts = b.add_n(OpKind::unstack, {in[0]}, {{"axis", std::string("two")}});
    ValueId gate = b.cast(parts[0], DType::f32);
    ValueId silu = b.add(OpKind::mul, {gate, b.add(OpKind::sigmoid, {gate})});
    return Values{b.cast(b.add(OpKind::mul, {silu, parts[1]}), DType::bf16)};
  });
  c.add("rope", {bf16({{"pos", 6}, {"heads", 3}, {"hd", 16}}), f32({{"half", 8}})},
        [](Builder& b, const Values& in) {
          const std::vector<Axis> half{{"pos", 6}, {"heads", 3}, {"half", 8}},
              angles{{"pos", 6}, {"half", 8}};
          ValueId pos = b.cast(
              b.add(OpKind::iota, {b.i64_scalar(0)}, {{"axis", std::string("pos")}, {"size", int64_t{6}}}),
              DType::f32);
          ValueId angle = b.add(OpKind::mul, {b.broadcast(pos, angles), b.broadcast(in[1], angles)});
          ValueId cosine = b.broadcast(b.add(OpKind::cos, {angle}), half),
                  sine = b.broadcast(b.add(OpKind::sin, {angle}), half);
          Values parts = b.add_n(OpKind::split, {b.rename(in[0], {"hd"}, {"half"})},
                                 {{"axis", std::string("half")}, {"sizes", Ints{8, 8}}});
          ValueId lo = b.add(OpKind::sub,
                             {b.add(OpKind::mul, {parts[0], cosine}), b.add(OpKind::mul, {parts[1], sine})});
          ValueId hi = b.add(OpKind::add,
                             {b.add(OpKind::mul, {parts[1], cosine}), b.add(OpKind::mul, {parts[0], sine})});
          return Values{b.rename(b.add(OpKind::concat, {b.cast(lo, DType::bf16), b.cast(hi, DType::bf16)},
                                       {{"axis", std::string("half")}}),
                                 {"half"}, {"hd"})};
        });
  // As many operands and results as one kernel may have.
  c.add("a long chain", std::vector<Shape>(100, f32({{"embed", 5}})), [](Builder& b, const Values& in) {
    Values out{in[0]};
    for (size_t i = 0; i < 61; ++i)
      out.push_back(b.add(i % 2 == 0 ? OpKind::abs : OpKind::neg, {out.back()}));
    for (size_t i = 1; i < in.size(); ++i) out.push_back(b.add(OpKind::add, {out.back(), in[i]}));
    return out;
  });
  const std::vector<Axis> w{{"layer", 2}, {"embed", 9}, {"mlp", 70}};
  c.add(
      "adamw", {f32(w), f32(w), f32(w), f32(w), f32({}), f32({}), f32({}), of(DType::boolean, {})},
      [w](Builder& b, const Values& in) {
        auto all = [&](ValueId v) { return b.broadcast(v, w); };
        auto c32 = [&](float v) { return b.splat(v, f32(w)); };
        ValueId p = in[0], m0 = in[1], v0 = in[2];
        ValueId g = b.add(OpKind::mul, {b.add(OpKind::mul, {in[3], all(in[4])}), all(in[5])});
        ValueId m =
            b.add(OpKind::add, {b.add(OpKind::mul, {c32(0.9f), m0}), b.add(OpKind::mul, {c32(0.1f), g})});
        ValueId v = b.add(OpKind::add, {b.add(OpKind::mul, {c32(0.95f), v0}),
                                        b.add(OpKind::mul, {c32(0.05f), b.add(OpKind::mul, {g, g})})});
        ValueId u = b.add(
            OpKind::div,
            {b.add(OpKind::mul, {m, c32(1.5f)}),
             b.add(OpKind::add, {b.add(OpKind::sqrt, {b.add(OpKind::mul, {v, c32(1.25f)})}), c32(1e-8f)})});
        ValueId next = b.add(
            OpKind::sub,
            {p,
             b.add(OpKind::mul, {all(in[6]), b.add(OpKind::add, {u, b.add(OpKind::mul, {c32(0.1f), p})})})});
        ValueId ok = all(in[7]);
        ValueId p1 = b.add(OpKind::select, {ok, next, p});
        ValueId zero = b.i64_scalar(0);
        return Values{p1, b.add(OpKind::select, {ok, m, m0}), b.add(OpKind::select, {ok, v, v0}),
                      b.add(OpKind::fingerprint, {p1, zero, zero, zero}, {{"global_sizes", Ints{2, 9, 70}}}),
                      b.add(OpKind::box_sumsq, {in[3]}, {{"axes", Names{"layer"}}, {"cells", Ints{2}}})};
      });
}

}  // namespace

std::vector<NamedProgram> op_programs() {
  Collector c;
  add_elementwise(c);
  add_layout(c);
  add_joined(c);
  add_reductions(c);
  add_dots(c);
  add_regular_dots(c);
  add_integers(c);
  add_indexed(c);
  add_long(c);
  add_fused(c);
  add_attention(c);
  add_state(c);
  add_control(c);
  add_model_parts(c);
  return std::move(c.programs);
}

std::vector<runtime::Buffer> make_inputs(const ir::Program& program, uint64_t seed, bool wild) {
  std::vector<runtime::Buffer> inputs;
  const numerics::Key key = numerics::key_from_seed(seed);
  for (size_t i = 0; i < program.body.params.size(); ++i) {
    const Shape& shape = program.body.shape(program.body.params[i]);
    const numerics::Key mine = numerics::fold_in(key, static_cast<uint32_t>(i));
    runtime::Buffer buffer = runtime::Buffer::empty(shape);
    for (int64_t e = 0; e < shape.count(); ++e) {
      const uint32_t bits = numerics::random_bits(mine, static_cast<uint64_t>(e));
      float x = numerics::normal_from_bits(bits) * (bits % 7 == 0 ? 50.0f : 1.0f);
      if (wild) {
        constexpr uint32_t kCorners[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff,
                                         0x00800000, 0x7f7fffff, 0x7f800000, 0xff800000,
                                         0x7fc00000, 0x4b000000, 0xcf000000, 0x3f800000};
        if (bits % 5 == 0) x = std::bit_cast<float>(kCorners[bits / 5 % 12]);
        if (bits % 11 == 0)
          x = std::bit_cast<float>(numerics::random_bits(mine, static_cast<uint64_t>(e) + (1u << 30)));
      }
      const auto n = static_cast<size_t>(e);
      switch (shape.dtype) {
        case DType::f32: buffer.mutable_as<float>()[n] = x; break;
        case DType::bf16:
          buffer.mutable_as<uint16_t>()[n] = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
          break;
        case DType::f64:
          buffer.mutable_as<double>()[n] =
              static_cast<double>(x) * (wild && bits % 13 == 0 ? 0x1p900 : 1.0 + 0x1p-40);
          break;
        case DType::i32:
          buffer.mutable_as<int32_t>()[n] =
              wild && bits % 9 == 0 ? static_cast<int32_t>(bits) : static_cast<int32_t>(bits % 10) - 2;
          break;
        case DType::i64:
          buffer.mutable_as<int64_t>()[n] =
              wild && bits % 9 == 0 ? static_cast<int64_t>(bits) << 32 : static_cast<int64_t>(bits % 70) - 5;
          break;
        case DType::u32: buffer.mutable_as<uint32_t>()[n] = wild && bits % 9 == 0 ? bits : bits % 40; break;
        case DType::i8: buffer.mutable_as<int8_t>()[n] = static_cast<int8_t>(bits); break;
        case DType::boolean: buffer.mutable_as<uint8_t>()[n] = bits >> 31; break;
      }
    }
    inputs.push_back(buffer);
  }
  return inputs;
}

std::string difference(const std::vector<runtime::Buffer>& a, const std::vector<runtime::Buffer>& b) {
  if (a.size() != b.size()) return fmt::format("{} results and {}", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].shape() != b[i].shape())
      return fmt::format("result {} is {} and {}", i, a[i].shape().str(), b[i].shape().str());
    const auto size = static_cast<size_t>(ir::dtype_size(a[i].shape().dtype));
    for (int64_t e = 0; e < a[i].shape().count(); ++e) {
      uint64_t x = 0, y = 0;
      std::memcpy(&x, a[i].bytes().data() + static_cast<size_t>(e) * size, size);
      std::memcpy(&y, b[i].bytes().data() + static_cast<size_t>(e) * size, size);
      if (x == y) continue;
      const auto is_nan = [&](uint64_t w) {
        switch (a[i].shape().dtype) {
          case DType::f32: return (w & 0x7fffffff) > 0x7f800000;
          case DType::bf16: return (w & 0x7fff) > 0x7f80;
          case DType::f64: return (w & 0x7fffffffffffffff) > 0x7ff0000000000000;
          default: return false;
        }
      };
      if (is_nan(x) && is_nan(y)) continue;
      return fmt::format("result {} {} element {}: {:x} and {:x}", i, a[i].shape().str(), e, x, y);
    }
  }
  return "";
}

}  // namespace ostro::testing
