#include "ostro/compile/plan/token_tiles.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ostro/compile/plan/memory.h"
#include "ostro/compile/plan/step_views.h"
#include "ostro/compile/plan/token_head.h"

namespace ostro::compile {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Makes the step of kind kTiles that does the work of a head in tiles of `rows` tokens.
class HeadTiles {
 public:
  // `keeps`: the engine may keep packed weights (Target::packs).
  HeadTiles(Plan& plan, const TokenHead& head, int64_t rows, bool keeps)
      : plan_(plan), head_(head), rows_(rows), keeps_(keeps) {}

  // Removes the head's steps from the plan, except the cross-entropy, which the caller replaces.
  Step take();

 private:
  int64_t tiles() const { return ceil_div(head_.rows(), rows_); }
  View piece_of(const View& v, int64_t rows, int32_t buffer) const;
  View own_piece_of(int32_t own, const View& v, int64_t rows) const;
  View origin_of(const View& v);
  Step step_of(const Step& step, int64_t rows);
  Plan region_of(int64_t rows, bool repeated);
  int32_t bind(const View& v, int64_t advance, bool written);

  Plan& plan_;
  const TokenHead& head_;
  int64_t rows_;
  bool keeps_;

  // The operands and results of the new step, and the place of each (buffer, bytes from tile to tile) in
  // `bound_`.
  struct Bound {
    View view;
    int64_t advance;
    bool written;
  };
  std::vector<Bound> bound_;
  std::map<std::pair<int32_t, int64_t>, int32_t> index_;
  std::map<int32_t, int32_t> origins_;  // a constant, and that with an origin for each tile
};

// The number in a region of the new step's operand or result with v's memory.
int32_t HeadTiles::bind(const View& v, int64_t advance, bool written) {
  const auto [it, fresh] = index_.try_emplace({v.buffer, advance}, static_cast<int32_t>(bound_.size()));
  if (fresh) bound_.push_back({v, advance, written});
  Bound& bound = bound_[static_cast<size_t>(it->second)];
  if (written) bound.view = v;
  bound.written |= written;
  return static_cast<int32_t>(head_.buffers().size()) + it->second;
}

View HeadTiles::piece_of(const View& v, int64_t rows, int32_t buffer) const {
  View piece = v;
  piece.buffer = buffer;
  if (!head_.has_tokens(v)) return piece;
  const int64_t stride = *head_.token_stride(v);
  const std::vector<ir::Axis>& tokens = head_.tokens();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto at = static_cast<size_t>(v.shape.find(tokens[i].name));
    const bool last = i + 1 == tokens.size();
    piece.shape.axes[at].size = last ? rows : 1;
    piece.strides[at] = last ? stride : stride * rows;
  }
  return piece;
}

// Of the logits' memory, or of integers and scales, which are dense in a tile, too.
View HeadTiles::own_piece_of(int32_t own, const View& v, int64_t rows) const {
  View piece = piece_of(v, rows, own);
  const int64_t block = head_.buffers()[static_cast<size_t>(own)].block;
  if (block == 0) return piece;
  if (!head_.has_tokens(v))
    piece.shape.axes.back().size = ceil_div(rows, block);  // scales of blocks of tokens
  return View::whole(own, piece.shape);
}

// The origin of the last axis of tokens: another one in each tile.
View HeadTiles::origin_of(const View& v) {
  const auto [it, fresh] = origins_.try_emplace(v.buffer, static_cast<int32_t>(plan_.buffers.size()));
  if (fresh) {
    int64_t origin = 0;
    std::memcpy(
        &origin,
        plan_.constants[static_cast<size_t>(plan_.buffers[static_cast<size_t>(v.buffer)].index)].data(),
        sizeof origin);
    std::vector<std::byte> data(static_cast<size_t>(tiles()) * sizeof origin);
    for (int64_t i = 0; i < tiles(); ++i, origin += rows_)
      std::memcpy(data.data() + static_cast<size_t>(i) * sizeof origin, &origin, sizeof origin);
    plan_.buffers.push_back({BufferKind::kConstant, static_cast<int64_t>(plan_.constants.size()),
                             static_cast<int64_t>(data.size())});
    plan_.constants.push_back(std::move(data));
  }
  const View all = View::whole(it->second, {ir::DType::i64, {{"tile", tiles()}}});
  return View::whole(bind(all, sizeof(int64_t), false), v.shape);
}

