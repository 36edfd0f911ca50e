#include "ostro/optim/optimizer.h"

#include <fmt/format.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "ostro/config/glob.h"
#include "ostro/numerics/functions.h"
#include "ostro/optim/matrix_axes.h"
#include "ostro/optim/schedule.h"

namespace ostro::optim {

Array descend(const RuleInputs& in, const Array& u) {
  const Array step = in.weight_decay != 0 ? u + in.p * rounded(in.weight_decay) : u;
  return in.p - step * in.lr;
}

Array cautious(const Parameter& parameter, const RuleInputs& in, const Array& u) {
  const Array agrees = select(u * in.g > 0.0f, 1.0f, zeros(u.shape().axes));
  const MatrixAxes axes = matrix_axes(parameter);
  double count = 1;
  for (const Axis& a : u.shape().axes)
    if (std::find(axes.stack.begin(), axes.stack.end(), a.name) == axes.stack.end())
      count *= static_cast<double>(a.size);
  // The count is exact in f64, in any order of the sum.
  const Array share = cast(sums_of_squares(agrees, axes.stack, *in.boxes) * (1.0 / count), DType::f32);
  return u * (agrees / maximum(share, rounded(1e-3)));
}

namespace {

struct MakeRule {
  const CommonOptions& common;
  double learning_rate;

