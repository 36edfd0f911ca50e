#include "ostro/experiment/plan/halving.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "ostro/experiment/plan/declared.h"

namespace ostro::lab {
namespace {

using config::Node;

constexpr const char* kHalving = "halving";
constexpr size_t kMostRungs = 16;  // a sanity run of 20 steps has as many
constexpr size_t kMostDigits = 9;  // of a share, so that products with members fit

bool are_digits(const std::string& text, size_t least) {
  return text.size() >= least && text.size() <= kMostDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

class Halving {
 public:
  Halving(const Node& step, const Node& steps, Node& out)
      : step_(step), steps_(steps), out_(out), halving_(*step.find(kHalving)) {}

  Status add() {
    RETURN_IF_ERROR(check_name(step_, step_.key));
    RETURN_IF_ERROR(read_training());
    if (halving_.kind != Node::Kind::kMap)
      return wrong(halving_, ": expected a map, as {keep: 1/3, at: [200, 600]}");
    RETURN_IF_ERROR(
        check_keys(halving_, fmt::format("step {}: halving: ", step_.key), {"keep", "at", "sets"}));
    RETURN_IF_ERROR(read_share());
    RETURN_IF_ERROR(read_rungs());
    std::string before;  // the training up to the rung before
    for (const std::string& at : rungs_) {
      const std::string name = step_.key + "-" + at, eval = name + "-eval", rung = name + "-rung";
      Node training = training_from(before);
      training.put(kUntil, Node::integer(std::stoll(at))).where = halving_.where;
      RETURN_IF_ERROR(add_step(name, "train", std::move(training), *step_.find("sweep")));
      Node measured = map_at(halving_);
      measured.put("of", reference(name));
      if (const Node* sets = halving_.find("sets"); sets != nullptr) measured.put("sets", *sets);
      RETURN_IF_ERROR(add_step(eval, "eval", std::move(measured)));
      Node decided = map_at(halving_);
      decided.put("of", Node::list({reference(eval)})).where = halving_.where;
      decided.put("keep", Node::string(share_.text())).where = halving_.where;
      RETURN_IF_ERROR(add_step(rung, kRung, std::move(decided)));
      before = name;
    }
    Node last = map_at(step_);
    for (const Node& item : step_.items)
      if (item.key == "train")
        last.put("train", training_from(before)).where = item.where;
      else if (item.key != kHalving)
        last.put(item.key, item);
    out_.put(step_.key, std::move(last)).where = step_.where;
    return {};
  }

 private:
  Status wrong(const Node& at, const std::string& message) const {
    return plan_error(at, fmt::format("step {}: halving{}", step_.key, message));
  }
  static Node map_at(const Node& at) {
    Node out = Node::map();
    out.where = at.where;
    return out;
  }
  Node reference(const std::string& name) const {
    Node out = Node::string("$" + name);
    out.where = halving_.where;
    return out;
  }

  Status read_training() {
    training_ = step_.find("train");
    if (training_ == nullptr || training_->kind != Node::Kind::kMap)
      return wrong(halving_, ": is of trainings (train) that differ by a sweep, and the step is none");
    if (step_.find("sweep") == nullptr)
      return wrong(halving_, ": the step has no sweep, so there are no members of which some stay");
    for (const char* other : {"phases", "flops", "forecast"})
      if (const Node* given = training_->find(other); given != nullptr)
        return wrong(*given,
                     fmt::format(": a training with {} cannot be halved; leave out one of them", other));
    return {};
  }

  Status read_share() {
    const Node* keep = halving_.find("keep");
    if (keep == nullptr) return wrong(halving_, ".keep is missing: the share that goes on, as 1/3");
    const auto share = keep->is_scalar() ? KeptShare::parse(keep->text) : std::nullopt;
    if (!share)
      return wrong(*keep, fmt::format(".keep: expected a share above 0 and below 1, as 1/3 or 0.25, got {}",
                                      keep->is_scalar() ? keep->text : kind_name(keep->kind)));
    share_ = *share;
    return {};
  }

  Status read_rungs() {
    const Node* at = halving_.find("at");
    if (at == nullptr) return wrong(halving_, ".at is missing: the steps of the rungs, as [200, 600]");
    if (at->kind != Node::Kind::kList || at->items.empty() || at->items.size() > kMostRungs)
      return wrong(*at, fmt::format(".at: expected a list of 1 to {} steps, as [200, 600]", kMostRungs));
    int64_t before = 0;
    for (const Node& step : at->items) {
      const bool is_step = step.kind == Node::Kind::kInt && are_digits(step.text, 1);
      if (!is_step || std::stoll(step.text) <= before)
        return wrong(step, fmt::format(".at: expected a step above {}, got {}: the steps of the rungs rise",
                                       before, step.is_scalar() ? step.text : kind_name(step.kind)));
      before = std::stoll(step.text);
      rungs_.push_back(std::to_string(before));
    }
    return {};
  }

  // The training that goes on with what there is up to a rung; "": that begins.
  Node training_from(const std::string& before) const {
    Node out = *training_;
    if (before.empty()) return out;
    out.put(kBegun, reference(before));
    out.put(kRung, reference(before + "-rung"));
    return out;
  }

  Status add_step(const std::string& name, const char* kind, Node parameters,
                  std::optional<Node> sweep = std::nullopt) {
    RETURN_IF_ERROR(check_name(halving_, name));
    if (const Node* there = steps_.find(name); there != nullptr)
      return wrong(halving_,
                   fmt::format(": makes a step {}, which is there already: {}", name, there->where));
    Node step = map_at(step_);
    if (sweep) step.put("sweep", std::move(*sweep));
    step.put(kind, std::move(parameters)).where = step_.where;
    out_.put(name, std::move(step)).where = step_.where;
    return {};
  }

  const Node& step_;
  const Node& steps_;
  Node& out_;
  const Node& halving_;
  const Node* training_ = nullptr;
  KeptShare share_;
  std::vector<std::string> rungs_;
};

// What only add_halving_steps() writes.
Status check_by_hand(const Node& step) {
  if (step.kind != Node::Kind::kMap) return {};
  const auto refused = [&](const Node& at, const std::string& what) {
    return plan_error(at, fmt::format("step {}: {}: halving makes it; write `halving: {{keep: 1/3, at: [200, "
                                      "600]}}` beside the sweep of a training",
                                      step.key, what));
  };
  if (const Node* rung = step.find(kRung); rung != nullptr) return refused(*rung, kRung);
  if (const Node* training = step.find("train"); training != nullptr)
    for (const char* parameter : {kUntil, kBegun, kRung})
      if (const Node* given = training->find(parameter); given != nullptr)
        return refused(*given, std::string("train.") + parameter);
  return {};
}

// A part is another run than the training NAME, with the same configuration: a size or an evaluation of it
// would be taken for one of the whole run.
Status check_references(const Node& node, const std::string& step,
                        const std::map<std::string, std::string>& made) {
  if (is_variable(node))
    if (const auto part = made.find(node.text.substr(1)); part != made.end())
      return plan_error(
          node, fmt::format("step {}: {}: halving makes this step for itself; write ${}, the training as far "
                            "as the rungs let it go (the record's table rungs has the losses at each rung)",
                            step, node.text, part->second));
  for (const Node& item : node.items) RETURN_IF_ERROR(check_references(item, step, made));
  return {};
}

}  // namespace

std::optional<KeptShare> KeptShare::parse(const std::string& text) {
  const size_t slash = text.find('/'), point = text.find('.');
  KeptShare out;
  if (slash != std::string::npos) {
    const std::string part = text.substr(0, slash), of = text.substr(slash + 1);
    if (!are_digits(part, 1) || !are_digits(of, 1)) return std::nullopt;
    out = {std::stoll(part), std::stoll(of)};
  } else if (point != std::string::npos) {
    const std::string whole = text.substr(0, point), digits = text.substr(point + 1);
    if (!are_digits(whole, 0) || !are_digits(digits, 1) || whole.find_first_not_of('0') != std::string::npos)
      return std::nullopt;
    out.part = std::stoll(digits);
    for (size_t i = 0; i < digits.size(); ++i) out.of *= 10;
  }
  if (out.part <= 0 || out.part >= out.of) return std::nullopt;
  const int64_t common = std::gcd(out.part, out.of);
  return KeptShare{out.part / common, out.of / common};
}

int64_t KeptShare::kept(int64_t members) const { return std::max<int64_t>(1, members * part / of); }

Status add_halving_steps(Node& steps) {
  for (const Node& step : steps.items) RETURN_IF_ERROR(check_by_hand(step));
  Node out = steps;
  out.items.clear();
  std::map<std::string, std::string> made;  // the names of steps that halving makes, of which training
  for (const Node& step : steps.items) {
    if (step.kind == Node::Kind::kMap && step.find(kHalving) != nullptr) {
      const size_t before = out.items.size();
      RETURN_IF_ERROR(Halving(step, steps, out).add());
      for (size_t i = before; i + 1 < out.items.size(); ++i) made[out.items[i].key] = step.key;
    } else {
      out.items.push_back(step);
    }
  }
  for (const Node& step : steps.items) RETURN_IF_ERROR(check_references(step, step.key, made));
  steps = std::move(out);
  return {};
}

std::optional<int64_t> rung_step(const Plan& plan, const Step& training) {
  const Node* until = training.parameters.find(kUntil);
  if (training.kind->name != "train" || until == nullptr) return std::nullopt;
  if (!plan.sanity) return std::stoll(until->text);
  const auto before = training.inputs.find(kBegun);
  return before == training.inputs.end() ? 1 : *rung_step(plan, *plan.find(before->second)) + 1;
}

bool is_part_of_halving(const Plan& plan, const Step& step) {
  if (step.kind->name == "train") return step.parameters.find(kUntil) != nullptr;
  if (step.kind->name != "eval") return false;
  const Step* run = plan.find(step.inputs.at("of"));
  return is_part_of_halving(plan, *run);
}

std::vector<const Step*> parts_of_member(const Plan& plan, const Step& training) {
  const Step* first = &training;
  for (auto begun = first->inputs.find(kBegun); begun != first->inputs.end();
       begun = first->inputs.find(kBegun))
    first = plan.find(begun->second);
  std::vector<const Step*> out;
  for (const Step* next = first; next != nullptr;) {
    out.push_back(next);
    next = nullptr;
    for (const Step& other : plan.steps) {
      const auto begun = other.inputs.find(kBegun);
      if (other.kind == first->kind && begun != other.inputs.end() && begun->second == out.back()->name)
        next = &other;
    }
  }
  return out;
}

}  // namespace ostro::lab
