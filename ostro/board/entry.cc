#include "ostro/board/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <variant>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/config_file.h"
#include "ostro/config/yaml.h"
#include "ostro/io/files/path.h"
#include "ostro/ir/text/text.h"
#include "ostro/models/foreign_model.h"
#include "ostro/provenance/provenance.h"

namespace ostro::board {
namespace {

constexpr int64_t kMostProgramBytes = int64_t{1} << 26;
constexpr int64_t kMostManifestBytes = int64_t{1} << 26;
constexpr int64_t kMostConfigBytes = int64_t{1} << 24;

// Names of the axes in a list of pairs in a section ("numerics", "leaves"); the model has their sizes.
config::IntMap axes_of(const config::Node& root, const char* section, const char* list) {
  config::IntMap out;
  const config::Node* at = root.find(section);
  if (at != nullptr) at = at->find(list);
  if (at != nullptr)
    for (const config::Node& pair : at->items)
      if (!pair.items.empty()) out.emplace_back(pair.items.front().text, 0);
  return out;
}

// The positions of a row, from the leaf program's tokens.
Result<int64_t> positions_of(const train::CanonicalPrograms& programs, const std::string& path) {
  const ir::Program& leaf = programs.leaf;
  for (size_t i = 0; i < leaf.param_names.size(); ++i) {
    if (leaf.param_names[i] != "tokens") continue;
    const ir::Shape& shape = leaf.body.shape(leaf.body.params[i]);
    if (shape.axes.size() == 2 && shape.axes[1].name == "pos" && shape.axes[1].size >= 1)
      return shape.axes[1].size;
  }
  return corrupt(
      fmt::format("{}: its leaf program has no parameter tokens [batch, pos] with a position", path));
}

Status add_foreign(io::FileSystem& fs, Entry& entry) {
  const std::string config_path = chain::config_file(fs, entry.record),
                    program_path = io::join_path(entry.record, audit::kProgramFile);
  ASSIGN_OR_RETURN(
      const config::Node canonical,
      config::parse_yaml(chain::decimal_json(entry.chain.genesis().config), "the genesis: config", false));
  const config::Node* model = canonical.find("model");
  const config::Node* type = model == nullptr ? nullptr : model->find("type");
  if (type == nullptr) return corrupt(fmt::format("{}: its genesis has no model.type", entry.record));
  const auto has_type = [&](const auto& choice) { return choice->type() == type->text; };
  if (std::any_of(entry.models.begin(), entry.models.end(), has_type)) return {};
  ASSIGN_OR_RETURN(const std::string yaml, fs.read_file(config_path, kMostConfigBytes));
  ASSIGN_OR_RETURN(const config::Node written, config::parse_yaml(yaml, config_path, false));
  const config::Node* its_model = written.find("model");
  if (its_model == nullptr) return corrupt(fmt::format("{}: has no section model", config_path));
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(program_path, kMostProgramBytes));
  auto programs = train::parse_programs(text);
  if (!programs.ok()) return audit::program_file_error(program_path, programs.error());
  ASSIGN_OR_RETURN(const int64_t positions, positions_of(*programs, program_path));
  entry.models.push_back(std::make_shared<models::ForeignModel>(type->text, *model, *its_model, positions,
                                                                axes_of(canonical, "numerics", "leaves"),
                                                                axes_of(canonical, "numerics", "cells")));
  entry.is_foreign = true;
  return {};
}

int64_t bytes_of(int64_t number) {
  constexpr int kBits = 8;
  const int bits = std::bit_width(static_cast<uint64_t>(number < 0 ? ~number : number));
  return std::max(1, (bits + kBits - 1) / kBits);
}

int64_t attribute_bytes(const ir::Attr& attribute) {
  struct Count {
    int64_t operator()(int64_t number) const { return bytes_of(number); }
    int64_t operator()(double) const { return sizeof(double); }
    int64_t operator()(const std::string&) const { return 1; }
    int64_t operator()(const std::vector<int64_t>& numbers) const {
      int64_t bytes = 0;
      for (const int64_t number : numbers) bytes += bytes_of(number);
      return bytes;
    }
    int64_t operator()(const std::vector<std::string>& words) const { return std::ssize(words); }
  };
  return std::visit(Count{}, attribute);
}

void add_held(const ir::Block& block, int64_t& bytes) {
  constexpr int64_t kOperandBytes = 2;  // its number; with more values, the limit is passed before
  for (const ir::Op& op : block.ops) {
    bytes += 1 + kOperandBytes * std::ssize(op.operands);
    for (const auto& [name, attribute] : op.attrs.all()) {
      const bool is_data = op.kind == ir::OpKind::constant && name == "data";
      bytes += is_data ? block.shape(op.results.front()).bytes() : attribute_bytes(attribute);
    }
    for (const ir::Block& region : op.regions) add_held(region, bytes);
  }
}

// A link in an entry could lead to any file of this machine. A copy with links, as caches of downloads have,
// is no fault of the entry.
Status refuse_links(io::FileSystem& fs, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<io::DirEntry> entries, fs.list(folder));
  for (const io::DirEntry& entry : entries) {
    const std::string path = io::join_path(folder, entry.name);
    if (entry.is_link)
      return unsupported(
          fmt::format("{}: is a link, which may lead to any file of this machine; an entry has "
                      "its files themselves (download it into a folder of its own)",
                      path));
    if (entry.is_directory) RETURN_IF_ERROR(refuse_links(fs, path));
  }
  return {};
}

Result<chain::Chain> chain_of(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(path));
  if (info.size > kMostChainBytes)
    return corrupt(fmt::format("{}: {} bytes, more than the {} that the chain of an entry may have", path,
                               info.size, kMostChainBytes));
  return chain::read_chain(fs, path);
}

}  // namespace

Result<Entry> open_entry(const Context& context, const std::string& folder) {
  io::FileSystem& fs = context.fs;
  Entry out;
  out.folder = folder;
  out.models = context.models;
  RETURN_IF_ERROR(refuse_links(fs, folder));
  const std::string manifest = io::join_path(folder, bundle::kManifestFile);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(manifest, kMostManifestBytes));
  out.hash = sha256_hex(text);
  ASSIGN_OR_RETURN(out.bundle, bundle::open_record(fs, folder));
  out.record = out.bundle.folder;
  for (const char* name : {"config.json", provenance::kProvenanceFile}) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(folder, name)));
    out.has_model = out.has_model || there;
  }
  ASSIGN_OR_RETURN(out.chain, chain_of(fs, io::join_path(out.record, chain::kChainFile)));
  RETURN_IF_ERROR(add_foreign(fs, out));
  return out;
}

Context with_models(const Context& context, const Entry& entry) {
  Context out = context;
  out.models = entry.models;
  return out;
}

Result<audit::RecordedRun> open_run(const Context& context, const Entry& entry) {
  return audit::open_recorded(context.fs, entry.record, entry.models, /*stored_programs=*/false);
}

Result<ir::Program> read_score_program(io::FileSystem& fs, const Entry& entry) {
  const std::string path = io::join_path(entry.record, bundle::kScoreFile);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMostProgramBytes));
  auto program = ir::parse_program(text);
  if (!program.ok()) return audit::program_file_error(path, program.error());
  return program;
}

int64_t held_bytes(const ir::Program& program) {
  int64_t bytes = 0;
  for (const ir::ValueId parameter : program.body.params)
    for (const ir::Axis& axis : program.body.shape(parameter).axes) bytes += bytes_of(axis.size);
  add_held(program.body, bytes);
  return bytes;
}

}  // namespace ostro::board
