#include "ostro/compile/plan/token_head.h"

#include <algorithm>
#include <numeric>

#include "ostro/compile/plan/step_views.h"

namespace ostro::compile {
namespace {

// Groups of N7 must not be cut.
constexpr int64_t kGroup = 32;

bool is_op(const Step& step, ir::OpKind op) { return step.kind == StepKind::kOp && step.op == op; }

bool touches(const Step& step, int32_t buffer) {
  return step.arena == buffer || reads(step, buffer) || writes(step, buffer);
}

}  // namespace

bool is_product(const Step& step) {
  return is_op(step, ir::OpKind::dot) || is_op(step, ir::OpKind::dot_int8);
}

TokenHead::TokenHead(const Plan& plan, const numerics::LeafTable& leaves, size_t loss)
    : plan_(plan),
      leaves_(leaves),
      loss_(loss),
      logits_(plan.steps[loss].in[0]),
      tokens_(plan.steps[loss].in[1].shape.axes),
      buffers_{{logits_}},
      group_(kGroup) {}

int32_t TokenHead::own(int32_t buffer) const {
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].view.buffer == buffer) return static_cast<int32_t>(i);
  return -1;
}

bool TokenHead::is_part(size_t at) const {
  return std::find(parts_.begin(), parts_.end(), at) != parts_.end();
}

bool TokenHead::has_tokens(const View& v) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const ir::Axis& a) { return v.shape.has(a.name); });
}

std::optional<int64_t> TokenHead::token_stride(const View& v) const {
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

bool TokenHead::all_flat(const Step& step) const {
  const auto flat = [&](const View& v) { return token_stride(v).has_value(); };
  return std::all_of(step.in.begin(), step.in.end(), flat) &&
         std::all_of(step.out.begin(), step.out.end(), flat) &&
         std::all_of(step.epilogues.begin(), step.epilogues.end(),
                     [&](const Step& s) { return all_flat(s); });
}

int64_t TokenHead::token_bytes() const {
  int64_t quantised = 0;
  for (const HeadBuffer& b : buffers_)
    if (b.block > 0) quantised = std::max(quantised, b.view.shape.bytes());
  return (bytes() + quantised) / rows();
}

// Whether the step contracts, or quantises along, any of the tokens' axes.
bool TokenHead::over_tokens(const Step& step) const {
  const auto& over = step.attrs.strs("over");
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const ir::Axis& a) {
    return std::find(over.begin(), over.end(), a.name) != over.end();
  });
}

const char* TokenHead::check_sum(const Step& step) const {
  const auto& over = step.attrs.strs("over");
  if (!over_tokens(step)) return nullptr;
  if (!std::equal(over.begin(), over.end(), tokens_.begin(), tokens_.end(),
                  [](const std::string& name, const ir::Axis& a) { return name == a.name; }))
    return "a product sums over some of the tokens' axes, or over others besides";
  if (step.op == ir::OpKind::quantize) return nullptr;
  if (step.out[0].shape.dtype != ir::DType::f32)
    return "the gradient of the weights is rounded, so that it cannot go on from tile to tile";
  if (step.op == ir::OpKind::dot_int8) return nullptr;  // no leaf cuts it
  for (const ir::Axis& a : tokens_)
    if (leaves_.count(a.name) > 1) return "feature leaves cut the sum over the tokens";
  return nullptr;
}

// The draws are numbered row-major in the whole array. A tile begins at another origin of the last axis of
// tokens, which does only if tokens are equally far apart in the whole array too.
const char* TokenHead::check_draws(const Step& step) const {
  if (step.attrs.str("rounding") != "dithered") return nullptr;
  View whole = step.in[0];
  int64_t stride = 1;
  for (size_t i = whole.strides.size(); i-- > 0; stride *= step.attrs.ints("global_sizes")[i])
    whole.strides[i] = stride;
  const auto last = static_cast<size_t>(whole.shape.find(tokens_.back().name));
  const View& origin = step.in[2 + last];
  // token_stride passes over axes of size 1, which may be larger in the whole array.
  if (token_stride(whole) == whole.strides[last] &&
      plan_.buffers[static_cast<size_t>(origin.buffer)].kind == BufferKind::kConstant)
    return nullptr;
  return "the draws of the quantised gradient are not numbered token by token";
}

