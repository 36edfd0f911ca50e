#include "ostro/experiment/plan/scaling_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/config/codec.h"
#include "ostro/experiment/plan/declared.h"
#include "ostro/experiment/plan/seeds.h"

namespace ostro::lab {
namespace {

using config::Node;

constexpr size_t kLeastSizes = 3;    // fewer do not tell E from A / N^a
constexpr size_t kLeastPlanned = 6;  // one more than E, A, a, B and b are

struct Budget {
  double flops = 0;
  std::string text;                // "1e9": part of the steps' names
  std::vector<std::string> sizes;  // labels
  const Node* node = nullptr;
};

Result<double> number_of(const Node& node, const std::string& path) {
  double value = 0;
  if (!node.is_scalar() || !config::read_value(node, path, &value).ok() || !(value > 0 && value < 1e40))
    return plan_error(node, fmt::format("{}: expected a number of operations above 0", path));
  return value;
}

// A number as a part of a name: 1.5e+09 as 1_5e9.
std::string name_of(double flops) {
  std::string out;
  const std::string text = fmt::format("{:.6g}", flops);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_lead = text[i] == '0' && !out.empty() && out.back() == 'e';
    if (text[i] != '+' && !is_lead) out += text[i] == '.' ? '_' : text[i];
  }
  return out;
}

class Scaling {
 public:
  Scaling(const Node& node, Node& steps) : node_(node), path_("scaling." + node.key), steps_(steps) {}

  Status add() {
    RETURN_IF_ERROR(check_name(node_, node_.key));
    if (node_.kind != Node::Kind::kMap) return plan_error(node_, path_ + ": expected a map");
    RETURN_IF_ERROR(check_keys(
        node_, path_ + ": ", {"data", "config", "set", "sizes", "budgets", "seeds", "parameters", "target"}));
    for (const char* key : {"data", "config", "sizes", "budgets"})
      if (node_.find(key) == nullptr) return plan_error(node_, fmt::format("{}.{} is missing", path_, key));
    if (const Node* all = node_.find("set"); all != nullptr && all->kind != Node::Kind::kMap)
      return plan_error(*all, path_ + ".set: expected a map of options");
    RETURN_IF_ERROR(read_sizes());
    RETURN_IF_ERROR(check_seed(node_.find("set")));
    for (const Node& size : sizes_->items) RETURN_IF_ERROR(check_seed(&size));
    RETURN_IF_ERROR(read_budgets());
    ASSIGN_OR_RETURN(const Seeds seeds, seeds_of(node_));
    size_t runs = 0;
    for (const Budget& budget : budgets_) runs += budget.sizes.size();
    if (runs < kLeastPlanned)
      return plan_error(
          node_,
          fmt::format(
              "{}: has {} pairs of a size and a budget, and the surface has {} unknowns: at least {} pairs "
              "are needed, whatever their seeds; add sizes or budgets",
              path_, runs, kLeastPlanned - 1, kLeastPlanned));
    std::vector<Node> evaluations;
    for (const Budget& budget : budgets_) {
      const std::string name = node_.key + "-" + budget.text;
      Node sizes = map_at(node_);
      for (const std::string& label : budget.sizes) sizes.put(label, settings(*sizes_->find(label)));
      Node sweep = map_at(node_);
      sweep.put("size", std::move(sizes));
      sweep.put("seed", seeds.values);
      RETURN_IF_ERROR(add_runs(name, std::move(sweep), text("$size"), budget.flops, ""));
      evaluations.push_back(text("$" + name + "-eval"));
    }
    Node fit = map_at(node_);
    fit.put("of", Node::list(std::move(evaluations))).where = node_.where;
    if (const Node* parameters = node_.find("parameters"); parameters != nullptr)
      fit.put("parameters", *parameters);
    RETURN_IF_ERROR(add_step(node_.key + "-fit", "fit", std::move(fit)));
    const Node* target = node_.find("target");
    return target == nullptr ? Status() : add_target(*target);
  }