  using Rule = std::unique_ptr<UpdateRule>;
  Rule operator()(const SameRule&) const { return nullptr; }
  Rule operator()(const AdamRule& o) const { return make_adamw(o); }
  Rule operator()(const LionRule& o) const { return make_lion(o); }
  Rule operator()(const SgdRule& o) const { return make_sgd(o); }
  Rule operator()(const AdafactorRule& o) const { return make_adafactor(o); }
  Rule operator()(const MuonRule& o) const { return make_muon(o, learning_rate); }
  Rule operator()(const SoapRule& o) const { return make_soap(o); }
  Rule operator()(const ShampooRule& o) const { return make_shampoo(o); }
  Rule operator()(const ScheduleFreeRule& o) const { return make_schedule_free(o, common); }
};

// The highest rate of a group's parameters.
double highest_rate(const CommonOptions& o, const GroupOptions& group) {
  return group.learning_rate.value_or(o.learning_rate);
}

std::vector<OwnRule> rules_of(const OptimizerOptions& options) {
  const CommonOptions& o = common(options);
  std::vector<OwnRule> rules;
  rules.push_back({nullptr, "", std::visit(MakeRule{o, o.learning_rate}, options)});
  for (const auto& [name, group] : o.groups)
    if (auto rule = std::visit(MakeRule{o, highest_rate(o, group)}, group.optimizer))
      rules.push_back({&group, name + "/", std::move(rule)});
  for (OwnRule& own : rules) own.scalars = own.rule->scalars(0, 1).size();
  return rules;
}

bool in_group(const GroupOptions& group, const std::string& path) {
  return std::any_of(group.parameters.begin(), group.parameters.end(),
                     [&](const std::string& glob) { return config::glob_matches(glob, path); });
}

}  // namespace

// Gives every parameter its group (the first whose glob matches) and rule, collects the clip sets, and lays
// out the state by name. Parameters that count rows have no rule and no state.
Optimizer::Optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters, Boxes boxes)
    : options_(options),
      parameters_(std::move(parameters)),
      boxes_(std::move(boxes)),
      rules_(rules_of(options_)) {
  const CommonOptions& o = common(options_);
  scalars_ = {"lr"};
  for (const OwnRule& own : rules_)
    for (const Scalar& s : own.rule->scalars(0, 1)) scalars_.push_back(own.prefix + s.first);
  if (o.ema_beta) scalars_.push_back("started");
  if (o.skip_bad_steps) scalars_.push_back("loss_limit");
  for (const Parameter& p : parameters_) {
    group_.push_back(nullptr);
    for (const auto& [name, group] : o.groups)
      if (group_.back() == nullptr && in_group(group, p.path)) group_.back() = &group;
    rule_.push_back(0);
    for (size_t i = 1; i < rules_.size(); ++i)
      if (group_.back() == rules_[i].group) rule_.back() = i;
  }
  ClipSet others{"others", {}, o.max_grad_norm};
  for (const auto& [name, group] : o.groups)
    if (group.max_grad_norm) clip_sets_.push_back({name, {}, group.max_grad_norm});
  for (size_t k = 0; k < parameters_.size() && !clip_sets_.empty(); ++k) {
    if (parameters_[k].matrix.counts != nn::Counts::kNo) continue;
    const auto its = std::find_if(clip_sets_.begin(), clip_sets_.end(), [&](const ClipSet& set) {
      return group_[k] != nullptr && group_[k] == &o.groups.at(set.name);
    });
    (its == clip_sets_.end() ? others : *its).parameters.push_back(k);
  }
  if (!others.parameters.empty()) clip_sets_.push_back(std::move(others));
  std::vector<std::vector<StateArray>> kept;
  std::vector<std::string> names;
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const Parameter& p = parameters_[k];
    const bool counts = p.matrix.counts != nn::Counts::kNo;
    kept.push_back(counts ? std::vector<StateArray>() : rules_[rule_[k]].rule->state(p));
    if (o.ema_beta && !counts) kept.back().push_back({kAverage, p.shape});
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

// Prepares the rule's inputs: the mean gradient, clipped; the rule's own scalars, which follow those of the
// rules before it; rate and decay by group and muP. Around the rule it keeps the moving average of the
// weights, if ema_beta is set.
RuleResults Optimizer::update(size_t k, const Array& p, const std::vector<Array>& state,
                              const Array& gradient, const Array& inv, const Array& clip,
                              const std::vector<Array>& scalars) const {
  const CommonOptions& o = common(options_);
  if (const nn::Matrix& matrix = parameters_[k].matrix; matrix.counts == nn::Counts::kLoad)
    return {nn::counted_load(gradient), {}};
  else if (matrix.counts == nn::Counts::kRouterBias)
    return {nn::balanced_bias(p, gradient, matrix.bias_rate), {}};
  RuleInputs in;
  in.p = p;
  in.g = (gradient * inv) * clip;
  in.state = state;
  in.lr = scalars[0];
  auto its_scalars = scalars.begin() + 1;
  for (size_t i = 0; i < rule_[k]; ++i) its_scalars += static_cast<std::ptrdiff_t>(rules_[i].scalars);
  const OwnRule& own = rules_[rule_[k]];
  in.scalars.assign(its_scalars, its_scalars + static_cast<std::ptrdiff_t>(own.scalars));
  in.boxes = &boxes_;
  in.weight_decay = decays(o, parameters_[k].path) ? o.weight_decay : 0;
  if (const GroupOptions* group = group_[k]; group != nullptr) {
    const double share = group->lr_multiplier * (highest_rate(o, *group) / o.learning_rate);
    if (share != 1) in.lr = in.lr * rounded(share);
    if (group->weight_decay) in.weight_decay = *group->weight_decay;
  }
  // The share of a weight that decay removes in a step, rate times decay, is the same at any width.
  if (const double power = own.rule->width_power(parameters_[k]); parameters_[k].width != 1 && power != 0) {
    const double share = numerics::pow_f64(parameters_[k].width, power);
    in.lr = in.lr * rounded(share);
    in.weight_decay /= share;
  }
  if (!o.ema_beta) return own.rule->update(parameters_[k], in);
  const Array& started = scalars[scalars.size() - (o.skip_bad_steps ? 2 : 1)];
  const Array average = select(started > 0.0f, in.state.back(), p);
  in.state.pop_back();
  RuleResults out = own.rule->update(parameters_[k], in);
  out.state.push_back(average * rounded(*o.ema_beta) + out.p * rounded(1.0 - *o.ema_beta));
  return out;
}

namespace {

// mean + sigma * standard deviation (of the values themselves, 1e-6 at least); infinite while there are few.
float limit_of(const std::vector<double>& values, const CommonOptions& o) {
  if (static_cast<int64_t>(values.size()) < std::max<int64_t>(2, o.skip_window / 2))
    return std::numeric_limits<float>::infinity();
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  for (const double x : values) squares += (x - sum / n) * (x - sum / n);
  return rounded(sum / n + o.skip_sigma * std::max(numerics::sqrt_f64(squares / n), 1e-6));
}

}  // namespace

Array Optimizer::skips(const Array& loss, const std::vector<Array>& scalars) const {
  return common(options_).skip_bad_steps ? loss > scalars.back() : Array();
}

std::vector<float> step_scalars(const OptimizerOptions& options, int64_t step, int64_t num_train_steps,
                                const std::vector<double>& losses) {
  std::vector<float> out{rounded(learning_rate(common(options), step, num_train_steps))};
  for (const OwnRule& own : rules_of(options))
    for (const Scalar& s : own.rule->scalars(step, num_train_steps)) out.push_back(s.second);
  const CommonOptions& o = common(options);
  if (o.ema_beta) out.push_back(step > 0 ? 1.0f : 0.0f);
  if (o.skip_bad_steps) out.push_back(limit_of(losses, o));
  return out;
}

Status check_groups(const CommonOptions& o, const std::vector<std::string>& paths) {
  if (o.weight_decay_modules)
    for (const std::string& glob : *o.weight_decay_modules)
      if (std::none_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return config::glob_matches(glob, path); }))
        return invalid_argument(
            fmt::format("optimizer.weight_decay_modules: \"{}\" matches no trained parameter; they are {}",
                        glob, fmt::join(paths, ", ")));
  std::map<std::string, std::string> taken;  // path -> group
  for (const auto& [name, group] : o.groups)
    for (const std::string& glob : group.parameters) {
      bool found = false;
      for (const std::string& path : paths) {
        if (!config::glob_matches(glob, path)) continue;
        found = true;
        if (const auto [at, is_new] = taken.try_emplace(path, name); !is_new && at->second != name)
          return invalid_argument(
              fmt::format("optimizer.groups: {} is in the groups {} and {}; let the globs of one "
                          "group leave it out",
                          path, at->second, name));
      }
      if (!found)
        return invalid_argument(
            fmt::format("optimizer.groups.{}.parameters: \"{}\" matches no trained parameter; they are {}",
                        name, glob, fmt::join(paths, ", ")));
    }
  return Status();
}

bool decays(const CommonOptions& o, const std::string& path) {
  if (o.weight_decay_modules) {
    for (const std::string& word : *o.weight_decay_modules)
      if (config::glob_matches(word, path)) return true;
    return false;
  }
  for (const char* word : {"norm", "embedding", "bias"})
    if (path.find(word) != std::string::npos) return false;
  return true;
}

}  // namespace ostro::optim
