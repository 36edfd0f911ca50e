#include "ostro/train/programs/state_arrays.h"

#include <map>

#include "ostro/base/check.h"

namespace ostro::train {

std::string kept_path(const std::string& name, const std::string& parameter) {
  return "optimizer/" + name + "/" + (parameter.starts_with("model/") ? parameter.substr(6) : parameter);
}

namespace {

void add_kept(StateArrays& out, const std::string& name, size_t parameter, const ir::Shape& shape) {
  out.paths.push_back(kept_path(name, out.paths[parameter]));
  out.shapes.push_back(shape);
  out.parameter.push_back(parameter);
}

}  // namespace

UpdateLayout update_layout(const CanonicalPrograms& p) {
  const ir::Block& body = p.update.body;
  UpdateLayout at;
  at.n = p.init.body.results.size();
  for (const std::string& name : p.leaf.result_names) at.trained += name.starts_with("gradient/");
  for (const std::string& name : p.update.result_names) at.norms += name.starts_with("gradient_norm/");
  at.kept = body.results.size() - 2 * at.n - 3 - at.norms;
  at.scalars = body.params.size() - at.first_scalar();
  return at;
}

StateArrays parameter_arrays(const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes) {
  StateArrays out{paths.size(), paths, shapes, {}, true};
  for (size_t k = 0; k < paths.size(); ++k) out.parameter.push_back(k);
  return out;
}

std::vector<size_t> evaluated_arrays(const StateArrays& arrays) {
  std::vector<size_t> out;
  for (size_t k = 0; k < arrays.n; ++k) out.push_back(k);
  const std::string start = std::string("optimizer/") + optim::kAverage + "/";
  for (size_t i = arrays.n; i < arrays.size(); ++i)
    if (arrays.paths[i].starts_with(start)) out[arrays.parameter[i]] = i;
  return out;
}

StateArrays state_arrays(const CanonicalPrograms& p) {
  const UpdateLayout at = update_layout(p);
  std::vector<ir::Shape> shapes;
  for (const ir::ValueId v : p.init.body.results) shapes.push_back(p.init.body.shape(v));
  StateArrays out = parameter_arrays(p.init.result_names, shapes);
  out.partial = false;
  std::map<std::string, size_t> place;
  for (size_t k = 0; k < at.n; ++k) place[out.paths[k]] = k;
  for (size_t i = at.n; i < at.n + at.kept; ++i) {
    const std::string& name = p.update.param_names[i];  // "first_moment/model/a/b"
    const auto found = place.find(name.substr(name.find('/') + 1));
    OSTRO_CHECK(found != place.end(), "{} is of no parameter", name);
    add_kept(out, name.substr(0, name.find('/')), found->second,
             p.update.body.shape(p.update.body.params[i]));
  }
  return out;
}

StateArrays state_arrays(const TrainConfig& config, const models::ModelFunctions& model) {
  StateArrays out = parameter_arrays(model.paths, model.shapes);
  out.partial = false;
  const optim::Optimizer optimizer = optimizer_of(config, model);
  for (const auto& kept : optimizer.state()) add_kept(out, kept.name, kept.parameter, kept.shape);
  return out;
}

std::vector<size_t> expert_loads(const ir::Program& update) {
  std::vector<size_t> out;
  for (size_t k = 0; k < update.result_names.size() && update.result_names[k] != "loss"; ++k) {
    const ir::Shape& shape = update.body.shape(update.body.results[k]);
    const std::string& name = update.result_names[k];
    if (name.starts_with("model/") && name.ends_with("/load") && !shape.axes.empty() &&
        shape.axes.back().name == "experts")
      out.push_back(k);
  }
  return out;
}

}  // namespace ostro::train
