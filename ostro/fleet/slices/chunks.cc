#include "ostro/fleet/slices/chunks.h"

#include <algorithm>
#include <map>

namespace ostro::fleet {
namespace {

using Moment = Chunks::Moment;

// The iterations of a loop that stacks or reads arrays index by index.
struct Loop {
  size_t op = 0;
  int64_t length = 0;
  bool reverse = false;
  Moment moment(int64_t row) const { return {op, reverse ? length - 1 - row : row}; }
};

Loop loop_of(size_t number, const ir::Op& op) {
  return {number, op.attrs.i64("length"), op.attrs.i64("reverse", 0) != 0};
}

// Whether operand or result number `place` of the op is an array of which each iteration takes one index.
bool is_stacked(const ir::Op& op, size_t place, bool result) {
  if (op.kind != ir::OpKind::scan) return false;
  const int64_t carries = op.attrs.i64("carries");
  return static_cast<int64_t>(place) >= (result ? carries : op.attrs.i64("consts") + carries);
}

}  // namespace

class Chunks::Builder {
 public:
  explicit Builder(size_t arrays) : rows_(arrays, 0) {}

  bool known(size_t k) const { return rows_[k] > 0; }
  void whole(size_t k, Moment when) {
    rows_[k] = 1;
    at_[when].push_back({k, -1});
  }
  void by_row(size_t k, const Loop& loop) {
    rows_[k] = loop.length;
    for (int64_t row = 0; row < loop.length; ++row) at_[loop.moment(row)].push_back({k, row});
  }
  void add(size_t k, const ir::Shape& shape, size_t number, const ir::Op& op, bool stacked, bool allowed) {
    if (stacked && allowed && op.attrs.i64("length") > 1 && shape.axes[0].size == op.attrs.i64("length"))
      by_row(k, loop_of(number, op));
    else
      whole(k, {number, 0});
  }

  Chunks chunks() const {
    Chunks out;
    for (const int64_t rows : rows_) out.chunk_of_.emplace_back(static_cast<size_t>(rows));
    for (const auto& [when, pieces] : at_) {
      for (const ArrayPiece& piece : pieces)
        out.chunk_of_[piece.k][static_cast<size_t>(std::max<int64_t>(piece.row, 0))] = out.list_.size();
      out.list_.push_back(pieces);
      out.when_.push_back(when);
    }
    return out;
  }

 private:
  std::vector<int64_t> rows_;  // 0: not known yet
  std::map<Moment, std::vector<ArrayPiece>> at_;
};

Chunks Chunks::of_whole(size_t arrays) {
  Builder builder(arrays);
  for (size_t k = 0; k < arrays; ++k) builder.whole(k, {0, 0});
  return builder.chunks();
}

Chunks Chunks::read_by(const ir::Program& program, const std::vector<size_t>& params,
                       const std::vector<bool>& by_row) {
  const ir::Block& body = program.body;
  std::map<ir::ValueId, size_t> arrays;
  for (size_t k = 0; k < params.size(); ++k) arrays[body.params[params[k]]] = k;
  Builder builder(params.size());
  for (size_t number = 0; number < body.ops.size(); ++number) {
    const ir::Op& op = body.ops[number];
    for (size_t place = 0; place < op.operands.size(); ++place) {
      const auto array = arrays.find(op.operands[place]);
      if (array == arrays.end() || builder.known(array->second)) continue;
      builder.add(array->second, body.shape(array->first), number, op, is_stacked(op, place, false),
                  by_row[array->second]);
    }
  }
  for (size_t k = 0; k < params.size(); ++k)
    if (!builder.known(k)) builder.whole(k, {body.ops.size(), 0});
  return builder.chunks();
}

Chunks Chunks::made_by(const ir::Program& program, const std::vector<size_t>& results,
                       const std::vector<bool>& by_row) {
  const ir::Block& body = program.body;
  std::map<ir::ValueId, std::pair<size_t, size_t>> makers;  // value -> op, and which of its results
  for (size_t number = 0; number < body.ops.size(); ++number)
    for (size_t place = 0; place < body.ops[number].results.size(); ++place)
      makers[body.ops[number].results[place]] = {number, place};
  Builder builder(results.size());
  for (size_t k = 0; k < results.size(); ++k) {
    const ir::ValueId value = body.results[results[k]];
    const auto maker = makers.find(value);
    if (maker == makers.end()) {
      builder.whole(k, {body.ops.size(), 0});
      continue;
    }
    const auto [number, place] = maker->second;
    const ir::Op& op = body.ops[number];
    builder.add(k, body.shape(value), number, op, is_stacked(op, place, true), by_row[k]);
  }
  return builder.chunks();
}

size_t Chunks::through(size_t k, int64_t begin, int64_t end, int64_t bytes) const {
  const int64_t each = bytes / rows(k);
  size_t out = 0;
  for (int64_t row = 0; row < rows(k); ++row)
    if (begin < (row + 1) * each && row * each < end) out = std::max(out, chunk_of(k, row) + 1);
  return out;
}

ChunkProgress::ChunkProgress(const Chunks& chunks) : chunks_(chunks) {
  for (size_t i = 0; i < chunks.size(); ++i) {
    missing_.push_back(chunks[i].size());
    for (const ArrayPiece& piece : chunks[i]) {
      if (piece.k >= there_.size()) there_.resize(piece.k + 1);
      there_[piece.k].assign(static_cast<size_t>(chunks.rows(piece.k)), false);
    }
  }
}

void ChunkProgress::add(size_t k, int64_t begin, int64_t end, int64_t bytes) {
  const int64_t each = bytes / chunks_.rows(k);
  for (int64_t row = 0; row < chunks_.rows(k); ++row) {
    if (row * each < begin || (row + 1) * each > end || there_[k][static_cast<size_t>(row)]) continue;
    there_[k][static_cast<size_t>(row)] = true;
    --missing_[chunks_.chunk_of(k, row)];
  }
  while (complete_ < missing_.size() && missing_[complete_] == 0) ++complete_;
}

}  // namespace ostro::fleet
