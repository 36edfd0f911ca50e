#include "ostro/train/programs/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ostro/base/sha256.h"
#include "ostro/data/batch/data_set.h"
#include "ostro/grad/value_and_grad.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/canonical_order.h"
#include "ostro/ir/text/text.h"
#include "ostro/numerics/threefry.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"
#include "ostro/train/programs/pair_loss.h"
#include "ostro/train/programs/run_model.h"

namespace ostro::train {
namespace {

constexpr std::string_view kSeparator = "\n---\n";

std::vector<Shape> batch_shapes(const TrainConfig& config) {
  const Axis batch{"batch", *config.numerics.leaf_examples}, pos{"pos", config.model_options().seq_len()};
  std::vector<Axis> axes = {batch, pos};
  if (data::has_pairs(config.data)) axes = {batch, {"side", 2}, pos};
  std::vector<Shape> out = {{DType::i32, axes}, {DType::i32, axes}, {DType::f32, axes}};
  if (data::has_segments(config.data)) out.push_back({DType::i32, axes});
  return out;
}

std::vector<std::string> batch_names(const TrainConfig& config) {
  std::vector<std::string> out = {"tokens", "targets", "loss_mask"};
  if (data::has_segments(config.data)) out.push_back("segments");
  return out;
}

models::Batch as_batch(const TrainConfig& config, const Arrays& a, size_t first) {
  return {a[first], a[first + 1], a[first + 2], data::has_segments(config.data) ? a[first + 3] : Array()};
}

Arrays slice_of(const Arrays& a, size_t first, size_t count) {
  return Arrays(a.begin() + static_cast<int64_t>(first), a.begin() + static_cast<int64_t>(first + count));
}

// Sum of weight * loss and of weights: each product and sum in f64, tokens serially (numerics.md N11).
std::pair<Array, Array> total(const models::Loss& loss) {
  const Axes axes = loss.per_token.shape().names();
  const Array weight = cast(loss.weight, DType::f64);
  return {sum(weight * cast(loss.per_token, DType::f64), axes, Order::kSerial, DType::f64),
          sum(weight, axes, Order::kSerial, DType::f64)};
}

// What a batch comes to: the loss of each token or the margin of each pair, then the loss sum, the weight and
// what is measured. The reference of pairs is the last input.
Arrays losses(const TrainConfig& config, const models::ModelFunctions& model, const Arrays& in) {
  const size_t n = model.shapes.size();
  const Arrays params = slice_of(in, 0, n);
  const models::Batch batch = as_batch(config, in, n);
  const DpoObjective* dpo = dpo_objective(config.objective);
  if (dpo == nullptr) {
    const models::Loss loss = model.loss(params, batch);
    auto [loss_sum, weight] = total(loss);
    return {loss.per_token, loss_sum, weight};
  }
  const PairLoss pairs = pair_loss(*dpo, answer_scores(model.loss(params, texts_of_pairs(batch))), in.back());
  auto [loss_sum, weight] = total(pairs.loss);
  Arrays out = {pairs.margin, loss_sum, weight};
  for (const Array& measure : pair_measures(pairs)) out.push_back(measure);
  return out;
}

std::vector<std::string> with_prefix(const std::string& prefix, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const auto& n : names) out.push_back(prefix + n);
  return out;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The random key of a parameter is derived from 32-bit hashes of its path's components. Two components at the
// same level must not have the same hash (N12).
Status check_path_keys(const std::vector<std::string>& paths) {
  std::map<std::pair<std::string, uint32_t>, std::string> seen;  // (path before it, hash) -> component
  for (const std::string& path : paths)
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string component = path.substr(begin, end - begin);
      const auto [it, added] =
          seen.try_emplace({path.substr(0, begin), numerics::fnv1a32(component)}, component);
      if (!added && it->second != component)
        return invalid_argument(fmt::format(
            "parameters \"{}\" and \"{}\" below \"{}\" would draw from one random key; rename one",
            it->second, component, path.substr(0, begin)));
      begin = end + 1;
    }
  return Status();
}

std::vector<std::string> trained_paths(const models::ModelFunctions& model) {
  return {model.paths.begin(), model.paths.begin() + static_cast<std::ptrdiff_t>(model.trained())};
}

std::vector<std::string> measures(const TrainConfig& config) {
  return dpo_objective(config.objective) != nullptr ? with_prefix("measure/", kPairMeasures)
                                                    : std::vector<std::string>();
}

// Inputs of the programs that compute losses: parameters, the batch, the reference of pairs.
std::vector<Shape> input_shapes(const TrainConfig& config, const models::ModelFunctions& model) {
  std::vector<Shape> shapes = model.shapes;
  const auto more = batch_shapes(config);
  shapes.insert(shapes.end(), more.begin(), more.end());
  if (dpo_objective(config.objective) != nullptr)
    shapes.push_back({DType::f64, {{"batch", *config.numerics.leaf_examples}, {"side", 2}}});
  return shapes;
}

std::vector<std::string> input_names(const TrainConfig& config, const models::ModelFunctions& model) {
  std::vector<std::string> names = model.paths;
  append(names, batch_names(config));
  if (dpo_objective(config.objective) != nullptr) names.push_back("reference");
  return names;
}

ir::Program leaf_program(const TrainConfig& config, const models::ModelFunctions& model) {
  const size_t trained = model.trained(), measured = measures(config).size();
  ir::Program p = trace_program("leaf", input_shapes(config, model), [&](const Arrays& in) {
    Arrays out = grad_internal::trace_value_and_grad(
        in, trained,
        [&](const Arrays& a) {
          const Arrays all = losses(config, model, a);
          return slice_of(all, 1, all.size() - 1);
        },
        Loc::current());
    // Behind everything else.
    std::rotate(out.begin() + 2, out.begin() + 2 + static_cast<std::ptrdiff_t>(measured), out.end());
    if (config.chain.leaf_gradients)
      for (size_t i = 0; i < trained; ++i)
        out.insert(out.end() - static_cast<std::ptrdiff_t>(measured), fingerprint(out[2 + i]));
    return out;
  });
  p.leaves = leaf_table(config);
  p.param_names = input_names(config, model);
  p.result_names = {"loss_sum", "weight"};
  const std::vector<std::string> paths = trained_paths(model);
  append(p.result_names, with_prefix("gradient/", paths));
  if (config.chain.leaf_gradients) append(p.result_names, with_prefix("fingerprint/", paths));
  append(p.result_names, measures(config));
  return p;
}

ir::Program reference_program(const TrainConfig& config, const models::ModelFunctions& model) {
  const size_t n = model.shapes.size();
  std::vector<Shape> shapes = input_shapes(config, model);
  shapes.pop_back();  // the reference itself
  ir::Program p = trace_program("reference", shapes, [&](const Arrays& in) {
    const models::Batch texts = texts_of_pairs(as_batch(config, in, n));
    return Arrays{answer_scores(model.loss(slice_of(in, 0, n), texts)).log_prob};
  });
  ir::canonical_order(p.body);
  p.leaves = leaf_table(config);
  p.param_names = input_names(config, model);
  p.param_names.pop_back();
  p.result_names = {"log_prob"};
  return p;
}

ir::Program update_program(const TrainConfig& config, const models::ModelFunctions& model) {
  const optim::Optimizer optimizer = optimizer_of(config, model);
  const auto& kept = optimizer.state();
  const optim::Boxes boxes = cell_boxes(config);
  const size_t n = model.shapes.size(), m = kept.size(), trained = model.trained();
  std::vector<Shape> shapes = model.shapes;
  for (const auto& a : kept) shapes.push_back(a.shape);
  shapes.insert(shapes.end(), model.shapes.begin(),
                model.shapes.begin() + static_cast<std::ptrdiff_t>(trained));
  shapes.insert(shapes.end(), 2, ir::scalar(DType::f64));
  shapes.insert(shapes.end(), optimizer.scalars().size(), ir::scalar(DType::f32));
  ir::Program p = trace_program("update", shapes, [&](const Arrays& in) {
    const Arrays params = slice_of(in, 0, n), state = slice_of(in, n, m), g = slice_of(in, n + m, trained),
                 scalars = slice_of(in, n + m + trained + 2, optimizer.scalars().size());
    const Array loss_sum = in[n + m + trained], weight = in[n + m + trained + 1];
    const Array inv = cast(full(1, DType::f64, {}) / weight, DType::f32);
    const Array loss = cast(loss_sum / weight, DType::f32);
    Arrays clipped;  // all but counts of rows, which are no gradients
    for (size_t k = 0; k < trained; ++k)
      if (model.matrix_of[k].counts == nn::Counts::kNo) clipped.push_back(g[k]);
    const optim::GlobalNorm norm =
        optim::global_norm(clipped, inv, optim::common(config.optimizer).max_grad_norm, boxes);
    const Array ok = is_finite(loss) & is_finite(norm.norm);
    Arrays clips(n, norm.clip), group_norms;
    for (const auto& set : optimizer.clip_sets()) {
      Arrays its;
      for (const size_t k : set.parameters) its.push_back(g[k]);
      const optim::GlobalNorm its_norm = optim::global_norm(its, inv, set.max_norm, boxes);
      group_norms.push_back(its_norm.norm);
      for (const size_t k : set.parameters) clips[k] = its_norm.clip;
    }
    const Array skipped = optimizer.skips(loss, scalars);
    const Array renews = skipped.valid() ? ok & logical_not(skipped) : ok;
    Arrays new_p, new_state(m), prints;
    for (size_t k = 0; k < trained; ++k) {
      const std::vector<size_t>& at = optimizer.indices_of(k);
      Arrays its_state;
      for (const size_t i : at) its_state.push_back(state[i]);
      const optim::RuleResults r = optimizer.update(k, params[k], its_state, g[k], inv, clips[k], scalars);
      new_p.push_back(select(renews, r.p, params[k]));
      for (size_t i = 0; i < at.size(); ++i) new_state[at[i]] = select(renews, r.state[i], state[at[i]]);
      prints.push_back(fingerprint(new_p.back()));
    }
    for (size_t k = trained; k < n; ++k) {
      new_p.push_back(params[k]);
      prints.push_back(fingerprint(params[k]));
    }
    Arrays out = new_p;
    out.insert(out.end(), new_state.begin(), new_state.end());
    out.insert(out.end(), {loss, norm.norm, ok});
    out.insert(out.end(), group_norms.begin(), group_norms.end());
    out.insert(out.end(), prints.begin(), prints.end());
    return out;
  });
  ir::canonical_order(p.body);
  p.leaves = leaf_table(config);
  std::vector<std::string> names = model.paths;
  for (const auto& a : kept) names.push_back(a.name + "/" + model.paths[a.parameter]);
  p.param_names = p.result_names = names;
  append(p.param_names, with_prefix("gradient/", trained_paths(model)));
  append(p.param_names, {"loss_sum", "weight"});
  append(p.param_names, optimizer.scalars());
  append(p.result_names, {"loss", "gradient_norm", "ok"});
  for (const auto& set : optimizer.clip_sets()) p.result_names.push_back("gradient_norm/" + set.name);
  append(p.result_names, with_prefix("fingerprint/", model.paths));
  return p;
}

}  // namespace

