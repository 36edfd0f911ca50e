// Integer products (N20): values that are quantised over axes that lie last, first or around the others, and
// their dot in each kind of kernel.
#include <fmt/format.h>

#include "program_collector.h"

namespace ostro::testing {

void add_integers(Collector& c) {
  struct Case {
    int64_t m, n, outer, inner, block;
    bool last;  // the contracted axes lie last in both operands; else first in one and around in the other
  };
  // Rows by words of 16, of 4 and of single bytes; short blocks; few rows, which have kernels of their own.
  // In the last three blocks are of whole words, and the draws of neighbours of one block of threefry; the
  // last has whole tiles.
  const Case cases[] = {
      {40, 33, 1, 288, 128, true},  {33, 130, 4, 75, 64, false},  {150, 36, 3, 68, 36, false},
      {34, 35, 7, 19, 7, true},     {5, 40, 3, 100, 256, false},  {64, 9, 1, 37, 1, true},
      {130, 34, 1, 528, 256, true}, {72, 40, 1, 272, 256, false}, {130, 136, 1, 800, 256, true}};
  for (const Case& x : cases)
    for (DType d : {DType::f32, DType::bf16}) {
      const Axis m{"m", x.m}, n{"n", x.n}, outer{"outer", x.outer}, inner{"inner", x.inner};
      const std::vector<Axis> left =
          x.last ? std::vector<Axis>{m, outer, inner} : std::vector<Axis>{outer, inner, m};
      const std::vector<Axis> right =
          x.last ? std::vector<Axis>{n, outer, inner} : std::vector<Axis>{outer, n, inner};
      c.add(fmt::format("integers {} [{},{},{}x{}] blocks of {}", ir::dtype_name(d), x.m, x.n, x.outer,
                        x.inner, x.block),
            {of(d, left), of(d, right), of(DType::u32, {{"word", 2}})}, [=](Builder& b, const Values& in) {
              Attrs attrs{
                  {"over", Names{"outer", "inner"}}, {"block", x.block}, {"groups", std::string("blocks")}};
              Attrs nearest = attrs, dithered = attrs;
              nearest.set("rounding", std::string("nearest"));
              dithered.set("rounding", std::string("dithered"));
              dithered.set("global_sizes", Ints{301, 302, 1 << 20});
              const Values draws{in[0], in[2], b.i64_scalar(5), b.i64_scalar(3),
                                 b.i64_scalar((1 << 18) + (x.m > 64 ? 8 : 1))};
              const Values q = b.add_n(OpKind::quantize, draws, dithered);
              const Values r = b.add_n(OpKind::quantize, {in[1]}, nearest);
              attrs.set("dtype", std::string(ir::dtype_name(d)));
              return Values{b.add(OpKind::dot_int8, {q[0], q[1], r[0], r[1]}, attrs), q[0], q[1], r[0], r[1]};
            });
    }
  // Draws are numbered by the value, not by where its numbers lie.
  for (DType d : {DType::f32, DType::bf16})
    c.add(fmt::format("integers {} of transposed views", ir::dtype_name(d)),
          {of(d, {{"m", 48}, {"k", 64}}), of(d, {{"k", 64}, {"m", 48}}), of(DType::u32, {{"word", 2}})},
          [](Builder& b, const Values& in) {
            Attrs attrs{{"over", Names{"k"}},
                        {"block", int64_t{64}},
                        {"groups", std::string("blocks")},
                        {"rounding", std::string("dithered")}};
            Values out;
            for (const bool first : {true, false}) {
              attrs.set("global_sizes", first ? Ints{70, 50} : Ints{50, 70});
              const ValueId view = b.transpose(in[first ? 0 : 1], first ? Names{"k", "m"} : Names{"m", "k"});
              for (const ValueId v :
                   b.add_n(OpKind::quantize, {view, in[2], b.i64_scalar(1), b.i64_scalar(2)}, attrs))
                out.push_back(v);
            }
            return out;
          });
}

}  // namespace ostro::testing
