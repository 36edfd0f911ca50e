#include "ostro/hf/adapter_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/base/check.h"

namespace ostro::hf {
namespace {

constexpr std::string_view kEndOfWeight = ".weight";

bool is_in(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string module_name(const WeightPart& part) {
  return part.name.substr(0, part.name.size() - kEndOfWeight.size());
}

bool is_matrix(const WeightPart& part) { return !part.columns.empty() && part.name.ends_with(kEndOfWeight); }

// Where the number of a layer ends in a name: the first part of it that is digits. npos: nowhere.
size_t end_of_layer(const std::string& name, int64_t& layer) {
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view word = std::string_view(name).substr(at, end - at);
    if (!word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos) {
      layer = std::stoll(std::string(word));
      return end;
    }
    at = end + 1;
  }
  return std::string::npos;
}

const ir::Shape& shape_of(const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes,
                          const std::string& path) {
  return shapes[parameter_of(paths, path)];
}

// The indices that a matrix has of the axis along which its weight holds several (models/decoder,
// init_block).
Cut range_of(const std::string& axis, const std::string& name, int64_t size) {
  if (axis == "qkv") {
    if (name == "q_proj") return {axis, 0, size - 2};
    return {axis, name == "k_proj" ? size - 2 : size - 1, 1};
  }
  return {axis, name == "gate_proj" ? 0 : 1, 1};
}

// Where a matrix's outputs are among the outputs of one part of a tensor; `first` is the part's first row.
// Nothing if the part has none of them.
std::vector<int64_t> rows_of(const WeightPart& part, const std::vector<std::string>& outputs,
                             const ir::Shape& whole, const std::string& name, int64_t first, int64_t& count) {
  std::vector<int64_t> at = {0};
  std::vector<bool> mine = {true};
  for (const std::string& axis : outputs) {
    const auto cut =
        std::find_if(part.cuts.begin(), part.cuts.end(), [&](const Cut& c) { return c.axis == axis; });
    const int64_t begin = cut == part.cuts.end() ? 0 : cut->start,
                  n = cut == part.cuts.end() ? whole.size_of(axis) : cut->count;
    const bool holds_several = axis == "qkv" || axis == "gate_up";
    const Cut own = range_of(axis, name, whole.size_of(axis));
    std::vector<int64_t> next;
    std::vector<bool> next_mine;
    for (size_t k = 0; k < at.size(); ++k)
      for (int64_t i = 0; i < n; ++i) {
        next.push_back(at[k] * n + i);
        const int64_t index = begin + i;
        next_mine.push_back(mine[k] &&
                            (!holds_several || (index >= own.start && index < own.start + own.count)));
      }
    at = std::move(next), mine = std::move(next_mine);
  }
  count = static_cast<int64_t>(at.size());
  std::vector<int64_t> out;
  for (size_t k = 0; k < at.size(); ++k)
    if (mine[k]) out.push_back(first + at[k]);
  return out;
}

bool has_experts(const std::vector<WeightPart>& base) {
  return std::any_of(base.begin(), base.end(),
                     [](const WeightPart& part) { return part.name.find(".experts.") != std::string::npos; });
}

}  // namespace

size_t parameter_of(const std::vector<std::string>& paths, const std::string& path) {
  const auto at = std::find(paths.begin(), paths.end(), path);
  OSTRO_CHECK(at != paths.end(), "the model has no {}", path);
  return static_cast<size_t>(at - paths.begin());
}

std::string LoraModule::in_layer() const {
  int64_t number = 0;
  const size_t end = end_of_layer(name, number);
  return end == std::string::npos || end == name.size() ? name : name.substr(end + 1);
}

int64_t LoraModule::layer() const {
  int64_t number = -1;
  end_of_layer(name, number);
  return number;
}

// The parts of a tensor follow each other. Each is of one weight of ours, whose outputs may be those of
// several matrices; an adapter of a matrix has its own copy of the layers' axes and of the outputs'.
std::vector<LoraModule> lora_modules(const std::vector<WeightPart>& base,
                                     const std::vector<nn::AdaptedMatrix>& matrices,
                                     const std::vector<std::string>& paths,
                                     const std::vector<ir::Shape>& shapes) {
  std::vector<LoraModule> out;
  for (size_t i = 0; i < base.size();) {
    LoraModule module;
    const size_t begin = i;
    for (; i < base.size() && base[i].name == base[begin].name; ++i) {
      const WeightPart& part = base[i];
      if (!is_matrix(part)) continue;
      if (module.name.empty()) module.name = module_name(part);
      const ir::Shape& whole = shape_of(paths, shapes, part.path);
      int64_t count = 0;
      for (const nn::AdaptedMatrix& m : matrices) {
        if (!m.has_adapter || part.path != m.linear + "/weight") continue;
        const ir::Shape& a = shape_of(paths, shapes, nn::adapter_path(m.linear, m.name, 'a'));
        module.columns = std::all_of(part.rows.begin(), part.rows.end(),
                                     [&](const std::string& axis) { return a.has(axis); });
        const std::vector<std::string>&outputs = module.columns ? part.columns : part.rows,
              &inputs = module.columns ? part.rows : part.columns;
        std::vector<int64_t> rows = rows_of(part, outputs, whole, m.name, module.rows, count);
        if (rows.empty()) continue;
        LoraShare share{m.path(), m.name, {}, {}, std::move(rows)};
        share.a = {module.a_name(), nn::adapter_path(m.linear, m.name, 'a'), {}, {nn::kRankAxis}, inputs};
        for (const Cut& cut : part.cuts)
          if (!is_in(part.rows, cut.axis) && !is_in(part.columns, cut.axis)) share.a.cuts.push_back(cut);
        share.b = {
            module.b_name(), nn::adapter_path(m.linear, m.name, 'b'), share.a.cuts, outputs, {nn::kRankAxis}};
        module.inputs = part_shape(share.a, a)[1];
        module.shares.push_back(std::move(share));
      }
      const std::vector<int64_t> shape = part_shape(part, whole);
      module.rows += module.columns ? shape[1] : shape[0];
    }
    if (!module.shares.empty()) out.push_back(std::move(module));
  }
  return out;
}

std::string lora_base_tensor(const std::string& tensor) {
  constexpr std::string_view kBegin = "base_model.model.", kLayer = ".base_layer.";
  if (!tensor.starts_with(kBegin) || tensor.find(".lora_") != std::string::npos) return {};
  std::string name = tensor.substr(kBegin.size());
  if (const size_t at = name.find(kLayer); at != std::string::npos) name.replace(at, kLayer.size(), ".");
  return name;
}

Status check_lora_names(const std::vector<WeightPart>& base, const std::vector<nn::AdaptedMatrix>& matrices,
                        const std::vector<LoraModule>& modules) {
  std::set<std::string> named;
  for (const LoraModule& module : modules)
    for (const LoraShare& share : module.shares) named.insert(share.matrix);
  for (const nn::AdaptedMatrix& m : matrices) {
    if (!m.has_adapter) continue;
    if (!named.contains(m.path()))
      return unsupported(fmt::format("{} has an adapter, but PEFT has no name for it", m.path()));
    if (has_experts(base) && is_in({"gate_proj", "up_proj", "down_proj"}, m.name))
      return unsupported(fmt::format(
          "{} has an adapter; in a mixture, PEFT takes {} for the experts' matrix and would not load it: "
          "add --merge_lora, or train adapters of attention alone (adapter.target_modules)",
          m.path(), m.name));
  }
  return {};
}

std::vector<std::string> module_words(const std::vector<WeightPart>& base,
                                      const std::vector<LoraModule>& modules) {
  std::set<std::string> adapted, without;
  for (const LoraModule& module : modules) adapted.insert(module.name);
  for (const WeightPart& part : base)
    if (is_matrix(part) && !adapted.contains(module_name(part))) without.insert(module_name(part));
  std::vector<std::string> out;
  for (const LoraModule& module : modules) {
    const std::string word = module.name.substr(module.name.rfind('.') + 1);
    const bool shared = std::any_of(without.begin(), without.end(), [&](const std::string& name) {
      return name == word || name.ends_with("." + word);
    });
    out.push_back(shared ? module.in_layer() : word);
  }
  return out;
}

}  // namespace ostro::hf
