#include "ostro/convert/open_from_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/tensor.h"
#include "ostro/hf/source_boxes.h"
#include "ostro/trained/opened_model.h"

namespace ostro::convert {
namespace {

// Whether the source has the parameters of the model.
Status check_parameters(const hf::Source& source, const models::ModelFunctions& model) {
  const auto same_axes = [](const ir::Shape& a, const ir::Shape& b) { return a.axes == b.axes; };
  if (source.paths == model.paths && std::equal(source.shapes.begin(), source.shapes.end(),
                                                model.shapes.begin(), model.shapes.end(), same_axes))
    return {};
  return corrupt(fmt::format("{}: its config.json describes a model with other parameters than the record's",
                             source.directory));
}

// Compares one array of the manifest with the parameter that the weights give, which has this shape.
Status check_array(const checkpoint::TensorSpec& spec, const checkpoint::CellHashes& hashes, size_t parameter,
                   const ir::Shape& shape, const checkpoint::ReadBox& read, const std::string& model) {
  checkpoint::Extents sizes;
  for (const ir::Axis& axis : shape.axes) sizes.push_back(axis.size);
  if (spec.shape != sizes)
    return corrupt(
        fmt::format("the manifest has {} {}, the model has {}", spec.path, spec.type_str(), shape.str()));
  if (spec.dtype != "f32")
    return not_found(fmt::format("{} is {} in the checkpoint, so weights in f32 do not give its hash",
                                 spec.path, spec.dtype));
  const std::vector<checkpoint::Box> cells = checkpoint::cells_of(spec);
  std::vector<float> values;
  for (size_t i = 0; i < cells.size(); ++i) {
    values.resize(static_cast<size_t>(io::product(cells[i].shape)));
    RETURN_IF_ERROR(read(parameter, cells[i].start, cells[i].shape, values));
    if (sha256(std::as_bytes(std::span(values))) == hashes[i]) continue;
    return corrupt(fmt::format(
        "the weights of {} do not give the state's {}: the hash of its cell at [{}], {} elements, is another",
        model, spec.path, fmt::join(cells[i].start, ", "), values.size()));
  }
  return {};
}

}  // namespace

Result<OpenedExport> open_from_weights(const Context& context, const ExportRequest& request,
                                       const std::string& model) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(trained::DescribedModel described,
                   trained::describe_model(fs, request.checkpoint, context.models, request.trust));
  ASSIGN_OR_RETURN(const checkpoint::Manifest manifest,
                   checkpoint::read_manifest(fs, described.model.parameters.path));
  ASSIGN_OR_RETURN(hf::Source opened, hf::open_source(fs, model, described.model.tokenizer_path));
  const auto source = std::make_shared<const hf::Source>(std::move(opened));
  RETURN_IF_ERROR(check_parameters(*source, described.model.functions));
  const checkpoint::ReadBox read = hf::source_boxes(source);
  for (size_t k = 0; k < described.arrays.size(); ++k) {
    const auto spec = std::find_if(manifest.tensors.begin(), manifest.tensors.end(),
                                   [&](const auto& one) { return one.path == described.arrays[k]; });
    if (spec == manifest.tensors.end())
      return corrupt(
          fmt::format("{}: its manifest has no {}", described.model.parameters.path, described.arrays[k]));
    context.progress.show("hashing parameters",
                          static_cast<double>(k) / static_cast<double>(described.arrays.size()));
    RETURN_IF_ERROR(check_array(*spec, manifest.cells[static_cast<size_t>(spec - manifest.tensors.begin())],
                                k, source->shapes[k], read, model));
  }
  context.progress.end();
  OpenedExport out{std::move(described.model), {}, {}};
  out.weights = hf::WeightSource{source->paths, source->shapes, read};
  return out;
}

}  // namespace ostro::convert
