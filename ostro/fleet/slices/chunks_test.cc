// Pieces of arrays in the order in which a program reads or makes them.
#include "ostro/fleet/slices/chunks.h"

#include <doctest/doctest.h>

namespace ostro::fleet {
namespace {

// A program like that of a leaf: it reads a table, then stacked layers forwards, then a head; and makes the
// gradients in the opposite order. The ops are not valid; their operands and results are what counts.
ir::Program leaf_like() {
  ir::Program p;
  ir::Block& b = p.body;
  const auto f32 = [](std::vector<ir::Axis> axes) { return ir::Shape{ir::DType::f32, std::move(axes)}; };
  const ir::ValueId layers = b.add_param(f32({{"layers", 3}, {"embed", 2}}));
  const ir::ValueId head = b.add_param(f32({{"embed", 2}}));
  const ir::ValueId table = b.add_param(f32({{"vocab", 5}, {"embed", 2}}));
  const ir::ValueId unused = b.add_param(f32({{"embed", 2}}));
  (void)unused;
  const auto value = [&](std::vector<ir::Axis> axes) { return b.add_value(f32(std::move(axes))); };
  const auto add = [&](ir::OpKind kind, std::vector<ir::ValueId> in, std::vector<ir::ValueId> out,
                       bool reverse) {
    ir::Op op;
    op.kind = kind, op.operands = std::move(in), op.results = std::move(out);
    if (kind == ir::OpKind::scan)
      op.attrs = {{"length", int64_t{3}},
                  {"consts", int64_t{0}},
                  {"carries", int64_t{1}},
                  {"reverse", int64_t{reverse}}};
    b.ops.push_back(std::move(op));
  };
  const ir::ValueId x = value({{"embed", 2}}), y = value({{"embed", 2}}), d_head = value({{"embed", 2}}),
                    dy = value({{"embed", 2}}), dx = value({{"embed", 2}}),
                    d_layers = value({{"layers", 3}, {"embed", 2}}),
                    d_table = value({{"vocab", 5}, {"embed", 2}});
  add(ir::OpKind::gather, {table}, {x}, false);
  add(ir::OpKind::scan, {x, layers}, {y}, false);
  add(ir::OpKind::dot, {y, head}, {d_head, dy}, false);
  add(ir::OpKind::scan, {dy, layers}, {dx, d_layers}, true);
  add(ir::OpKind::scatter_add, {dx}, {d_table}, false);
  b.results = {x, d_layers, d_head, d_table};
  return p;
}

std::vector<std::vector<ArrayPiece>> list(const Chunks& chunks) {
  std::vector<std::vector<ArrayPiece>> out;
  for (size_t i = 0; i < chunks.size(); ++i) out.push_back(chunks[i]);
  return out;
}

using Pieces = std::vector<std::vector<ArrayPiece>>;

TEST_CASE("chunks: parameters by first use, layers one by one, what nobody reads last") {
  const ir::Program p = leaf_like();
  const Chunks read = Chunks::read_by(p, {0, 1, 2, 3}, {true, true, true, true});
  CHECK(list(read) == Pieces{{{2, -1}}, {{0, 0}}, {{0, 1}}, {{0, 2}}, {{1, -1}}, {{3, -1}}});
  CHECK(list(Chunks::read_by(p, {0, 1, 2, 3}, {false, true, true, true})) ==
        Pieces{{{2, -1}}, {{0, -1}}, {{1, -1}}, {{3, -1}}});
  // The table by the first op, layers by the second, the head by the third; what no op reads behind all.
  CHECK(read.when(0) == Chunks::Moment{0, 0});
  CHECK(read.when(3) == Chunks::Moment{1, 2});
  CHECK(read.when(4) == Chunks::Moment{2, 0});
  CHECK(read.when(5) == Chunks::Moment{5, 0});
  // 24 bytes in three rows.
  CHECK(read.through(0, 0, 8, 24) == 2);
  CHECK(read.through(0, 8, 16, 24) == 3);
  CHECK(read.through(0, 0, 24, 24) == 4);
  CHECK(read.through(2, 0, 40, 40) == 1);
}

TEST_CASE("chunks: gradients as the backward pass makes them, the last layer first") {
  const ir::Program p = leaf_like();
  const Chunks made = Chunks::made_by(p, {1, 2, 3}, {true, true, true});
  CHECK(list(made) == Pieces{{{1, -1}}, {{0, 2}}, {{0, 1}}, {{0, 0}}, {{2, -1}}});
  CHECK(made.when(1) == Chunks::Moment{3, 0});  // the last layer in the first iteration
  CHECK(made.when(3) == Chunks::Moment{3, 2});
  ChunkProgress progress(made);
  CHECK(progress.complete() == 0);
  progress.add(0, 16, 24, 24);  // a layer before the head: it waits
  CHECK(progress.complete() == 0);
  progress.add(1, 0, 8, 8);
  CHECK(progress.complete() == 2);
  progress.add(0, 4, 16, 24);  // half of a row does not count
  CHECK(progress.complete() == 3);
  progress.add(0, 0, 24, 24);
  CHECK(progress.complete() == 4);
  progress.add(2, 0, 40, 40);
  CHECK(progress.complete() == made.size());
}

TEST_CASE("chunks: of whole arrays there is one") {
  const Chunks whole = Chunks::of_whole(2);
  CHECK(list(whole) == Pieces{{{0, -1}, {1, -1}}});
  CHECK(whole.through(1, 0, 4, 4) == 1);
}

}  // namespace
}  // namespace ostro::fleet
