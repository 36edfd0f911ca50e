// Ops over as many elements as a GPU's blocks share: long sums, wide rows, runs that are copied as one
// element.
#include <fmt/format.h>

#include "program_collector.h"

namespace ostro::testing {
namespace {

void add_long_sums(Collector& c) {
  // Serial sums along memory, across it, over loops that do not join, between rows, of other types.
  c.add("serial sums of long chains",
        {f32({{"a", 37}, {"b", 601}}), bf16({{"b", 601}, {"a", 37}}), f32({{"a", 3}, {"b", 70}, {"c", 11}}),
         of(DType::i32, {{"b", 601}, {"a", 37}}), f32({{"b", 601}})},
        [](Builder& b, const Values& in) {
          const auto sum = [&](ValueId x, Names over, const char* acc) {
            return b.add(
                OpKind::sum, {x},
                {{"axes", std::move(over)}, {"order", std::string("serial")}, {"acc", std::string(acc)}});
          };
          const ValueId along = b.add(OpKind::mul, {in[0], b.broadcast(in[4], b.shape(in[0]).axes)});
          const ValueId across = b.add(OpKind::mul, {in[1], b.broadcast(in[4], b.shape(in[1]).axes)});
          return Values{
              sum(along, {"b"}, "f32"),      sum(along, {"b"}, "f64"),
              sum(across, {"b"}, "f32"),     sum(across, {"b"}, "f64"),
              sum(in[0], {"a", "b"}, "f32"), sum(in[2], {"b"}, "f32"),
              sum(in[2], {"a", "c"}, "f32"), sum(in[2], {"a", "b"}, "f32"),
              sum(in[3], {"b"}, "f32"),      sum(b.transpose(in[2], {"c", "b", "a"}), {"b", "a"}, "f32")};
        });
  // Lanes of many elements: of random bits, and of few bits, whose squares often lie in the middle of two
  // sums.
  c.add("box_sumsq of large boxes", {f32({{"a", 2}, {"b", 301}, {"c", 270}}), f32({{"n", 300007}})},
        [](Builder& b, const Values& in) {
          const ValueId few = b.cast(b.cast(in[0], DType::bf16), DType::f32);
          const ValueId zeros = b.add(OpKind::sub, {in[1], in[1]});
          const ValueId late = b.add(OpKind::concat, {zeros, in[1]}, {{"axis", std::string("n")}});
          return Values{b.add(OpKind::box_sumsq, {in[0]}, {{"axes", Names{"a"}}, {"cells", Ints{2}}}),
                        b.add(OpKind::box_sumsq, {few}, {{"axes", Names{"c"}}, {"cells", Ints{2}}}),
                        b.add(OpKind::box_sumsq, {few}, {{"axes", Names{}}, {"cells", Ints{}}}),
                        b.add(OpKind::box_sumsq, {late}, {{"axes", Names{}}, {"cells", Ints{}}})};
        });
  c.add("rows of many elements",
        {f32({{"a", 3}, {"b", 1301}}), bf16({{"a", 3}, {"b", 1301}}), f32({{"b", 1301}})},
        [](Builder& b, const Values& in) {
          const std::vector<Axis> axes = b.shape(in[0]).axes;
          const ValueId x = b.add(OpKind::add, {in[0], in[1]});
          const ValueId most = b.add(OpKind::reduce_max, {x}, {{"axes", Names{"b"}}});
          const ValueId e = b.add(OpKind::exp, {b.add(OpKind::sub, {x, b.broadcast(most, axes)})});
          const ValueId share = b.add(OpKind::div, {e, b.broadcast(b.sum(e, {"b"}, "striped"), axes)});
          const ValueId square = b.sum(b.add(OpKind::mul, {in[1], in[1]}), {"b"}, "striped");
          const ValueId scaled = b.add(OpKind::mul, {in[1], b.broadcast(square, axes)});
          return Values{share, b.cast(b.add(OpKind::mul, {scaled, b.broadcast(in[2], axes)}), DType::bf16)};
        });
}

void add_wide_rows(Collector& c) {
  // More columns than a block has threads; rows that no source has; sources of no row.
  c.add("scatter_add of wide rows", {bf16({{"pos", 300}, {"embed", 261}}), i32({{"pos", 300}})},
        [](Builder& b, const Values& in) {
          return Values{
              b.add(OpKind::scatter_add, {in[0], in[1], b.i64_scalar(0)},
                    {{"axis", std::string("vocab")}, {"size", int64_t{11}}, {"position", int64_t{0}}})};
        });
  c.add(
      "cross_entropy of a wide vocabulary",
      {f32({{"pos", 3}, {"vocab", 2300}}), i32({{"pos", 3}}), f32({{"pos", 3}})},
      [](Builder& b, const Values& in) {
        const Attrs attrs{{"axis", std::string("vocab")}};
        const ValueId zero = b.i64_scalar(0);
        Values f = b.add_n(OpKind::cross_entropy, {in[0], in[1], zero}, attrs);
        f.push_back(b.add(OpKind::cross_entropy_grad, {in[0], in[1], f[1], f[2], f[3], in[2], zero}, attrs));
        return f;
      });
  // Neighbours that are copied as one element of 16, 8, 4 and 2 bytes.
  for (int64_t n : {32, 18, 6, 5})
    c.add(fmt::format("copies of runs of {}", n),
          {bf16({{"a", 3}, {"b", 4}, {"c", n}}), bf16({{"a", 3}, {"c", n}})},
          [n](Builder& b, const Values& in) {
            const Attrs part{
                {"axis", std::string("c")}, {"start", int64_t{n / 2}}, {"size", int64_t{n - n / 2}}};
            return Values{b.add(OpKind::stack, {in[1], in[1]},
                                {{"axis", std::string("new")}, {"position", int64_t{1}}}),
                          b.add(OpKind::concat, {in[0], in[0]}, {{"axis", std::string("b")}}),
                          b.add(OpKind::concat, {in[0], in[0]}, {{"axis", std::string("c")}}),
                          b.transpose(in[0], {"b", "a", "c"}), b.add(OpKind::slice, {in[0]}, part)};
          });
}

}  // namespace

void add_long(Collector& c) {
  add_long_sums(c);
  add_wide_rows(c);
}

}  // namespace ostro::testing
