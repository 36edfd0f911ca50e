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

std::unique_ptr<UpdateRule> make_rule(const OptimizerOptions& options) {
  struct Make {
    std::unique_ptr<UpdateRule> operator()(const AdamOptions& o) const { return make_adamw(o); }
    std::unique_ptr<UpdateRule> operator()(const LionOptions& o) const { return make_lion(o); }
    std::unique_ptr<UpdateRule> operator()(const SgdOptions& o) const { return make_sgd(o); }
    std::unique_ptr<UpdateRule> operator()(const AdafactorOptions& o) const { return make_adafactor(o); }
    std::unique_ptr<UpdateRule> operator()(const MuonOptions& o) const { return make_muon(o); }
    std::unique_ptr<UpdateRule> operator()(const ScheduleFreeOptions& o) const {
      return make_schedule_free(o);
    }
  };
  return std::visit(Make{}, options);
}

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
  // The number of them is exact in f64, whatever the order of the sum.
  const Array share = cast(sums_of_squares(agrees, axes.stack, *in.boxes) * (1.0 / count), DType::f32);
  return u * (agrees / maximum(share, rounded(1e-3)));
}

namespace {

bool in_group(const GroupOptions& group, const std::string& path) {
  return std::any_of(group.parameters.begin(), group.parameters.end(),
                     [&](const std::string& glob) { return config::glob_matches(glob, path); });
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters, Boxes boxes)
    : options_(options),
      parameters_(std::move(parameters)),
      boxes_(std::move(boxes)),
      rule_(make_rule(options)) {
  const CommonOptions& o = common(options_);
  scalars_ = {"lr"};
  for (const Scalar& s : rule_->scalars(0, 1)) scalars_.push_back(s.first);
  if (o.ema_beta) scalars_.push_back("started");
  if (o.skip_bad_steps) scalars_.push_back("loss_limit");
  for (const Parameter& p : parameters_) {
    group_.push_back(nullptr);
    for (const auto& [name, group] : o.groups)
      if (group_.back() == nullptr && in_group(group, p.path)) group_.back() = &group;
  }
  ClipSet others{"others", {}, o.max_grad_norm};
  for (const auto& [name, group] : o.groups)
    if (group.max_grad_norm) clip_sets_.push_back({name, {}, group.max_grad_norm});
  for (size_t k = 0; k < parameters_.size() && !clip_sets_.empty(); ++k) {
    const auto its = std::find_if(clip_sets_.begin(), clip_sets_.end(), [&](const ClipSet& set) {
      return group_[k] != nullptr && group_[k] == &o.groups.at(set.name);
    });
    (its == clip_sets_.end() ? others : *its).parameters.push_back(k);
  }
  if (!others.parameters.empty()) clip_sets_.push_back(std::move(others));
  std::vector<std::vector<StateArray>> kept;
  std::vector<std::string> names;
  for (const Parameter& p : parameters_) {
    kept.push_back(rule_->state(p));
    if (o.ema_beta) kept.back().push_back({kAverage, p.shape});
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
  if (o.skip_bad_steps) in.scalars.pop_back();
  in.boxes = &boxes_;
  in.weight_decay = decays(o, parameters_[k].path) ? o.weight_decay : 0;
  if (const GroupOptions* group = group_[k]; group != nullptr) {
    if (group->lr_multiplier != 1) in.lr = in.lr * rounded(group->lr_multiplier);
    if (group->weight_decay) in.weight_decay = *group->weight_decay;
  }
  if (!o.ema_beta) return rule_->update(parameters_[k], in);
  const Array average = select(in.scalars.back() > 0.0f, in.state.back(), p);
  in.scalars.pop_back(), in.state.pop_back();
  RuleResults out = rule_->update(parameters_[k], in);
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
  for (const Scalar& s : make_rule(options)->scalars(step, num_train_steps)) out.push_back(s.second);
  const CommonOptions& o = common(options);
  if (o.ema_beta) out.push_back(step > 0 ? 1.0f : 0.0f);
  if (o.skip_bad_steps) out.push_back(limit_of(losses, o));
  return out;
}

Status check_groups(const CommonOptions& o, const std::vector<std::string>& paths) {
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