 private:
  Node map_at(const Node& at) const {
    Node out = Node::map();
    out.where = at.where;
    return out;
  }
  Node text(const std::string& value) const {
    Node out = Node::string(value);
    out.where = node_.where;
    return out;
  }

  Status read_sizes() {
    sizes_ = node_.find("sizes");
    const bool maps = sizes_->kind == Node::Kind::kMap &&
                      std::all_of(sizes_->items.begin(), sizes_->items.end(),
                                  [](const Node& size) { return size.kind == Node::Kind::kMap; });
    if (!maps || sizes_->items.size() < kLeastSizes)
      return plan_error(*sizes_,
                        fmt::format("{}.sizes: expected a map from at least {} labels to maps of options "
                                    "of the model: fewer sizes do not tell how the loss follows from them",
                                    path_, kLeastSizes));
    return {};
  }

  Status read_budgets() {
    const Node& node = *node_.find("budgets");
    const std::string path = path_ + ".budgets";
    if (node.is_scalar() || node.items.empty())
      return plan_error(node, path + ": expected a list of operations, or a map from them to lists of sizes");
    for (const Node& item : node.items) {
      Budget budget{.node = &item};
      const bool is_list = node.kind == Node::Kind::kList;
      ASSIGN_OR_RETURN(budget.flops,
                       number_of(is_list ? item : config::plain_scalar(item.key, item.where), path));
      budget.text = name_of(budget.flops);
      for (const Budget& other : budgets_)
        if (other.text == budget.text)
          return plan_error(item, fmt::format("{}: {} is there twice", path, budget.text));
      if (is_list)
        for (const Node& size : sizes_->items) budget.sizes.push_back(size.key);
      if (!is_list) RETURN_IF_ERROR(read_labels(item, path, budget));
      budgets_.push_back(std::move(budget));
    }
    return {};
  }

  Status read_labels(const Node& item, const std::string& path, Budget& budget) const {
    if (item.kind != Node::Kind::kList || item.items.empty())
      return plan_error(item, fmt::format("{}.{}: expected a list of sizes", path, item.key));
    for (const Node& label : item.items) {
      RETURN_IF_ERROR(check_size(label, fmt::format("{}.{}", path, item.key)));
      if (std::find(budget.sizes.begin(), budget.sizes.end(), label.text) != budget.sizes.end())
        return plan_error(label, fmt::format("{}.{}: {} is there twice", path, item.key, label.text));
      budget.sizes.push_back(label.text);
    }
    return {};
  }

  Status check_size(const Node& label, const std::string& path) const {
    std::vector<std::string> known;
    for (const Node& size : sizes_->items) known.push_back(size.key);
    if (label.is_scalar() && sizes_->find(label.text) != nullptr) return {};
    return unknown_word(label, path + ": no size is called", label.text, known);
  }

  // Options of runs may not have the seed.
  Status check_seed(const Node* options) const {
    if (options == nullptr || options->find("trainer.seed") == nullptr) return {};
    return plan_error(*options, path_ + ": trainer.seed: follows from seeds; leave it out");
  }

  // The values of the variable `seed`, and their number: those of the registration, or 1, 2 and so on.
  struct Seeds {
    Node values;
    int64_t count = 1;
  };
  Result<Seeds> seeds_of(const Node& node) const {
    const Node* given = node.find("seeds");
    if (given != nullptr && given->is_scalar())
      if (const auto seeds = registration_seeds(given->text)) return Seeds{*given, *seeds};
    int64_t count = 1;
    if (given != nullptr &&
        (given->kind != Node::Kind::kInt || !config::read_value(*given, "seeds", &count).ok() || count < 1 ||
         count > kMostSeeds))
      return plan_error(
          *given, fmt::format("{}.seeds: expected a number from 1 to {}, or \"registration x N\"", path_,
                              kMostSeeds));
    std::vector<Node> values;
    for (int64_t i = 1; i <= count; ++i) values.push_back(Node::integer(i));
    Node out = Node::list(std::move(values));
    out.where = node.where;
    return Seeds{std::move(out), count};
  }