// Buffers of a region are the head's own, then those of bound_.
Step HeadTiles::step_of(const Step& step, int64_t rows) {
  Step piece = step;
  const double share = static_cast<double>(rows) / static_cast<double>(head_.rows());
  const auto place = [&](View& v, bool written) {
    const int32_t own = head_.own(v.buffer);
    if (own >= 0)
      v = own_piece_of(own, v, rows);
    else
      v = piece_of(v, rows, bind(v, *head_.token_stride(v) * ir::dtype_size(v.shape.dtype) * rows_, written));
  };
  const bool dithered = step.kind == StepKind::kOp && step.op == ir::OpKind::quantize &&
                        step.attrs.str("rounding") == "dithered";
  const auto origin =
      dithered ? 2 + static_cast<size_t>(step.in[0].shape.find(head_.tokens().back().name)) : step.in.size();
  for (size_t i = 0; i < piece.in.size(); ++i) {
    if (i == origin)
      piece.in[i] = origin_of(piece.in[i]);
    else
      place(piece.in[i], false);
  }
  for (View& v : piece.out) place(v, true);
  for (Step& epilogue : piece.epilogues) epilogue = step_of(epilogue, rows);
  piece.goes_on = is_product(step) && !head_.has_tokens(step.out[0]);
  piece.flops *= share;
  piece.bytes *= share;
  return piece;
}

Plan HeadTiles::region_of(int64_t rows, bool repeated) {
  Plan region;
  const std::vector<HeadBuffer>& own = head_.buffers();
  for (size_t i = 0; i < own.size(); ++i)
    region.buffers.push_back(
        {BufferKind::kTemp, 0, own_piece_of(static_cast<int32_t>(i), own[i].view, rows).shape.bytes()});
  for (size_t s : head_.parts()) {
    Step piece = step_of(plan_.steps[s], rows);
    // The gradient times the weights is a long contraction: all weights are packed once.
    piece.keeps_b = repeated && s > head_.loss() && piece.kind == StepKind::kOp &&
                    piece.op == ir::OpKind::dot && !piece.goes_on && piece.in[0].buffer == 0;
    region.steps.push_back(std::move(piece));
  }
  int64_t params = 0, results = 0;
  for (const Bound& b : bound_) {
    const int64_t bytes = plan_.buffers[static_cast<size_t>(b.view.buffer)].bytes;
    region.buffers.push_back(b.written ? PlanBuffer{BufferKind::kResult, results++, bytes}
                                       : PlanBuffer{BufferKind::kParam, params++, bytes});
    (b.written ? region.results : region.params).push_back(b.view.shape);
  }
  plan_memory(region);
  return region;
}

Step HeadTiles::take() {
  Step made;
  made.kind = StepKind::kTiles;
  const std::vector<size_t>& parts = head_.parts();
  made.op = plan_.steps[head_.loss()].op;
  made.scope = plan_.steps[parts.front()].scope;
  made.extent = head_.rows() / rows_;
  made.regions.push_back(region_of(rows_, keeps_ && made.extent > 1));
  const int64_t rest = head_.rows() % rows_;
  if (rest > 0) made.regions.push_back(region_of(rest, false));
  for (const Bound& b : bound_) {
    (b.written ? made.out : made.in).push_back(b.view);
    (b.written ? made.out_advance : made.in_advance).push_back(b.advance);
  }
  for (size_t s : parts) made.flops += plan_.steps[s].flops, made.bytes += plan_.steps[s].bytes;
  for (auto s = parts.rbegin(); s != parts.rend(); ++s)
    if (*s != head_.loss()) plan_.steps.erase(plan_.steps.begin() + static_cast<int64_t>(*s));
  return made;
}

// Tokens of a tile, so that tiles are of nearly equal height.
int64_t rows_of_tile(const TokenHead& head, const Target& target) {
  const int64_t group = head.group();
  int64_t most = target.tile_rows;
  if (most == 0) {
    most = std::max(target.least_tile_rows, target.tile_bytes / head.token_bytes());
    // With large groups, rounding up could double the tile.
    if (group > target.least_tile_rows / 2) most = std::max(group, most / group * group);
  }
  return round_up(ceil_div(head.rows(), ceil_div(head.rows(), round_up(most, group))), group);
}

}  // namespace

void tile_heads(Plan& plan, const numerics::LeafTable& leaves, const Target& target, bool reasons) {
  if (target.tile_rows < 0) return;
  for (size_t at = 0; at < plan.steps.size(); ++at) {
    if (plan.steps[at].kind != StepKind::kOp || plan.steps[at].op != ir::OpKind::cross_entropy) continue;
    TokenHead head(plan, leaves, at);
    if (head.rows() == 0 || (target.tile_rows == 0 && head.bytes() <= target.tile_bytes)) continue;
    const char* const why = head.find();
    const int64_t rows = rows_of_tile(head, target);
    if (rows >= head.rows()) continue;
    if (why != nullptr) {
      if (reasons)
        plan.steps[at].not_fused.push_back(
            {{ir::OpKind::dot, plan.steps[at].scope}, head.logits().shape, why});
      continue;
    }
    const auto before =
        std::count_if(head.parts().begin(), head.parts().end(), [&](size_t s) { return s < at; });
    Step tiles = HeadTiles(plan, head, rows, target.packs).take();
    int64_t bytes = 0;
    for (const Plan& region : tiles.regions) bytes = std::max(bytes, region.arena_bytes);
    tiles.arena = static_cast<int32_t>(plan.buffers.size());
    plan.buffers.push_back({BufferKind::kTemp, 0, bytes});
    at -= static_cast<size_t>(before);
    plan.steps[at] = std::move(tiles);
  }
}

}  // namespace ostro::compile
