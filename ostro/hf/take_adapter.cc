// An adapter in PEFT's format, put into a model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "ostro/hf/adapter.h"
#include "ostro/hf/elements.h"
#include "ostro/numerics/arrays.h"

namespace ostro::hf {

Result<std::vector<std::string>> lora_targets(const LoraFiles& files,
                                              const std::vector<LoraModule>& modules) {
  std::set<std::string> there;
  std::map<std::string, bool> wanted;                     // by path: whether some module of it has an adapter
  std::map<std::string, std::set<std::string>> paths_of;  // by name
  for (const LoraModule& module : modules) {
    there.insert(module.name);
    const bool has = std::binary_search(files.modules.begin(), files.modules.end(), module.name);
    for (const LoraShare& share : module.shares) {
      wanted[share.matrix] |= has;
      paths_of[share.name].insert(share.matrix);
    }
  }
  for (const std::string& module : files.modules)
    if (!there.contains(module))
      return invalid_argument(
          fmt::format("{}: {} belongs to a matrix that the model does not have; is it of another model?",
                      files.path, module));
  std::vector<std::string> out;
  for (const auto& [name, paths] : paths_of) {
    const auto has = [&](const std::string& path) { return wanted[path]; };
    if (std::all_of(paths.begin(), paths.end(), has))
      out.push_back(name);
    else
      std::copy_if(paths.begin(), paths.end(), std::back_inserter(out), has);
  }
  return out;
}

namespace {

std::string list(const io::Extents& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// A tensor of the file, as f32.
Result<std::vector<float>> read_floats(const LoraFiles& files, const io::SafetensorsInfo& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
  RETURN_IF_ERROR(files.tensors.read(tensor.name, bytes));
  std::vector<float> out(bytes.size() / static_cast<size_t>(io::safetensors_item_size(tensor.dtype)));
  elements_to_f32(tensor.dtype, bytes, out);
  if (const auto bad = numerics::first_from(out))
    return corrupt(not_finite(files.tensors.file_of(tensor), tensor.name, static_cast<int64_t>(*bad)));
  return out;
}

// The tensor of a module; nullptr where the adapter leaves the module out.
Result<const io::SafetensorsInfo*> find_factor(const LoraFiles& files, const LoraModule& module,
                                               const std::string& name, const io::Extents& shape) {
  const io::SafetensorsInfo* tensor = files.tensors.find(name);
  if (tensor != nullptr && tensor->shape == shape) return tensor;
  if (tensor != nullptr)
    return invalid_argument(fmt::format("{}: {} is {}, but {} in the model; is it of another model?",
                                        files.path, name, list(tensor->shape), list(shape)));
  const std::optional<std::vector<int64_t>>& layers = files.config.layers;
  const bool left_out = files.config.some_modules || (layers && std::find(layers->begin(), layers->end(),
                                                                          module.layer()) == layers->end());
  if (left_out && !std::binary_search(files.modules.begin(), files.modules.end(), module.name))
    return static_cast<const io::SafetensorsInfo*>(nullptr);
  return invalid_argument(
      fmt::format("{}: {} {} is missing; an adapter has a matrix in all layers or in none", files.path, name,
                  list(shape)));
}

// Writes a module's factors into those of its shares. What is beyond the module's rank stays zero. A module
// with another scale than the model's adapters has it in B.
Status take_module(const LoraFiles& files, const LoraModule& module, const std::vector<std::string>& paths,
                   std::span<runtime::Buffer> values) {
  const int64_t rank = files.config.rank_of(module.name);
  ASSIGN_OR_RETURN(const auto* a_tensor, find_factor(files, module, module.a_name(), {rank, module.inputs}));
  ASSIGN_OR_RETURN(const auto* b_tensor, find_factor(files, module, module.b_name(), {module.rows, rank}));
  if (a_tensor == nullptr || b_tensor == nullptr) return {};
  ASSIGN_OR_RETURN(const std::vector<float> a, read_floats(files, *a_tensor));
  ASSIGN_OR_RETURN(const std::vector<float> b, read_floats(files, *b_tensor));
  const auto most = static_cast<double>(files.rank());
  const double scale = files.alpha() / (files.config.use_rslora ? std::sqrt(most) : most);
  double factor = files.config.scale_of(module.name) / scale;
  if (std::abs(factor - 1) < 1e-12) factor = 1;  // as it was written, but for the rounding of the quotients
  for (const LoraShare& share : module.shares) {
    runtime::Buffer& to_a = values[parameter_of(paths, share.a.path)];
    const PartPlaces at_a = part_places(share.a, to_a.shape());
    for (size_t r = 0; r < static_cast<size_t>(rank); ++r)
      for (size_t c = 0; c < at_a.columns.size(); ++c)
        to_a.mutable_as<float>()[static_cast<size_t>(at_a.rows[r] + at_a.columns[c])] =
            a[r * at_a.columns.size() + c];
    runtime::Buffer& to_b = values[parameter_of(paths, share.b.path)];
    const PartPlaces at_b = part_places(share.b, to_b.shape());
    for (size_t i = 0; i < share.rows.size(); ++i)
      for (size_t r = 0; r < static_cast<size_t>(rank); ++r)
        to_b.mutable_as<float>()[static_cast<size_t>(at_b.rows[i] + at_b.columns[r])] =
            static_cast<float>(factor * b[static_cast<size_t>(share.rows[i] * rank) + r]);
  }
  return {};
}

// A tensor that is said to be the base's must be it, in its own type.
Status check_copy(const LoraFiles& files, const io::SafetensorsInfo& tensor,
                  const std::vector<WeightPart>& base, const std::vector<std::string>& paths,
                  std::span<const runtime::Buffer> values) {
  std::string name = lora_base_tensor(tensor.name);
  const auto named = [&](const WeightPart& part) { return part.name == name; };
  // A tied head is the embedding, the first of all weights.
  const bool is_head = name == "lm_head.weight" || name == "embed_out.weight";
  if (std::none_of(base.begin(), base.end(), named) && is_head) name = base.front().name;
  ASSIGN_OR_RETURN(std::vector<float> theirs, read_floats(files, tensor));
  std::vector<float> ours;
  for (const WeightPart& part : base) {
    if (!named(part)) continue;
    const runtime::Buffer& whole = values[parameter_of(paths, part.path)];
    const std::string_view dtype = whole.shape().dtype == ir::DType::bf16 ? "BF16" : "F32";
    const std::vector<std::byte> bytes = take_part(part, whole);
    std::vector<float> some(bytes.size() / static_cast<size_t>(io::safetensors_item_size(dtype)));
    elements_to_f32(dtype, bytes, some);
    ours.insert(ours.end(), some.begin(), some.end());
    if (dtype == "F32") continue;
    std::vector<std::byte> narrow(theirs.size() * 2);  // a frozen weight is held in bf16
    elements_from_f32("BF16", theirs, narrow);
    elements_to_f32("BF16", narrow, theirs);
  }
  if (ours.empty())
    return unsupported(
        fmt::format("{}: {} is not a lora_A or lora_B of a linear layer, and no copy of a weight of the base",
                    files.path, tensor.name));
  if (tensor.dtype != "F32") {
    std::vector<std::byte> narrow(ours.size() * 2);
    elements_from_f32(tensor.dtype, ours, narrow);
    elements_to_f32(tensor.dtype, narrow, ours);
  }
  if (ours == theirs) return {};
  return invalid_argument(fmt::format(
      "{}: {} is not the weight {} of the base: it was trained, or is of another model; merge the "
      "adapter in PEFT (merge_and_unload) and import the model",
      files.path, tensor.name, name));
}

}  // namespace

Status take_lora(const LoraFiles& files, const std::vector<WeightPart>& base,
                 const std::vector<LoraModule>& modules, const std::vector<std::string>& paths,
                 std::span<runtime::Buffer> values) {
  for (const LoraModule& module : modules) RETURN_IF_ERROR(take_module(files, module, paths, values));
  for (const io::SafetensorsInfo& tensor : files.tensors.tensors())
    if (!lora_base_tensor(tensor.name).empty())
      RETURN_IF_ERROR(check_copy(files, tensor, base, paths, values));
  return {};
}

}  // namespace ostro::hf
