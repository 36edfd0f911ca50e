#include "ostro/without/rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ostro/data/rows/row_verdicts.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"

namespace ostro::without {
namespace {

std::string quoted(const std::string& text) { return config::flow_text(config::Node::string(text)); }

// The number of the last row of a file.
Result<int64_t> last_row(io::FileSystem& fs, const data::Component& component, const data::SourceFile& file) {
  const auto* text = std::get_if<data::TextFormat>(&component.format);
  if (text == nullptr && file.format == data::FileFormat::kParquet)
    return invalid_argument(fmt::format(
        "--as rebuild: {} has columns and no texts, and its rows cannot be left out by number", file.path));
  data::RowOptions options;
  if (text != nullptr) options.fields = {{text->text_key}};
  ASSIGN_OR_RETURN(const auto reader, data::open_rows(fs, file.path, file.format, options));
  data::Row row;
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(more, reader->next(row));
  }
  return reader->position().rows;
}

// Leaves out more rows of a file.
void leave_out(data::FileVerdicts& file, const std::set<int64_t>& rows) {
  std::map<int64_t, data::RowVerdict> said;
  for (data::RowVerdict& verdict : file.said) said[verdict.row] = std::move(verdict);
  for (const int64_t row : rows) said[row] = {.row = row, .drop = "without", .of = {}, .value = {}};
  file.said.clear();
  for (auto& [row, verdict] : said) file.said.push_back(std::move(verdict));
}

using RowsByFile = std::map<std::string, std::set<int64_t>>;

// The rows of a removal that component `index` has.
Result<RowsByFile> rows_of(const Removal& removal, size_t index, const data::Component& component) {
  RowsByFile out;
  for (size_t i = 0; i < removal.sources.size(); ++i) {
    const std::vector<size_t>& in = removal.components[i];
    if (std::find(in.begin(), in.end(), index) == in.end()) continue;
    if (component.is_in_place())
      return invalid_argument(fmt::format(
          "--as rebuild: {} is in a store that is used where it is, without its texts ({}.cache_dir: {}); "
          "use mask or blank",
          removal.documents[i], component.key, component.cache_dir));
    out[removal.sources[i].file].insert(removal.sources[i].number);
  }
  return out;
}

// The verdicts of a component without the rows of `dropped`.
Result<data::RowVerdicts> verdicts_without(io::FileSystem& fs, const data::DataOptions& options,
                                           const data::Component& component, const RowsByFile& dropped) {
  ASSIGN_OR_RETURN(
      const data::FoundSources found,
      data::find_sources(fs, data::source_places(options, component), data::SourceKeys::of(component.key)));
  ASSIGN_OR_RETURN(std::vector<data::SourceFile> files, found.all());
  std::erase_if(files, [](const data::SourceFile& file) { return file.list != data::Split::kTrain; });
  for (const auto& [path, rows] : dropped)
    if (std::none_of(files.begin(), files.end(),
                     [&](const data::SourceFile& file) { return file.path == path; }))
      return invalid_argument(fmt::format(
          "--as rebuild: {}:{} is in the store of {}, and {}.train_urls lead to no such file any more; use "
          "mask or blank",
          path, *rows.begin(), component.key, component.key));
  data::RowVerdicts out;
  if (component.rows) {
    ASSIGN_OR_RETURN(out, data::read_row_verdicts(fs, *component.rows));
    if (out.files.size() != files.size())
      return invalid_argument(fmt::format("{}.rows: {} is of {} files, and the texts are {}", component.key,
                                          *component.rows, out.files.size(), files.size()));
  }
  out.files.resize(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    data::FileVerdicts& file = out.files[i];
    if (!component.rows) {
      file.file = files[i].path;
      ASSIGN_OR_RETURN(file.sha256, io::file_sha256(fs, files[i].path));
      ASSIGN_OR_RETURN(file.rows, last_row(fs, component, files[i]));
    }
    if (const auto rows = dropped.find(files[i].path); rows != dropped.end()) leave_out(file, rows->second);
  }
  return out;
}

}  // namespace

Result<std::vector<config::Override>> rebuild_options(const Context& context, const std::string& run,
                                                      const train::TrainConfig& config,
                                                      const Removal& removal, const std::string& folder) {
  io::FileSystem& fs = context.fs;
  const std::vector<data::Component> components = data::components_of(config.data);
  std::vector<config::Override> out;
  RETURN_IF_ERROR(fs.make_dirs(folder));
  for (size_t i = 0; i < components.size(); ++i) {
    const data::Component& component = components[i];
    ASSIGN_OR_RETURN(const RowsByFile dropped, rows_of(removal, i, component));
    if (dropped.empty()) continue;
    ASSIGN_OR_RETURN(const auto verdicts, verdicts_without(fs, config.data, component, dropped));
    const std::string name = component.name.empty() ? "store" : component.name;
    const std::string rows = io::join_path(folder, name + ".rows.jsonl");
    RETURN_IF_ERROR(data::write_row_verdicts(fs, rows, verdicts));
    out.push_back({component.key + ".rows", quoted(rows)});
    out.push_back({component.key + ".cache_dir", quoted(io::join_path(folder, name))});
  }
  if (!config.data.tokenizer) {
    out.push_back({"data.tokenizer", quoted(io::join_path(run, "tokenizer.json"))});
    if (config.data.vocab_size) out.push_back({"data.vocab_size", "null"});
  }
  return out;
}

}  // namespace ostro::without