  // The options of a size, with those that all runs have and the seed.
  Node settings(const Node& size) const {
    Node out = map_at(size);
    if (const Node* all = node_.find("set"); all != nullptr)
      for (const Node& item : all->items)
        if (size.find(item.key) == nullptr) out.put(item.key, item);
    for (const Node& item : size.items) out.put(item.key, item);
    out.put("trainer.seed", text("$seed"));
    return out;
  }

  Status add_step(const std::string& name, const char* kind, Node parameters, Node sweep = Node::null()) {
    RETURN_IF_ERROR(check_name(node_, name));
    if (const Node* there = steps_.find(name); there != nullptr)
      return plan_error(
          node_, fmt::format("{}: makes a step {}, which is there already: {}", path_, name, there->where));
    Node step = map_at(node_);
    if (sweep.kind == Node::Kind::kMap) step.put("sweep", std::move(sweep));
    step.put(kind, std::move(parameters));
    steps_.put(name, std::move(step)).where = node_.where;
    return {};
  }

  Node training(Node set, double flops) const {
    Node out = map_at(node_);
    out.put("data", *node_.find("data"));
    out.put("config", *node_.find("config"));
    out.put("set", std::move(set));
    out.put("flops", Node::number(flops));
    return out;
  }

  // Trainings and their evaluations.
  Status add_runs(const std::string& name, Node sweep, Node set, double flops, const std::string& forecast) {
    Node train = training(std::move(set), flops);
    if (!forecast.empty()) train.put("forecast", text("$" + forecast));
    RETURN_IF_ERROR(add_step(name, "train", std::move(train), std::move(sweep)));
    Node eval = map_at(node_);
    eval.put("of", text("$" + name));
    return add_step(name + "-eval", "eval", std::move(eval));
  }

  Status add_target(const Node& target) {
    const std::string path = path_ + ".target";
    if (target.kind != Node::Kind::kMap) return plan_error(target, path + ": expected a map");
    RETURN_IF_ERROR(check_keys(target, path + ": ", {"size", "flops", "seeds"}));
    const Node *size = target.find("size"), *given = target.find("flops");
    if (size == nullptr || given == nullptr)
      return plan_error(target, path + ": expected size (a label of sizes, or a map of options) and flops");
    if (size->kind != Node::Kind::kMap) {
      RETURN_IF_ERROR(check_size(*size, path + ".size"));
      size = sizes_->find(size->text);
    }
    RETURN_IF_ERROR(check_seed(size));
    ASSIGN_OR_RETURN(const double flops, number_of(*given, path + ".flops"));
    for (const Budget& budget : budgets_)
      if (flops <= budget.flops)
        return plan_error(*given,
                          fmt::format("{}.flops: {} is not larger than the budget {} ({}); a forecast "
                                      "is of a larger run",
                                      path, name_of(flops), budget.text, budget.node->where));
    ASSIGN_OR_RETURN(Seeds seeds, seeds_of(target));
    const Node set = settings(*size);
    Node without_seed = set;
    std::erase_if(without_seed.items, [](const Node& item) { return item.key == "trainer.seed"; });
    const std::string name = node_.key + "-forecast";
    Node forecast = training(std::move(without_seed), flops);
    forecast.put("fit", text("$" + node_.key + "-fit"));
    forecast.put("runs", Node::integer(seeds.count));
    RETURN_IF_ERROR(add_step(name, "forecast", std::move(forecast)));
    Node sweep = map_at(target);
    sweep.put("seed", std::move(seeds.values));
    return add_runs(node_.key + "-target", std::move(sweep), set, flops, name);
  }

  const Node& node_;
  std::string path_;
  Node& steps_;
  const Node* sizes_ = nullptr;
  std::vector<Budget> budgets_;
};

}  // namespace

Status add_scaling_steps(const Node& scaling, Node& steps) {
  if (scaling.kind != Node::Kind::kMap || scaling.items.empty())
    return plan_error(scaling, "scaling: expected a map from names to scaling plans");
  for (const Node& item : scaling.items) RETURN_IF_ERROR(Scaling(item, steps).add());
  return {};
}

}  // namespace ostro::lab
