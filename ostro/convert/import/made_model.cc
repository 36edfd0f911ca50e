#include "ostro/convert/import/made_model.h"

#include <utility>

#include "ostro/audit/record/witness.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/stream_save.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/convert/import/origin_file.h"
#include "ostro/convert/import/training_yaml.h"
#include "ostro/hf/import.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::convert {
namespace {

// A cell of a stacked weight is a layer.
Result<checkpoint::Saved> save(io::FileSystem& fs, const std::string& root, const MadeModel& model) {
  checkpoint::Info info;
  info.kind = checkpoint::Kind::kPermanent;
  info.numerics_version = chain::kNumericsVersion;
  info.config = config::resolved_yaml(model.config);
  std::vector<checkpoint::TensorSpec> specs;
  std::vector<size_t> cells;
  for (size_t k = 0; k < model.paths.size(); ++k) {
    const ir::Shape& shape = model.values[k].shape();
    checkpoint::TensorSpec spec{model.paths[k], std::string(ir::dtype_name(shape.dtype)), {}, {}, {}};
    for (const ir::Axis& axis : shape.axes) {
      spec.axes.push_back(axis.name);
      spec.shape.push_back(axis.size);
      spec.cell.push_back(spec.cell.empty() && axis.name == "layers" ? 1 : axis.size);
    }
    cells.push_back(spec.cell.empty() ? 1 : static_cast<size_t>(spec.shape[0] / spec.cell[0]));
    specs.push_back(std::move(spec));
  }
  ASSIGN_OR_RETURN(checkpoint::StreamSave stream, checkpoint::StreamSave::begin(fs, root, info, specs));
  for (size_t k = 0; k < model.paths.size(); ++k) {
    const size_t bytes = model.values[k].bytes().size() / cells[k];
    for (size_t i = 0; i < cells[k]; ++i)
      RETURN_IF_ERROR(stream.write(k, i, model.values[k].bytes().subspan(i * bytes, bytes)));
  }
  return stream.finish();
}

Status write_all(io::FileSystem& fs, const trained::LoadedModel& source, const MadeModel& model,
                 const std::string& place, checkpoint::Saved& saved) {
  ASSIGN_OR_RETURN(saved, save(fs, io::join_path(place, checkpoint::kCheckpointsFolder), model));
  RETURN_IF_ERROR(hf::copy_companions(fs, io::parent_path(source.tokenizer_path), place));
  const std::string tokenizer = io::join_path(place, "tokenizer.json");
  ASSIGN_OR_RETURN(const bool has_tokenizer, fs.exists(tokenizer));
  if (!has_tokenizer) RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, *source.tokenizer, tokenizer));
  Origin origin{.format = model.format, .files = model.files, .state = saved.name};
  ASSIGN_OR_RETURN(const auto run, audit::run_of_checkpoint(fs, source.parameters.path));
  ASSIGN_OR_RETURN(origin.from, provenance::source_of(fs, source.parameters.path, run.value_or(""), "model"));
  RETURN_IF_ERROR(write_origin(fs, place, origin));
  return io::write_file_atomically(fs, io::join_path(place, kTrainFile),
                                   training_yaml(model.config, model.made_of, model.out));
}

}  // namespace

train::TrainConfig made_config(const trained::LoadedModel& source, const std::string& out) {
  train::TrainConfig config(source.config.model.choices());
  config.data.tokenizer = io::join_path(io::absolute_path(io::clean_path(out)), "tokenizer.json");
  config.data.train_urls = {"texts/*.jsonl"};
  config.trainer.mp = source.config.trainer.mp;
  return config;
}

Result<checkpoint::Saved> write_made_model(io::FileSystem& fs, const trained::LoadedModel& source,
                                           const MadeModel& model) {
  checkpoint::Saved saved;
  RETURN_IF_ERROR(make_whole(
      fs, model.out, [&](const std::string& place) { return write_all(fs, source, model, place, saved); }));
  return saved;
}

}  // namespace ostro::convert
