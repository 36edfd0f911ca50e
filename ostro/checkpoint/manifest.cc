#include "ostro/checkpoint/manifest.h"

#include "ostro/io/json/file_header.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::checkpoint {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Json = nlohmann::json;
using io::JsonFields;

constexpr io::FileHeader kFileHeader = {"ostro checkpoint", kFormatVersion};
constexpr size_t kHexDigits = 64;

Result<Sha256Digest> parse_digest(const Json& value, const JsonFields& fields, std::string_view key) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text.size() != kHexDigits || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return fields.bad(key, "is not a SHA-256 in hexadecimal");
  }
  Sha256Digest digest;
  const auto digit = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  }
  return digest;
}

Result<TensorSpec> parse_spec(const JsonFields& fields) {
  TensorSpec spec;
  ASSIGN_OR_RETURN(spec.path, fields.string("path"));
  ASSIGN_OR_RETURN(spec.dtype, fields.string("dtype"));
  ASSIGN_OR_RETURN(spec.shape, fields.integers("shape", 0, INT64_MAX));
  ASSIGN_OR_RETURN(spec.cell, fields.integers("cell", 1, INT64_MAX));
  ASSIGN_OR_RETURN(const Json* axes, fields.array("axes"));
  for (const Json& axis : *axes) {
    if (!axis.is_string()) return fields.bad("axes", "holds more than names");
    spec.axes.push_back(axis.get<std::string>());
  }
  return spec;
}

// Adds the tensor's spec and its cells' hashes; returns the hash of the array. `count` stops at one more than
// the list has, so that a hostile shape cannot overflow it.
Result<Sha256Digest> parse_tensor(const Json& value, const std::string& where, Manifest& manifest) {
  const JsonFields fields(value, where);
  ASSIGN_OR_RETURN(TensorSpec spec, parse_spec(fields));
  RETURN_IF_ERROR(validate(std::span(&spec, 1), where));
  ASSIGN_OR_RETURN(const Json* list, fields.array("cells"));
  CellHashes cells;
  for (const Json& item : *list) {
    ASSIGN_OR_RETURN(const Sha256Digest digest, parse_digest(item, fields, "cells"));
    cells.push_back(digest);
  }
  int64_t count = 1;
  for (const int64_t n : io::grid_of(spec.shape, cell_extents(spec))) {
    count = n > 0 && count > static_cast<int64_t>(cells.size()) / n ? static_cast<int64_t>(cells.size()) + 1
                                                                    : count * n;
  }
  if (count != static_cast<int64_t>(cells.size()))
    return fields.bad("cells", "has another length than its shape says");
  ASSIGN_OR_RETURN(const Json* hash, fields.get("sha256"));
  ASSIGN_OR_RETURN(const Sha256Digest array, parse_digest(*hash, fields, "sha256"));
  if (array != array_hash(cells)) return fields.bad("sha256", "does not fit its cells' hashes");
  manifest.tensors.push_back(std::move(spec));
  manifest.cells.push_back(std::move(cells));
  return array;
}

}  // namespace

std::string manifest_json(const Manifest& manifest) {
  OrderedJson root = io::begin_file(kFileHeader);
  root["numerics_version"] = manifest.info.numerics_version;
  root["step"] = manifest.info.step;
  root["kind"] = manifest.info.kind == Kind::kPermanent ? "permanent" : "temporary";
  root["name"] = manifest.name;
  root["chain_head"] = manifest.info.chain_head;
  if (!manifest.info.measured.empty()) root["measured"] = manifest.info.measured;
  root["config"] = manifest.info.config;
  OrderedJson tensors = OrderedJson::array();
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorSpec& spec = manifest.tensors[i];
    OrderedJson cells = OrderedJson::array();
    for (const Sha256Digest& cell : manifest.cells[i]) cells.push_back(to_hex(cell));
    OrderedJson tensor;
    tensor["path"] = spec.path;
    tensor["dtype"] = spec.dtype;
    tensor["axes"] = spec.axes;
    tensor["shape"] = spec.shape;
    tensor["cell"] = cell_extents(spec);
    tensor["sha256"] = to_hex(array_hash(manifest.cells[i]));
    tensor["cells"] = std::move(cells);
    tensors.push_back(std::move(tensor));
  }
  root["tensors"] = std::move(tensors);
  return io::add_checksum(root.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string body, io::remove_checksum(text, path));
  ASSIGN_OR_RETURN(const Json root, io::parse_json(body, path));
  const JsonFields fields(root, path);
  RETURN_IF_ERROR(io::check_header(fields, kFileHeader));
  Manifest manifest;
  ASSIGN_OR_RETURN(manifest.info.numerics_version, fields.string("numerics_version"));
  ASSIGN_OR_RETURN(manifest.info.step, fields.integer("step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(const std::string kind, fields.string("kind"));
  if (kind != "permanent" && kind != "temporary") return fields.bad("kind", fmt::format("is \"{}\"", kind));
  manifest.info.kind = kind == "permanent" ? Kind::kPermanent : Kind::kTemporary;
  ASSIGN_OR_RETURN(manifest.name, fields.string("name"));
  ASSIGN_OR_RETURN(manifest.info.chain_head, fields.string("chain_head"));
  if (fields.has("measured")) {
    ASSIGN_OR_RETURN(manifest.info.measured, fields.string("measured"));
  }
  ASSIGN_OR_RETURN(manifest.info.config, fields.string("config"));
  ASSIGN_OR_RETURN(const Json* tensors, fields.array("tensors"));
  std::vector<Sha256Digest> arrays;
  for (size_t i = 0; i < tensors->size(); ++i) {
    ASSIGN_OR_RETURN(const Sha256Digest array,
                     parse_tensor((*tensors)[i], fmt::format("{}: tensors[{}]", path, i), manifest));
    arrays.push_back(array);
  }
  RETURN_IF_ERROR(validate(manifest.tensors, path));
  if (manifest.name != state_name(manifest.tensors, arrays)) {
    return fields.bad("name", "does not fit the hashes of the tensors");
  }
  return manifest;
}

}  // namespace ostro::checkpoint