Result<CanonicalPrograms> make_programs(const TrainConfig& config, const models::ModelFunctions& model) {
  RETURN_IF_ERROR(check_path_keys(model.paths));
  RETURN_IF_ERROR(check_run_model(config, model));
  RETURN_IF_ERROR(optim::check_groups(optim::common(config.optimizer), trained_paths(model)));
  try {
    CanonicalPrograms out;
    out.init = trace_program("init", {Shape{DType::u32, {{"word", 2}}}},
                             [&](const Arrays& in) { return model.init(in[0]); });
    ir::canonical_order(out.init.body);
    out.init.param_names = {"key"};
    out.init.result_names = model.paths;
    out.leaf = leaf_program(config, model);
    out.update = update_program(config, model);
    if (dpo_objective(config.objective) != nullptr) out.reference = reference_program(config, model);
    for (const ir::Program* p : {&out.init, &out.leaf, &out.update}) RETURN_IF_ERROR(ir::verify(*p));
    if (out.reference) RETURN_IF_ERROR(ir::verify(*out.reference));
    return out;
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
}

std::string print_programs(const CanonicalPrograms& p) {
  return ir::print(p.init) + std::string(kSeparator) + ir::print(p.leaf) + std::string(kSeparator) +
         ir::print(p.update) + (p.reference ? std::string(kSeparator) + ir::print(*p.reference) : "");
}

Result<CanonicalPrograms> parse_programs(std::string_view text) {
  std::vector<ir::Program> list;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(kSeparator, begin), text.size());
    ASSIGN_OR_RETURN(ir::Program p, ir::parse_program(text.substr(begin, end - begin)));
    list.push_back(std::move(p));
    begin = end + kSeparator.size();
  }
  if (list.size() != 3 && list.size() != 4)
    return invalid_argument(
        fmt::format("{} programs; init, leaf, update, and of pairs reference were expected", list.size()));
  CanonicalPrograms out{std::move(list[0]), std::move(list[1]), std::move(list[2])};
  if (list.size() == 4) out.reference = std::move(list[3]);
  return out;
}

