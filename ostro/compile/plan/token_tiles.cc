#include "ostro/compile/plan/token_tiles.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ostro/compile/plan/memory.h"
#include "ostro/compile/plan/step_views.h"

namespace ostro::compile {
namespace {

// Groups of N7 must not be cut.
constexpr int64_t kGroup = 32;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

bool is_op(const Step& step, ir::OpKind op) { return step.kind == StepKind::kOp && step.op == op; }

bool touches(const Step& step, int32_t buffer) {
  return step.arena == buffer || reads(step, buffer) || writes(step, buffer);
}

// One head of a plan.
class Head {
 public:
  Head(const Plan& plan, const numerics::LeafTable& leaves, size_t loss)
      : plan_(plan),
        leaves_(leaves),
        loss_(loss),
        logits_(plan.steps[loss].in[0]),
        tokens_(plan.steps[loss].in[1].shape.axes) {}

  int64_t rows() const { return plan_.steps[loss_].in[1].shape.count(); }
  int64_t bytes() const { return logits_.shape.bytes(); }
  const View& logits() const { return logits_; }

  // Finds the steps. Returns why the head cannot be tiled, or nullptr.
  const char* find();
  // Returns the step of kind kTiles that does their work in tiles of `rows` tokens. Removes the steps from
  // `plan` (the plan given to the constructor), except the cross-entropy, which the caller replaces.
  Step take(Plan& plan, int64_t rows);

 private:
  // The distance in elements from one token of the view to the next. Nothing when the distances differ.
  std::optional<int64_t> token_stride(const View& v) const;
  bool has_tokens(const View& v) const;
  bool all_flat(const Step& step) const;
  const char* check_reader(size_t at) const;
  bool is_part(size_t at) const { return std::find(parts_.begin(), parts_.end(), at) != parts_.end(); }

  View piece_of(const View& v, int64_t rows, int32_t buffer) const;
  Step step_of(const Step& step, int64_t rows);
  Plan region_of(int64_t rows, bool repeated);
  int32_t bind(const View& v, bool written);

  const Plan& plan_;
  const numerics::LeafTable& leaves_;
  size_t loss_;
  View logits_;
  std::vector<ir::Axis> tokens_;
  std::vector<size_t> parts_;  // the steps, in the order in which they run

  // The operands and results of the new step, and the place of each (buffer, bytes from token to token) in
  // `bound_`.
  struct Bound {
    View view;
    int64_t advance;
    bool written;
  };
  std::vector<Bound> bound_;
  std::map<std::pair<int32_t, int64_t>, int32_t> index_;
};

bool Head::has_tokens(const View& v) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const ir::Axis& a) { return v.shape.has(a.name); });
}

std::optional<int64_t> Head::token_stride(const View& v) const {
  if (!has_tokens(v)) return 0;
  int64_t stride = -1, inside = 1;
  for (size_t i = tokens_.size(); i-- > 0; inside *= tokens_[i].size) {
    const int64_t at = v.shape.find(tokens_[i].name);
    if (at < 0) return std::nullopt;
    if (tokens_[i].size == 1) continue;
    const int64_t here = v.strides[static_cast<size_t>(at)];
    if (stride < 0) stride = here / inside;
    if (here < 0 || here != stride * inside) return std::nullopt;
  }
  return std::max<int64_t>(stride, 0);
}

bool Head::all_flat(const Step& step) const {
  const auto flat = [&](const View& v) { return token_stride(v).has_value(); };
  return std::all_of(step.in.begin(), step.in.end(), flat) &&
         std::all_of(step.out.begin(), step.out.end(), flat) &&
         std::all_of(step.epilogues.begin(), step.epilogues.end(),
                     [&](const Step& s) { return all_flat(s); });
}

const char* Head::check_reader(size_t at) const {
  const Step& step = plan_.steps[at];
  if (!is_op(step, ir::OpKind::dot))
    return "something else than a product reads the logits or their gradient";
  const auto& over = step.attrs.strs("over");
  const auto summed =
      static_cast<size_t>(std::count_if(tokens_.begin(), tokens_.end(), [&](const ir::Axis& a) {
        return std::find(over.begin(), over.end(), a.name) != over.end();
      }));
  if (summed != 0) {
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (summed != tokens_.size() || over.size() != summed || over[i] != tokens_[i].name)
        return "a product sums over some of the tokens' axes, or over others besides";
    if (step.out[0].shape.dtype != ir::DType::f32)
      return "the gradient of the weights is rounded, so that it cannot go on from tile to tile";
    for (const ir::Axis& a : tokens_)
      if (leaves_.count(a.name) > 1) return "feature leaves cut the sum over the tokens";
  }
  for (const View& v : step.in) {
    if (v.buffer == logits_.buffer) continue;
    for (size_t s = loss_ + 1; s < at; ++s)
      if (writes(plan_.steps[s], v.buffer))
        return "an operand of a product of the gradient is made after the loss";
  }
  return nullptr;
}

const char* Head::find() {
  const Step& loss = plan_.steps[loss_];
  if (plan_.buffers[static_cast<size_t>(logits_.buffer)].kind != BufferKind::kTemp || logits_.offset != 0 ||
      !logits_.dense())
    return "the logits are a result, or part of another value";
  for (const Step& gradient : loss.epilogues)
    if (gradient.out[0].buffer != logits_.buffer) return "the gradient does not take the place of the logits";
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    if (!touches(step, logits_.buffer)) continue;
    parts_.push_back(s);
    if (s == loss_) continue;
    if (s > loss_) {
      if (const char* why = check_reader(s)) return why;
    } else if (parts_.size() > 1 || !is_op(step, ir::OpKind::dot) || step.out[0].buffer != logits_.buffer) {
      return "the logits are no product's result alone";
    }
  }
  if (parts_.front() == loss_) return "the logits are no product's result";
  for (size_t s : parts_) {
    if (!all_flat(plan_.steps[s])) return "the tokens of an operand are not equally far apart";
    if (is_op(plan_.steps[s], ir::OpKind::dot) && has_tokens(plan_.steps[s].in[0]) &&
        has_tokens(plan_.steps[s].in[1]) && has_tokens(plan_.steps[s].out[0]))
      return "both operands of a product have the tokens' axes";
  }
  return nullptr;
}

