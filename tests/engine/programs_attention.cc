// Attention of sizes that kernels by tiles take: each mask, both dtypes, head_dim in several widths, grouped
// heads, tokens that fill no tile.
#include <fmt/format.h>

#include "program_collector.h"

namespace ostro::testing {

void add_attention(Collector& c) {
  struct Case {
    const char* name;
    int64_t batch, kv, group, pos, keys, dims, origin, causal, window;
    bool prefix, key_limit, segments, sink;
    double cap;
    int64_t int8_slices = 0;
  };
  const Case cases[] = {
      {"causal", 1, 1, 1, 150, 150, 64, 0, 1, 0, false, false, false, false, 0},
      {"whole", 2, 1, 2, 20, 131, 36, 5, 0, 0, false, false, false, true, 0},
      {"window", 1, 2, 2, 70, 140, 80, 37, 1, 50, false, false, false, false, 0},
      {"prefix", 2, 2, 1, 75, 90, 40, 9, 1, 0, true, true, false, false, 0},
      {"segments", 1, 1, 2, 131, 131, 64, 0, 1, 0, false, false, true, false, 1.5},
      {"wide", 1, 1, 1, 66, 68, 256, 2, 1, 0, false, false, true, true, 0},
      {"of integers", 1, 2, 2, 131, 140, 36, 9, 1, 100, true, false, true, true, 1.5, 2},
      {"of integers, whole", 2, 1, 1, 20, 131, 64, 5, 0, 0, false, true, false, false, 0, 2},
      {"of integers, wide", 1, 1, 2, 70, 270, 96, 200, 1, 0, false, false, false, false, 0, 2},
      {"of integers, by rows", 1, 1, 1, 17, 131, 132, 120, 1, 0, false, false, false, true, 0, 2},
  };
  for (const Case& x : cases)
    for (DType d : {DType::f32, DType::bf16}) {
      const Axis batch{"batch", x.batch}, pos{"pos", x.pos}, keys{"key_pos", x.keys}, kv{"kv", x.kv},
          group{"group", x.group}, dims{"hd", x.dims};
      const Shape q = of(d, {batch, pos, kv, group, dims}), k = of(d, {batch, keys, kv, dims});
      c.add(fmt::format("attention by tiles {} {}", ir::dtype_name(d), x.name),
            {q, k, k, q, i32({batch, pos}), i32({batch, keys}), i32({batch}), f32({kv, group})},
            [=](Builder& b, const Values& in) {
              Attrs attrs{{"query", std::string("pos")},
                          {"key", std::string("key_pos")},
                          {"head_dim", std::string("hd")},
                          {"scale", 0.125},
                          {"causal", x.causal},
                          {"window", x.window}};
              if (x.cap > 0) attrs.set("soft_cap", x.cap);
              if (x.int8_slices > 0) attrs.set("int8_slices", x.int8_slices);
              Values rest{b.i64_scalar(x.origin)};
              const auto mask = [&](const char* name, bool present, const Values& operands) {
                if (!present) return;
                attrs.set(name, int64_t{1});
                rest.insert(rest.end(), operands.begin(), operands.end());
              };
              const ValueId square = b.add(OpKind::mul, {in[6], in[6]});
              mask("segments", x.segments, {in[4], in[5]});
              mask("prefix", x.prefix, {square});
              mask("key_limit", x.key_limit, {b.add(OpKind::mul, {square, square})});
              mask("sink", x.sink, {in[7]});
              Values operands{in[0], in[1], in[2]};
              operands.insert(operands.end(), rest.begin(), rest.end());
              Values f = b.add_n(OpKind::attention, operands, attrs);
              operands = {in[0], in[1], in[2], f[0], f[1], f[2], in[3]};
              operands.insert(operands.end(), rest.begin(), rest.end());
              const Values g = b.add_n(OpKind::attention_grad, operands, attrs);
              f.insert(f.end(), g.begin(), g.end());
              return f;
            });
    }
}

}  // namespace ostro::testing
