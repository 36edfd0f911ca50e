#include <fmt/format.h>

#include "ostro/cuda/trial/trial.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/program/product_rule.h"

namespace ostro::cuda {
namespace {

using ir::Attrs;
using ir::Axis;
using ir::Builder;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;
using Values = std::vector<ValueId>;
using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

class Programs {
 public:
  // body(builder, parameters) -> results.
  template <typename F>
  void add(Fast family, std::string name, const std::vector<Shape>& params, F body, bool is_narrow = false) {
    ir::Program p;
    p.name = std::move(name);
    Values in;
    for (const Shape& s : params) in.push_back(p.body.add_param(s));
    Builder b(p.body);
    p.body.results = body(b, in);
    list.push_back({family, std::move(p), is_narrow});
  }
  std::vector<TrialProgram> list;
};

// A linear layer and both its gradients, and a product of two transposed matrices: the four orientations of
// products. Sizes beside those of tiles; those that are narrow go by the two sizes of large tiles.
void add_products(Programs& out) {
  struct Size {
    int64_t pos, embed, mlp;
    bool is_narrow = false;
  };
  for (const DType d : {DType::f32, DType::bf16})
    for (const auto& [pos, embed, mlp, is_narrow] : {Size{72, 64, 136}, Size{131, 38, 45}, Size{3, 64, 100},
                                                     Size{128, 64, 128, true}, Size{128, 40, 256, true}}) {
      const Axis p{"pos", pos}, e{"embed", embed}, m{"mlp", mlp};
      const Axis row{"row", pos};
      out.add(
          Fast::kProducts, fmt::format("products {} of {} x {} x {}", ir::dtype_name(d), pos, embed, mlp),
          {{d, {p, e}}, {d, {e, m}}, {d, {p, m}}, {d, {e, row}}},
          [d](Builder& b, const Values& in) {
            return Values{b.dot(in[0], in[1], {"embed"}), b.dot(in[2], in[1], {"mlp"}, d),
                          b.dot(in[0], in[2], {"pos"}), b.dot(in[3], in[0], {"embed"})};
          },
          is_narrow);
    }
}

// The same by the rule of tensor cores; two sizes end inside of a tile.
void add_tensor_rule(Programs& out) {
  for (const auto& [pos, embed, mlp] : {std::array<int64_t, 3>{72, 64, 136}, {131, 38, 45}}) {
    const Axis p{"pos", pos}, e{"embed", embed}, m{"mlp", mlp};
    out.add(Fast::kTensorRule, fmt::format("products by N23 of {} x {} x {}", pos, embed, mlp),
            {{DType::bf16, {p, e}}, {DType::bf16, {e, m}}, {DType::bf16, {p, m}}},
            [](Builder& b, const Values& in) {
              const auto dot = [&](ValueId x, ValueId y, const char* over, DType d) {
                return b.add(OpKind::dot, {x, y},
                             {{"over", Names{over}},
                              {"dtype", std::string(ir::dtype_name(d))},
                              {ir::kProductRule, std::string(ir::kTc16)}});
              };
              return Values{dot(in[0], in[1], "embed", DType::f32), dot(in[2], in[1], "mlp", DType::bf16),
                            dot(in[0], in[2], "pos", DType::f32)};
            });
  }
}

void add_attention(Programs& out) {
  struct Case {
    int64_t group, dim, window;
    bool rare;        // with a soft cap, and texts that do not see each other
    bool integers{};  // products of integers (N21)
  };
  for (const DType d : {DType::f32, DType::bf16})
    for (const Case& c : {Case{2, 64, 0, false}, Case{1, 96, 40, false}, Case{1, 200, 0, true},
                          d == DType::f32 ? Case{2, 64, 0, false, true} : Case{1, 96, 40, true, true}}) {
      // Queries from the 70th key on, so that some keys are seen by all, some by none.
      const Axis batch{"batch", 1}, pos{"pos", 70}, key_pos{"key_pos", 150}, kv{"kv", 1},
          group{"group", c.group}, dim{"dim", c.dim};
      const std::vector<Axis> rows{batch, pos, kv, group, dim}, keys{batch, key_pos, kv, dim};
      out.add(Fast::kAttention,
              fmt::format("attention{} {}, head_dim {}", c.integers ? " on integers" : "", ir::dtype_name(d),
                          c.dim),
              {{d, rows},
               {d, keys},
               {d, keys},
               {d, rows},
               {DType::i32, {batch, pos}},
               {DType::i32, {batch, key_pos}}},
              [c](Builder& b, const Values& in) {
                Attrs attrs{{"query", std::string("pos")},    {"key", std::string("key_pos")},
                            {"head_dim", std::string("dim")}, {"scale", 0.125},
                            {"causal", int64_t{1}},           {"window", c.window}};
                if (c.integers) attrs.set("int8_slices", int64_t{2});
                Values last{b.i64_scalar(70)};
                if (c.rare) {
                  attrs.set("soft_cap", 3.0);
                  attrs.set("segments", int64_t{1});
                  last.insert(last.end(), {in[4], in[5]});
                }
                const auto with = [&last](Values operands) {
                  operands.insert(operands.end(), last.begin(), last.end());
                  return operands;
                };
                Values f = b.add_n(OpKind::attention, with({in[0], in[1], in[2]}), attrs);
                const Values g = b.add_n(OpKind::attention_grad,
                                         with({in[0], in[1], in[2], f[0], f[1], f[2], in[3]}), attrs);
                f.insert(f.end(), g.begin(), g.end());
                return f;
              });
    }
}

// A product of integers with what it is made of; `last`: the contracted axis lies last in both operands, else
// first.
void add_integer_product(Programs& out, Fast family, const char* name, DType d, bool last, const Axis& m,
                         const Axis& n, const Axis& k, int64_t block = 256) {
  const auto shape = [&](const Axis& row) {
    return Shape{d, last ? std::vector<Axis>{row, k} : std::vector<Axis>{k, row}};
  };
  out.add(family, fmt::format("{} {}, k {}", name, ir::dtype_name(d), last ? "last" : "first"),
          {shape(m), shape(n), {DType::u32, {{"word", 2}}}}, [=](Builder& b, const Values& in) {
            Attrs attrs{{"over", Names{"k"}}, {"block", block}, {"groups", std::string("blocks")}};
            Attrs nearest = attrs, dithered = attrs;
            nearest.set("rounding", std::string("nearest"));
            dithered.set("rounding", std::string("dithered"));
            dithered.set("global_sizes", last ? Ints{m.size, k.size} : Ints{k.size, m.size});
            const ValueId zero = b.i64_scalar(0);
            const Values q = b.add_n(OpKind::quantize, {in[0], in[2], zero, zero}, dithered),
                         r = b.add_n(OpKind::quantize, {in[1]}, nearest);
            attrs.set("dtype", std::string(ir::dtype_name(d)));
            return Values{b.add(OpKind::dot_int8, {q[0], q[1], r[0], r[1]}, attrs), q[0], q[1], r[0], r[1]};
          });
}

void add_integers(Programs& out) {
  for (const DType d : {DType::f32, DType::bf16})
    for (const bool last : {true, false})
      add_integer_product(out, Fast::kIntegers, "integer products", d, last, {"m", 72},
                          {"n", last ? 136 : 48}, {"k", last ? 608 : 544});
}

// Tiles that end behind the last row and column, blocks of two pieces of k, and so many pieces that every
// place in shared memory is used four times.
void add_warpgroups(Programs& out) {
  add_integer_product(out, Fast::kWarpgroups, "integer products of warpgroups", DType::bf16, true, {"m", 130},
                      {"n", 136}, {"k", 2320}, 512);
}

void add_reductions(Programs& out) {
  const std::vector<Axis> axes{{"batch", 2}, {"pos", 75}, {"embed", 330}};
  for (const DType d : {DType::f32, DType::bf16})
    out.add(
        Fast::kReductions, fmt::format("sums {}", ir::dtype_name(d)), {{d, axes}, {d, axes}},
        [](Builder& b, const Values& in) {
          const ValueId product = b.add(OpKind::mul, {b.cast(in[0], DType::f32), b.cast(in[1], DType::f32)});
          const ValueId zero = b.i64_scalar(0);
          return Values{
              b.sum(product, {"embed"}, "serial"),
              b.sum(product, {"batch", "pos"}, "serial"),
              b.sum(product, {"embed"}, "striped"),
              b.add(OpKind::exp, {product}),
              b.add(OpKind::box_sumsq, {product}, {{"axes", Names{}}, {"cells", Ints{}}}),
              b.add(OpKind::box_sumsq, {product}, {{"axes", Names{"embed"}}, {"cells", Ints{6}}}),
              b.add(OpKind::fingerprint, {in[0], zero, zero, zero}, {{"global_sizes", Ints{2, 75, 330}}})};
        });
  out.add(
      Fast::kReductions, "cross-entropy and the gradient of a table",
      {{DType::f32, {{"pos", 70}, {"vocab", 1030}}},
       {DType::i32, {{"pos", 70}}},
       {DType::f32, {{"pos", 70}}},
       {DType::f32, {{"source", 600}, {"embed", 100}}},
       {DType::i32, {{"source", 600}}}},
      [](Builder& b, const Values& in) {
        const Attrs attrs{{"axis", std::string("vocab")}, {"z", 0.0}};
        const ValueId zero = b.i64_scalar(0);
        Values f = b.add_n(OpKind::cross_entropy, {in[0], in[1], zero}, attrs);
        Attrs typed = attrs;
        typed.set("dtype", ir::dtype_name(DType::f32));
        f.push_back(b.add(OpKind::cross_entropy_grad, {in[0], in[1], f[1], f[2], f[3], in[2], zero}, typed));
        f.push_back(b.add(OpKind::scatter_add, {in[3], in[4], zero},
                          {{"axis", std::string("vocab")}, {"size", int64_t{40}}, {"position", int64_t{0}}}));
        return f;
      });
}

}  // namespace

std::vector<TrialProgram> trial_programs() {
  Programs out;
  add_products(out);
  add_tensor_rule(out);
  add_attention(out);
  add_integers(out);
  add_warpgroups(out);
  add_reductions(out);
  return std::move(out.list);
}

}  // namespace ostro::cuda
