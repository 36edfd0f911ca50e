#include "ostro/train/programs/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ostro/base/check.h"
#include "ostro/base/sha256.h"
#include "ostro/batches/loader/data_set.h"
#include "ostro/chain/genesis.h"
#include "ostro/grad/value_and_grad.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/program/int8_limits.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/canonical_order.h"
#include "ostro/ir/text/text.h"
#include "ostro/numerics/threefry.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"
#include "ostro/train/programs/pair_loss.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/programs/watch.h"

namespace ostro::train {
namespace {

constexpr std::string_view kSeparator = "\n---\n";

std::vector<Shape> batch_shapes(const TrainConfig& config) {
  const Axis batch{"batch", *config.numerics.leaf_examples}, pos{"pos", config.model_options().seq_len()};
  std::vector<Axis> axes = {batch, pos};
  if (data::has_pairs(config.data)) axes = {batch, {"side", 2}, pos};
  std::vector<Shape> out = {{DType::i32, axes}, {DType::i32, axes}, {DType::f32, axes}};
  if (batches::has_segments(config.data)) out.push_back({DType::i32, axes});
  return out;
}

std::vector<std::string> batch_names(const TrainConfig& config) {
  std::vector<std::string> out = {"tokens", "targets", "loss_mask"};
  if (batches::has_segments(config.data)) out.push_back("segments");
  return out;
}

// Where the reference of pairs is among the arrays of a batch: behind what every batch has.
size_t reference_place(const TrainConfig& config) { return batches::has_segments(config.data) ? 4 : 3; }

bool draws(const TrainConfig& config) { return precision(config).int8_block > 0; }

// Of the leaf program alone, last: for every example the key of the step and the example's number in the
// batch.
std::vector<Shape> draw_shapes(const TrainConfig& config) {
  const Axis batch{"batch", *config.numerics.leaf_examples};
  return {{DType::u32, {batch, {"word", 2}}}, {DType::i32, {batch}}};
}

models::Batch as_batch(const TrainConfig& config, const Arrays& batch) {
  return {batch[0], batch[1], batch[2], batches::has_segments(config.data) ? batch[3] : Array()};
}

// The draws of a leaf are counted from its first example on.
nn::Draws as_draws(const Array& keys, const Array& examples) {
  return {index(keys, "batch", 0), cast(index(examples, "batch", 0), DType::i64)};
}

// Sum of weight * loss and of weights: each product and sum in f64, tokens serially (numerics.md N11).
std::pair<Array, Array> total(const models::Loss& loss) {
  const Axes axes = loss.per_token.shape().names();
  const Array weight = cast(loss.weight, DType::f64);
  return {sum(weight * cast(loss.per_token, DType::f64), axes, Order::kSerial, DType::f64),
          sum(weight, axes, Order::kSerial, DType::f64)};
}

// What a batch comes to: the loss of each token or the margin of each pair, and the sums.
EvalResults<Array> losses(const TrainConfig& config, const models::ModelFunctions& model,
                          const LeafParams<Array>& in, const nn::Draws& draws = {}) {
  models::Batch batch = as_batch(config, in.batch);
  batch.draws = draws;
  const DpoObjective* dpo = dpo_objective(config.objective);
  if (dpo == nullptr) {
    const models::Loss loss = model.loss(in.params, batch);
    auto [loss_sum, weight] = total(loss);
    return {loss.per_token, {loss_sum, weight, {}}};
  }
  const PairLoss pairs = pair_loss(*dpo, answer_scores(model.loss(in.params, texts_of_pairs(batch))),
                                   in.batch[reference_place(config)]);
  auto [loss_sum, weight] = total(pairs.loss);
  return {pairs.margin, {loss_sum, weight, pair_measures(pairs)}};
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

template <typename T>
std::vector<T> trained_of(const models::ModelFunctions& model, const std::vector<T>& list) {
  return {list.begin(), list.begin() + static_cast<std::ptrdiff_t>(model.trained())};
}

std::vector<std::string> measures(const TrainConfig& config) {
  return dpo_objective(config.objective) != nullptr ? kPairMeasures : std::vector<std::string>();
}

LeafParams<Shape> input_shapes(const TrainConfig& config, const models::ModelFunctions& model) {
  LeafParams<Shape> shapes{model.shapes, batch_shapes(config)};
  if (dpo_objective(config.objective) != nullptr)
    shapes.batch.push_back({DType::f64, {{"batch", *config.numerics.leaf_examples}, {"side", 2}}});
  return shapes;
}

LeafParams<std::string> input_names(const TrainConfig& config, const models::ModelFunctions& model) {
  LeafParams<std::string> names{model.paths, batch_names(config)};
  if (dpo_objective(config.objective) != nullptr) names.batch.emplace_back("reference");
  return names;
}

ir::Program leaf_program(const TrainConfig& config, const models::ModelFunctions& model) {
  LeafParams<Shape> shapes = input_shapes(config, model);
  LeafParams<std::string> input = input_names(config, model);
  if (draws(config)) {
    const std::vector<Shape> more = draw_shapes(config);
    shapes.batch.insert(shapes.batch.end(), more.begin(), more.end());
    input.batch.insert(input.batch.end(), {"draw_key", "example"});
  }
  const LeafParams<size_t> at = places_of(shapes);
  ir::Program p = trace_program("leaf", as_list(shapes), [&](const Arrays& in) {
    LossSums<size_t> sums_at;
    Arrays all = grad_internal::trace_value_and_grad(
        in, model.trained(),
        [&](const Arrays& a) {
          const LeafParams<Array> given = read_fields(at, a);
          const nn::Draws of_leaf =
              draws(config) ? as_draws(*(given.batch.end() - 2), given.batch.back()) : nn::Draws();
          const LossSums<Array> sums = losses(config, model, given, of_leaf).sums;
          sums_at = places_of(sums);
          return as_list(sums);
        },
        Loc::current());
    LeafResults<Array> out;
    out.gradients = {all.end() - static_cast<std::ptrdiff_t>(model.trained()), all.end()};
    const LossSums<Array> sums = read_fields(sums_at, std::move(all));
    out.loss_sum = sums.loss_sum, out.weight = sums.weight, out.measures = sums.measures;
    if (config.chain.leaf_gradients)
      for (const Array& g : out.gradients) out.fingerprints.push_back(fingerprint(g));
    return as_list(out);
  });
  p.leaves = leaf_table(config);
  p.param_names = full_names(input);
  LeafResults<std::string> names;
  names.gradients = trained_of(model, model.paths);
  if (config.chain.leaf_gradients) names.fingerprints = names.gradients;
  names.measures = measures(config);
  p.result_names = full_names(names);
  return p;
}

ir::Program reference_program(const TrainConfig& config, const models::ModelFunctions& model) {
  LeafParams<Shape> shapes = input_shapes(config, model);
  LeafParams<std::string> names = input_names(config, model);
  shapes.batch.pop_back(), names.batch.pop_back();  // the reference itself
  const LeafParams<size_t> at = places_of(shapes);
  ir::Program p = trace_program("reference", as_list(shapes), [&](const Arrays& list) {
    const LeafParams<Array> in = read_fields(at, list);
    return Arrays{answer_scores(model.loss(in.params, texts_of_pairs(as_batch(config, in.batch)))).log_prob};
  });
  ir::canonical_order(p.body);
  p.leaves = leaf_table(config);
  p.param_names = full_names(names);
  p.result_names = {"log_prob"};
  return p;
}

// The trained parameters whose norms trainer.watch_norms asks for; none that counts rows.
std::vector<size_t> watched(const TrainConfig& config, const models::ModelFunctions& model,
                            const std::string& norms) {
  std::vector<size_t> out;
  for (size_t k = 0; config.trainer.watches(norms) && k < model.trained(); ++k)
    if (model.matrix_of[k].counts == nn::Counts::kNo) out.push_back(k);
  return out;
}

// The optimizer step, traced: what UpdateResults declares, from what UpdateParams does.
UpdateResults<Array> update(const TrainConfig& config, const models::ModelFunctions& model,
                            const optim::Optimizer& optimizer, const UpdateParams<Array>& in) {
  const optim::Boxes boxes = cell_boxes(config);
  const size_t n = in.params.size(), trained = model.trained();
  const Array inv = cast(full(1, DType::f64, {}) / in.weight, DType::f32);
  const Array loss = cast(in.loss_sum / in.weight, DType::f32);
  Arrays clipped;  // all but counts of rows, which are no gradients
  for (size_t k = 0; k < trained; ++k)
    if (model.matrix_of[k].counts == nn::Counts::kNo) clipped.push_back(in.gradients[k]);
  const optim::GlobalNorm norm =
      optim::global_norm(clipped, inv, optim::common(config.optimizer).max_grad_norm, boxes);
  const Array ok = is_finite(loss) & is_finite(norm.norm);
  UpdateResults<Array> out;
  out.measures.loss = loss, out.measures.gradient_norm = norm.norm, out.measures.ok = ok;
  Arrays clips(n, norm.clip);
  for (const auto& set : optimizer.clip_sets()) {
    Arrays its;
    for (const size_t k : set.parameters) its.push_back(in.gradients[k]);
    const optim::GlobalNorm its_norm = optim::global_norm(its, inv, set.max_norm, boxes);
    out.measures.group_norms.push_back(its_norm.norm);
    for (const size_t k : set.parameters) clips[k] = its_norm.clip;
  }
  for (const size_t k : watched(config, model, "gradients"))
    for (const Array& norm : norms_of(in.gradients[k], boxes))
      out.measures.watched.push_back(norm * cast(inv, DType::f64));
  const Array skipped = optimizer.skips(loss, in.scalars);
  const Array renews = skipped.valid() ? ok & logical_not(skipped) : ok;
  out.optimizer.resize(in.optimizer.size());
  for (size_t k = 0; k < trained; ++k) {
    const std::vector<size_t>& at = optimizer.indices_of(k);
    Arrays its_state;
    for (const size_t i : at) its_state.push_back(in.optimizer[i]);
    const optim::RuleResults r =
        optimizer.update(k, in.params[k], its_state, in.gradients[k], inv, clips[k], in.scalars);
    out.params.push_back(select(renews, r.p, in.params[k]));
    for (size_t i = 0; i < at.size(); ++i)
      out.optimizer[at[i]] = select(renews, r.state[i], in.optimizer[at[i]]);
    out.report.fingerprints.push_back(fingerprint(out.params.back()));
  }
  for (size_t k = trained; k < n; ++k) {
    out.params.push_back(in.params[k]);
    out.report.fingerprints.push_back(fingerprint(in.params[k]));
  }
  for (const size_t k : watched(config, model, "parameters"))
    for (const Array& norm : norms_of(out.params[k], boxes)) out.report.watched.push_back(norm);
  return out;
}

ir::Program update_program(const TrainConfig& config, const models::ModelFunctions& model) {
  const optim::Optimizer optimizer = optimizer_of(config, model);
  UpdateParams<Shape> shapes{model.shapes, {}, trained_of(model, model.shapes)};
  UpdateParams<std::string> names{model.paths, {}, trained_of(model, model.paths)};
  for (const auto& a : optimizer.state()) {
    shapes.optimizer.push_back(a.shape);
    names.optimizer.push_back(a.name + "/" + model.paths[a.parameter]);
  }
  shapes.loss_sum = shapes.weight = ir::scalar(DType::f64);
  shapes.scalars.assign(optimizer.scalars().size(), ir::scalar(DType::f32));
  names.scalars = optimizer.scalars();
  const UpdateParams<size_t> at = places_of(shapes);
  ir::Program p = trace_program("update", as_list(shapes), [&](const Arrays& in) {
    return as_list(update(config, model, optimizer, read_fields(at, in)));
  });
  ir::canonical_order(p.body);
  p.leaves = leaf_table(config);
  p.param_names = full_names(names);
  UpdateResults<std::string> results{model.paths, names.optimizer};
  for (const auto& set : optimizer.clip_sets()) results.measures.group_norms.push_back(set.name);
  results.report.fingerprints = model.paths;
  const auto norm_names_of = [&](const char* of, const char* what) {
    std::vector<std::string> names;
    for (const size_t k : watched(config, model, of))
      for (std::string& name : norm_names(what, model.paths[k], model.shapes[k]))
        names.push_back(std::move(name));
    return names;
  };
  results.measures.watched = norm_names_of("gradients", "grad_norm");
  results.report.watched = norm_names_of("parameters", "param_norm");
  p.result_names = full_names(results);
  return p;
}

}  // namespace

Result<CanonicalPrograms> make_programs(const TrainConfig& config, const models::ModelFunctions& model) {
  RETURN_IF_ERROR(check_path_keys(model.paths));
  RETURN_IF_ERROR(check_run_model(config, model));
  RETURN_IF_ERROR(optim::check_groups(optim::common(config.optimizer), trained_of(model, model.paths)));
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
    RETURN_IF_ERROR(check_signatures(out));
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
  RETURN_IF_ERROR(check_signatures(out));
  return out;
}

Result<Signatures> check_signatures(const CanonicalPrograms& p) {
  Signatures out;
  for (const ir::ValueId v : p.init.body.results) out.model.shapes.push_back(p.init.body.shape(v));
  out.model.paths = p.init.result_names;
  if (out.model.paths.size() != out.model.shapes.size())
    return invalid_argument(fmt::format("the program \"{}\" has {} results and {} names of them", p.init.name,
                                        out.model.shapes.size(), out.model.paths.size()));
  ASSIGN_OR_RETURN(out.leaf_params, signature_of<LeafParams>(p.leaf, Side::kParams, out.model));
  ASSIGN_OR_RETURN(out.leaf_results, signature_of<LeafResults>(p.leaf, Side::kResults, out.model));
  ASSIGN_OR_RETURN(out.update_params, signature_of<UpdateParams>(p.update, Side::kParams, out.model));
  ASSIGN_OR_RETURN(out.update_results, signature_of<UpdateResults>(p.update, Side::kResults, out.model));
  const size_t trained = out.trained(), prints = out.leaf_results.fingerprints.size();
  const size_t given = out.update_params.optimizer.size(), made = out.update_results.optimizer.size();
  if (out.leaf_params.batch.empty() || (prints != 0 && prints != trained) || made != given ||
      out.update_params.gradients.size() != trained)
    return invalid_argument(fmt::format(
        "the programs do not fit each other: \"{}\" takes {} arrays of a batch, gives {} gradients and {} "
        "fingerprints of them; \"{}\" takes {} gradients, and of the optimizer takes {} arrays and gives {}",
        p.leaf.name, out.leaf_params.batch.size(), trained, prints, p.update.name,
        out.update_params.gradients.size(), given, made));
  return out;
}

Signatures signatures_of(const CanonicalPrograms& p) {
  Result<Signatures> out = check_signatures(p);
  OSTRO_CHECK(out.ok(), "programs that were never checked: {}", out.error().message());
  return std::move(out).value();
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
  const LeafParams<Shape> shapes = input_shapes(config, model);
  const LeafParams<size_t> at = places_of(shapes);
  ir::Program p = trace_program("eval", as_list(shapes), [&](const Arrays& in) {
    return as_list(losses(config, model, read_fields(at, in)));
  });
  ir::canonical_order(p.body);
  p.leaves = leaf_table(config);
  p.param_names = full_names(input_names(config, model));
  const std::string rows = dpo_objective(config.objective) != nullptr ? "margin" : "per_token";
  p.result_names = full_names(EvalResults<std::string>{rows, {"", "", measures(config)}});
  return p;
}

runtime::Buffer init_key(int64_t seed) {
  const auto s = static_cast<uint64_t>(seed);
  const uint32_t words[2] = {static_cast<uint32_t>(s >> 32), static_cast<uint32_t>(s)};
  return runtime::Buffer::copy_of(Shape{DType::u32, {{"word", 2}}}, words);
}

DType compute_dtype(const TrainConfig& config) {
  return parse_precision(config.trainer.mp).value().compute == Compute::kF32 ? DType::f32 : DType::bf16;
}

nn::Precision precision(const TrainConfig& config) {
  const MixedPrecision mp = parse_precision(config.trainer.mp).value();
  nn::Precision out(compute_dtype(config), mp.compute == Compute::kInt8 ? ir::kInt8Block : 0);
  if (mp.integer_attention) out.attention_slices = ir::kInt8Slices;
  if (mp.compute == Compute::kBf16Tc16) out.rule = ProductRule::kTc16;
  return out;
}

std::string numerics_options(const TrainConfig& config) {
  static_assert(ir::kInt8Block == 256, "the block that kIntegerProducts names");
  const nn::Precision mp = precision(config);
  if (mp.rule == ProductRule::kTc16)
    return mp.attention_slices > 0 ? chain::kTensorRuleAndIntegers : chain::kTensorRule;
  if (mp.attention_slices > 0)
    return mp.int8_block > 0 ? chain::kIntegersEverywhere : chain::kIntegerAttention;
  return mp.int8_block > 0 ? chain::kIntegerProducts : "{}";
}

numerics::LeafTable leaf_table(const TrainConfig& config) {
  return numerics::LeafTable{config.numerics.leaves};
}

numerics::LeafTable inference_leaf_table(const TrainConfig& config) {
  numerics::LeafTable leaves = leaf_table(config);
  std::erase_if(leaves.axes, [](const auto& axis) { return axis.first == "pos"; });
  return leaves;
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