std::string canonical_text(const CanonicalPrograms& p) {
  const ir::PrintOptions canonical{.canonical = true};
  return ir::print(p.init, canonical) + ir::print(p.leaf, canonical) + ir::print(p.update, canonical) +
         (p.reference ? ir::print(*p.reference, canonical) : "");
}

std::string programs_hash(const CanonicalPrograms& p) { return sha256_hex(canonical_text(p)); }

std::vector<std::string> measure_names(const ir::Program& leaf) {
  const std::string prefix = "measure/";
  std::vector<std::string> out;
  for (const std::string& name : leaf.result_names)
    if (name.starts_with(prefix)) out.push_back(name.substr(prefix.size()));
  return out;
}

ir::Program make_eval_program(const TrainConfig& config, const models::ModelFunctions& model) {
  ir::Program p = trace_program("eval", input_shapes(config, model),
                                [&](const Arrays& in) { return losses(config, model, in); });
  ir::canonical_order(p.body);
  p.leaves = leaf_table(config);
  p.param_names = input_names(config, model);
  p.result_names = {dpo_objective(config.objective) != nullptr ? "margin" : "per_token", "loss_sum",
                    "weight"};
  append(p.result_names, measures(config));
  return p;
}

runtime::Buffer init_key(int64_t seed) {
  const auto s = static_cast<uint64_t>(seed);
  const uint32_t words[2] = {static_cast<uint32_t>(s >> 32), static_cast<uint32_t>(s)};
  return runtime::Buffer::copy_of(Shape{DType::u32, {{"word", 2}}}, words);
}

DType compute_dtype(const TrainConfig& config) {
  return parse_precision(config.trainer.mp).value() == FloatType::kBf16 ? DType::bf16 : DType::f32;
}

numerics::LeafTable leaf_table(const TrainConfig& config) {
  return numerics::LeafTable{config.numerics.leaves};
}

optim::Optimizer optimizer_of(const TrainConfig& config, const models::ModelFunctions& model) {
  std::vector<optim::Parameter> parameters;
  for (size_t k = 0; k < model.trained(); ++k)
    parameters.push_back({model.paths[k], model.shapes[k], model.matrix_of[k], model.width});
  return optim::Optimizer(config.optimizer, std::move(parameters), cell_boxes(config));
}

optim::Boxes cell_boxes(const TrainConfig& config) {
  optim::Boxes boxes;
  boxes.cells = config.numerics.cells;
  // An axis without an entry in numerics.cells is cut at its feature leaves.
  for (const auto& leaf : config.numerics.leaves) {
    bool named = false;
    for (const auto& cell : boxes.cells) named |= cell.first == leaf.first;
    if (!named) boxes.cells.push_back(leaf);
  }
  boxes.stacked = {"layers"};
  return boxes;
}

}  // namespace ostro::train