// The new step's operand or result with v's memory.
int32_t Head::bind(const View& v, bool written) {
  const int64_t advance = *token_stride(v) * ir::dtype_size(v.shape.dtype);
  const auto [it, fresh] = index_.try_emplace({v.buffer, advance}, static_cast<int32_t>(bound_.size()));
  if (fresh) bound_.push_back({v, advance, written});
  if (written) bound_[static_cast<size_t>(it->second)].view = v;
  bound_[static_cast<size_t>(it->second)].written |= written;
  return it->second;
}

View Head::piece_of(const View& v, int64_t rows, int32_t buffer) const {
  View piece = v;
  piece.buffer = buffer;
  if (!has_tokens(v)) return piece;
  const int64_t stride = *token_stride(v);
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto at = static_cast<size_t>(v.shape.find(tokens_[i].name));
    const bool last = i + 1 == tokens_.size();
    piece.shape.axes[at].size = last ? rows : 1;
    piece.strides[at] = last ? stride : stride * rows;
  }
  return piece;
}

// Buffer 0 of a region is the logits of a tile, buffer i + 1 is bound_[i].
Step Head::step_of(const Step& step, int64_t rows) {
  Step piece = step;
  const double share = static_cast<double>(rows) / static_cast<double>(this->rows());
  const auto place = [&](View& v, bool written) {
    v = piece_of(v, rows, v.buffer == logits_.buffer ? 0 : bind(v, written) + 1);
  };
  for (View& v : piece.in) place(v, false);
  for (View& v : piece.out) place(v, true);
  for (Step& epilogue : piece.epilogues) epilogue = step_of(epilogue, rows);
  piece.goes_on = is_op(step, ir::OpKind::dot) && !has_tokens(step.out[0]);
  piece.flops *= share;
  piece.bytes *= share;
  return piece;
}

Plan Head::region_of(int64_t rows, bool repeated) {
  Plan region;
  region.buffers.push_back({BufferKind::kTemp, 0, bytes() / this->rows() * rows});
  for (size_t s : parts_) {
    Step piece = step_of(plan_.steps[s], rows);
    // The gradient times the weights is a long contraction: all weights are packed once.
    piece.keeps_b =
        repeated && s > loss_ && is_op(piece, ir::OpKind::dot) && !piece.goes_on && piece.in[0].buffer == 0;
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

Step Head::take(Plan& plan, int64_t rows) {
  Step tiles;
  tiles.kind = StepKind::kTiles;
  const Step& loss = plan.steps[loss_];
  tiles.op = loss.op;
  tiles.scope = plan.steps[parts_.front()].scope;
  tiles.extent = this->rows() / rows;
  tiles.regions.push_back(region_of(rows, tiles.extent > 1));
  const int64_t rest = this->rows() % rows;
  if (rest > 0) tiles.regions.push_back(region_of(rest, false));
  for (const Bound& b : bound_) {
    (b.written ? tiles.out : tiles.in).push_back(b.view);
    (b.written ? tiles.out_advance : tiles.in_advance).push_back(b.advance * rows);
  }
  for (size_t s : parts_) tiles.flops += plan.steps[s].flops, tiles.bytes += plan.steps[s].bytes;
  for (auto s = parts_.rbegin(); s != parts_.rend(); ++s)
    if (*s != loss_) plan.steps.erase(plan.steps.begin() + static_cast<int64_t>(*s));
  return tiles;
}

}  // namespace

void tile_heads(Plan& plan, const numerics::LeafTable& leaves, const Target& target, bool reasons) {
  if (target.tile_rows < 0) return;
  for (size_t at = 0; at < plan.steps.size(); ++at) {
    if (!is_op(plan.steps[at], ir::OpKind::cross_entropy)) continue;
    Head head(plan, leaves, at);
    if (head.rows() == 0 || (target.tile_rows == 0 && head.bytes() <= target.tile_bytes)) continue;
    int64_t most = target.tile_rows;
    if (most == 0) most = std::max(target.least_tile_rows, target.tile_bytes / (head.bytes() / head.rows()));
    // Tiles of nearly equal height.
    const int64_t rows =
        round_up(ceil_div(head.rows(), ceil_div(head.rows(), round_up(most, kGroup))), kGroup);
    if (rows >= head.rows()) continue;
    if (const char* why = head.find()) {
      if (reasons)
        plan.steps[at].not_fused.push_back(
            {{ir::OpKind::dot, plan.steps[at].scope}, head.logits().shape, why});
      continue;
    }
    const int32_t arena = static_cast<int32_t>(plan.buffers.size());
    const auto steps_before = std::count_if(plan.steps.begin(), plan.steps.begin() + static_cast<int64_t>(at),
                                            [&](const Step& s) { return touches(s, head.logits().buffer); });
    Step tiles = head.take(plan, rows);
    int64_t bytes = 0;
    for (const Plan& region : tiles.regions) bytes = std::max(bytes, region.arena_bytes);
    plan.buffers.push_back({BufferKind::kTemp, 0, bytes});
    tiles.arena = arena;
    at -= static_cast<size_t>(steps_before);
    plan.steps[at] = std::move(tiles);
  }
}

}  // namespace ostro::compile