// Of a step that reads the logits' gradient, or what was quantised from it.
const char* TokenHead::check_reader(const Step& step) const {
  if (is_product(step)) return check_sum(step);
  if (!is_op(step, ir::OpKind::quantize))
    return "something else than a product reads the logits or their gradient";
  if (const char* why = check_sum(step)) return why;
  return check_draws(step);
}

const char* TokenHead::check_factors(const Step& step) const {
  const bool integers = step.op == ir::OpKind::dot_int8;
  const View &a = step.in[0], &b = step.in[integers ? 2 : 1];
  if (has_tokens(a) && has_tokens(b) && has_tokens(step.out[0]))
    return "both operands of a product have the tokens' axes";
  if (integers && over_tokens(step) && (own(a.buffer) < 0 || own(b.buffer) < 0))
    return "what is quantised along the tokens is read elsewhere, too";
  return nullptr;
}

// A part runs where the loss does.
const char* TokenHead::check_operands(size_t at) const {
  const auto [first, last] = std::minmax(at, loss_);
  for (const View& v : plan_.steps[at].in) {
    if (own(v.buffer) >= 0) continue;
    for (size_t s = first + 1; s < last; ++s)
      if (writes(plan_.steps[s], v.buffer))
        return "an operand of a product of the gradient is made after the loss";
  }
  return nullptr;
}

// Makes a step that quantises a part. Returns false where its results are not temporaries of their own.
bool TokenHead::add_quantised(size_t at) {
  const Step& step = plan_.steps[at];
  for (const View& v : step.out)
    if (plan_.buffers[static_cast<size_t>(v.buffer)].kind != BufferKind::kTemp || v.offset != 0) return false;
  const int64_t block = step.attrs.i64("block");
  for (const View& v : step.out) buffers_.push_back({v, block});
  if (over_tokens(step)) group_ = std::lcm(group_, block);
  parts_.push_back(at);
  return true;
}

// What is quantised along the tokens for a part, and read by nothing else, is quantised tile by tile.
void TokenHead::add_quantised_operands() {
  for (size_t at = 0; at < plan_.steps.size(); ++at) {
    const Step& step = plan_.steps[at];
    if (!is_op(step, ir::OpKind::quantize) || is_part(at) || !over_tokens(step)) continue;
    bool wanted = false, elsewhere = false;
    for (size_t s = 0; s < plan_.steps.size(); ++s)
      if (s != at && std::any_of(step.out.begin(), step.out.end(),
                                 [&](const View& v) { return touches(plan_.steps[s], v.buffer); }))
        (is_part(s) ? wanted : elsewhere) = true;
    if (wanted && !elsewhere && check_reader(step) == nullptr) add_quantised(at);
  }
}

const char* TokenHead::find() {
  const Step& loss = plan_.steps[loss_];
  if (plan_.buffers[static_cast<size_t>(logits_.buffer)].kind != BufferKind::kTemp || logits_.offset != 0 ||
      !logits_.dense())
    return "the logits are a result, or part of another value";
  for (const Step& gradient : loss.epilogues)
    if (gradient.out[0].buffer != logits_.buffer) return "the gradient does not take the place of the logits";
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    if (std::none_of(buffers_.begin(), buffers_.end(),
                     [&](const HeadBuffer& b) { return touches(step, b.view.buffer); }))
      continue;
    if (s > loss_) {
      if (const char* why = check_reader(step)) return why;
      if (step.op != ir::OpKind::quantize)
        parts_.push_back(s);
      else if (!add_quantised(s))
        return "a quantised gradient is a result, or part of another value";
      continue;
    }
    if (s < loss_ && (!parts_.empty() || !is_product(step) || step.out[0].buffer != logits_.buffer))
      return "the logits are no product's result alone";
    parts_.push_back(s);
  }
  if (parts_.front() == loss_) return "the logits are no product's result";
  add_quantised_operands();
  std::sort(parts_.begin(), parts_.end());
  for (size_t s : parts_) {
    const Step& step = plan_.steps[s];
    if (!all_flat(step)) return "the tokens of an operand are not equally far apart";
    if (is_product(step))
      if (const char* why = check_factors(step)) return why;
    if (const char* why = check_operands(s)) return why;
  }
  return nullptr;
}

}  // namespace ostro::compile
