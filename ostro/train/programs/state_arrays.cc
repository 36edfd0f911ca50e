#include "ostro/train/programs/state_arrays.h"

#include <map>

namespace ostro::train {

std::string optimizer_path(const std::string& name, const std::string& parameter) {
  return "optimizer/" + name + "/" + (parameter.starts_with("model/") ? parameter.substr(6) : parameter);
}

namespace {

void add_optimizer_array(StateArrays& out, const std::string& name, size_t parameter,
                         const ir::Shape& shape) {
  out.paths.push_back(optimizer_path(name, out.paths[parameter]));
  out.shapes.push_back(shape);
  out.parameter.push_back(parameter);
}

}  // namespace

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
  const Signatures at = signatures_of(p);
  StateArrays out = parameter_arrays(at.model.paths, at.model.shapes);
  out.partial = false;
  std::map<std::string, size_t> place;
  for (size_t k = 0; k < out.n; ++k) place[out.paths[k]] = k;
  for (const size_t i : at.update_params.optimizer) {
    const std::string& name = p.update.param_names[i];  // "first_moment/model/a/b"
    const size_t slash = name.find('/');
    add_optimizer_array(out, name.substr(0, slash), place.at(name.substr(slash + 1)),
                        p.update.body.shape(p.update.body.params[i]));
  }
  return out;
}

StateArrays state_arrays(const TrainConfig& config, const models::ModelFunctions& model) {
  StateArrays out = parameter_arrays(model.paths, model.shapes);
  out.partial = false;
  const optim::Optimizer optimizer = optimizer_of(config, model);
  for (const auto& a : optimizer.state()) add_optimizer_array(out, a.name, a.parameter, a.shape);
  return out;
}

std::vector<size_t> expert_loads(const ParameterList& model) {
  std::vector<size_t> out;
  for (size_t k = 0; k < model.paths.size(); ++k) {
    const std::string& path = model.paths[k];
    const std::vector<ir::Axis>& axes = model.shapes[k].axes;
    if (path.starts_with("model/") && path.ends_with("/load") && !axes.empty() &&
        axes.back().name == "experts")
      out.push_back(k);
  }
  return out;
}

}  // namespace ostro::train
