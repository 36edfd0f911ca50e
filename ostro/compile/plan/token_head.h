// TokenHead: the steps of a plan that are a model's head: the product that makes the logits, their
// cross-entropy, and the products that read the gradient of the logits. Internal to compile.
//
// Where these are products of integers (numerics.md, N20), the steps that quantise their operands along the
// tokens or from the gradient belong to it, too.
#pragma once

#include <optional>
#include <vector>

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// A temporary that only steps of the head read and write.
struct HeadBuffer {
  View view;
  int64_t block = 0;  // of the step that quantised it; 0: it holds the logits
};

// Borrows the plan.
class TokenHead {
 public:
  // `loss` is the number of a cross_entropy.
  TokenHead(const Plan& plan, const numerics::LeafTable& leaves, size_t loss);

  // Finds the steps. Returns why the head cannot be cut into tiles of tokens, or nullptr.
  const char* find();

  size_t loss() const { return loss_; }
  const std::vector<ir::Axis>& tokens() const { return tokens_; }
  int64_t rows() const { return plan_.steps[loss_].in[1].shape.count(); }  // tokens
  int64_t bytes() const { return logits_.shape.bytes(); }
  const View& logits() const { return logits_; }

  // After find(). The steps, in the order in which they run; the temporaries, the first of which holds the
  // logits; and what the tokens of a tile must be a multiple of.
  const std::vector<size_t>& parts() const { return parts_; }
  const std::vector<HeadBuffer>& buffers() const { return buffers_; }
  int64_t group() const { return group_; }
  // What a token needs of the temporaries that live at the same time: of the logits, and of the largest of
  // what is quantised from their gradient.
  int64_t token_bytes() const;

  // The number of a buffer in buffers(), or -1.
  int32_t own(int32_t buffer) const;
  // The distance in elements from one token of the view to the next, 0 for a view without tokens. Nothing
  // when the distances differ.
  std::optional<int64_t> token_stride(const View& v) const;
  bool has_tokens(const View& v) const;

 private:
  bool all_flat(const Step& step) const;
  bool over_tokens(const Step& step) const;
  bool is_part(size_t at) const;
  const char* check_sum(const Step& step) const;
  const char* check_draws(const Step& step) const;
  const char* check_reader(const Step& step) const;
  const char* check_factors(const Step& step) const;
  const char* check_operands(size_t at) const;
  bool add_quantised(size_t at);
  void add_quantised_operands();

  const Plan& plan_;
  const numerics::LeafTable& leaves_;
  size_t loss_;
  View logits_;
  std::vector<ir::Axis> tokens_;
  std::vector<size_t> parts_;
  std::vector<HeadBuffer> buffers_;
  int64_t group_ = 0;
};

// A product of floats or of integers.
bool is_product(const Step& step);

}  // namespace ostro::compile
