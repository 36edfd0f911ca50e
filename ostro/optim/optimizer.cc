#include "ostro/optim/optimizer.h"

#include <algorithm>

#include "ostro/optim/schedule.h"

namespace ostro::optim {

std::unique_ptr<UpdateRule> make_rule(const OptimizerOptions& options) {
  struct Make {
    std::unique_ptr<UpdateRule> operator()(const AdamOptions& o) const { return make_adamw(o); }
    std::unique_ptr<UpdateRule> operator()(const LionOptions& o) const { return make_lion(o); }
    std::unique_ptr<UpdateRule> operator()(const SgdOptions& o) const { return make_sgd(o); }
    std::unique_ptr<UpdateRule> operator()(const AdafactorOptions& o) const { return make_adafactor(o); }
    std::unique_ptr<UpdateRule> operator()(const MuonOptions& o) const { return make_muon(o); }
  };
  return std::visit(Make{}, options);
}

Array descend(const RuleInputs& in, const Array& u) {
  const Array step = in.weight_decay != 0 ? u + in.p * rounded(in.weight_decay) : u;
  return in.p - step * in.lr;
}

Optimizer::Optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters, Boxes boxes)
    : options_(options),
      parameters_(std::move(parameters)),
      boxes_(std::move(boxes)),
      rule_(make_rule(options)) {
  scalars_ = {"lr"};
  for (const Scalar& s : rule_->scalars(0)) scalars_.push_back(s.first);
  std::vector<std::vector<StateArray>> kept;
  std::vector<std::string> names;
  for (const Parameter& p : parameters_) {
    kept.push_back(rule_->state(p));
    for (const StateArray& a : kept.back())
      if (std::find(names.begin(), names.end(), a.name) == names.end()) names.push_back(a.name);
  }
  indices_.resize(parameters_.size());
  for (size_t k = 0; k < kept.size(); ++k) indices_[k].resize(kept[k].size());
  for (const std::string& name : names)
    for (size_t k = 0; k < kept.size(); ++k)
      for (size_t i = 0; i < kept[k].size(); ++i) {
        if (kept[k][i].name != name) continue;
        indices_[k][i] = state_.size();
        state_.push_back({name, k, kept[k][i].shape});
      }
}

RuleResults Optimizer::update(size_t k, const Array& p, const std::vector<Array>& state,
                              const Array& gradient, const Array& inv, const Array& clip,
                              const std::vector<Array>& scalars) const {
  const CommonOptions& o = common(options_);
  RuleInputs in;
  in.p = p;
  in.g = (gradient * inv) * clip;
  in.state = state;
  in.lr = scalars[0];
  in.scalars.assign(scalars.begin() + 1, scalars.end());
  in.boxes = &boxes_;
  in.weight_decay = decays(o, parameters_[k].path) ? o.weight_decay : 0;
  return rule_->update(parameters_[k], in);
}

std::vector<float> step_scalars(const OptimizerOptions& options, int64_t step, int64_t num_train_steps) {
  std::vector<float> out{rounded(learning_rate(common(options), step, num_train_steps))};
  for (const Scalar& s : make_rule(options)->scalars(step)) out.push_back(s.second);
  return out;
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*')
    return !text.empty() && text[0] == pattern[0] && glob_matches(pattern.substr(1), text.substr(1));
  for (size_t skip = 0; skip <= text.size(); ++skip)
    if (glob_matches(pattern.substr(1), text.substr(skip))) return true;
  return false;
}

bool decays(const CommonOptions& o, const std::string& path) {
  if (o.weight_decay_modules) {
    for (const std::string& word : *o.weight_decay_modules)
      if (glob_matches(word, path)) return true;
    return false;
  }
  for (const char* word : {"norm", "embedding", "bias"})
    if (path.find(word) != std::string::npos) return false;
  return true;
}

}  // namespace ostro::optim
