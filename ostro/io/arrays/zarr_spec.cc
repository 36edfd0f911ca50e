#include "ostro/io/arrays/zarr_spec.h"

#include <array>
#include <cmath>
#include <utility>

#include "ostro/io/json/json_fields.h"

namespace ostro::io {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kMaxChunkBytes = int64_t{1} << 30;
constexpr int64_t kMaxChunksPerShard = int64_t{1} << 24;
constexpr int64_t kMaxElements = int64_t{1} << 58;  // limits bytes and offsets to 62 bits

constexpr std::pair<std::string_view, int64_t> kItemSizes[] = {
    {"bool", 1},    {"int8", 1},    {"int16", 2},  {"int32", 4},  {"int64", 8},
    {"uint8", 1},   {"uint16", 2},  {"uint32", 4}, {"uint64", 8}, {"bfloat16", 2},
    {"float16", 2}, {"float32", 4}, {"float64", 8}};
constexpr std::array<const char*, 3> kShuffles = {"noshuffle", "shuffle", "bitshuffle"};

OrderedJson bytes_codec() { return {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}; }

OrderedJson inner_codecs(const ZarrSpec& spec) {
  OrderedJson codecs = OrderedJson::array({bytes_codec()});
  const Compressor& c = spec.compressor;
  switch (c.kind) {
    case Compression::kNone: break;
    case Compression::kZstd:
      codecs.push_back({{"name", "zstd"}, {"configuration", {{"level", c.level}, {"checksum", false}}}});
      break;
    case Compression::kGzip:
      codecs.push_back({{"name", "gzip"}, {"configuration", {{"level", c.level}}}});
      break;
    case Compression::kBlosc:
      codecs.push_back({{"name", "blosc"},
                        {"configuration",
                         {{"cname", c.blosc_name},
                          {"clevel", c.level},
                          {"shuffle", kShuffles[static_cast<size_t>(c.blosc_shuffle)]},
                          {"typesize", c.item_size},
                          {"blocksize", 0}}}});
      break;
  }
  if (spec.chunk_crc32c) codecs.push_back({{"name", "crc32c"}});
  return codecs;
}

// Parses a named element of the standard: "name" or {"name": ..., "configuration": {...}}.
struct Named {
  std::string name;
  Json configuration = Json::object();
};

Result<Named> parse_named(const Json& value, const std::string& where) {
  if (value.is_string()) return Named{value.get<std::string>()};
  const JsonFields fields(value, where);
  Named named;
  ASSIGN_OR_RETURN(named.name, fields.string("name"));
  if (fields.has("configuration")) {
    ASSIGN_OR_RETURN(const Json* configuration, fields.get("configuration"));
    if (!configuration->is_object()) return fields.bad("configuration", "is not an object");
    named.configuration = *configuration;
  }
  return named;
}

Result<std::vector<Named>> parse_codecs(const JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const Json* list, fields.array(key));
  std::vector<Named> codecs;
  for (const Json& item : *list) {
    ASSIGN_OR_RETURN(Named named, parse_named(item, fmt::format("{}: {}", fields.where(), key)));
    codecs.push_back(std::move(named));
  }
  return codecs;
}

Status check_little(const Named& codec, int64_t item_size, const std::string& where) {
  if (codec.name != "bytes") {
    return unsupported(fmt::format("{}: codec \"{}\" where \"bytes\" is expected", where, codec.name));
  }
  if (item_size == 1) return {};
  ASSIGN_OR_RETURN(const std::string endian,
                   JsonFields(codec.configuration, where + ": bytes").string("endian"));
  return endian == "little" ? Status() : Status(unsupported(fmt::format("{}: endian \"{}\"", where, endian)));
}

Result<Compressor> parse_compressor(const Named& codec, const std::string& where) {
  const JsonFields fields(codec.configuration, fmt::format("{}: {}", where, codec.name));
  Compressor c;
  if (codec.name == "zstd") {
    c.kind = Compression::kZstd;
    ASSIGN_OR_RETURN(const int64_t level, fields.integer("level", -(1 << 17), 22));
    c.level = static_cast<int>(level);
  } else if (codec.name == "gzip") {
    c.kind = Compression::kGzip;
    ASSIGN_OR_RETURN(const int64_t level, fields.integer("level", 0, 9));
    c.level = static_cast<int>(level);
  } else if (codec.name == "blosc") {
    c.kind = Compression::kBlosc;
    ASSIGN_OR_RETURN(c.blosc_name, fields.string("cname"));
    ASSIGN_OR_RETURN(const int64_t level, fields.integer("clevel", 0, 9));
    c.level = static_cast<int>(level);
    ASSIGN_OR_RETURN(const std::string shuffle, fields.string("shuffle"));
    c.blosc_shuffle = -1;
    for (int i = 0; i < 3; ++i) {
      if (shuffle == kShuffles[static_cast<size_t>(i)]) c.blosc_shuffle = i;
    }
    if (c.blosc_shuffle < 0) return fields.bad("shuffle", fmt::format("is \"{}\"", shuffle));
    if (fields.has("typesize")) {
      ASSIGN_OR_RETURN(const int64_t item_size, fields.integer("typesize", 1, 255));
      c.item_size = static_cast<int>(item_size);
    }
  } else {
    return unsupported(fmt::format("{}: codec \"{}\" is not one that this version reads", where, codec.name));
  }
  return c;
}

// Reads the codecs of a chunk: "bytes", then optionally a compressor, then optionally crc32c.
Status parse_inner_codecs(std::span<const Named> codecs, const std::string& where, ZarrSpec& spec) {
  if (codecs.empty()) return corrupt(fmt::format("{}: no codecs", where));
  RETURN_IF_ERROR(check_little(codecs[0], spec.item_size(), where));
  codecs = codecs.subspan(1);
  if (!codecs.empty() && codecs[0].name != "crc32c") {
    ASSIGN_OR_RETURN(spec.compressor, parse_compressor(codecs[0], where));
    codecs = codecs.subspan(1);
  }
  if (!codecs.empty() && codecs[0].name == "crc32c") {
    spec.chunk_crc32c = true;
    codecs = codecs.subspan(1);
  }
  if (codecs.empty()) return {};
  return unsupported(fmt::format("{}: codec \"{}\" at this place", where, codecs[0].name));
}

Status parse_sharding(const Named& codec, const std::string& where, ZarrSpec& spec) {
  const JsonFields fields(codec.configuration, where + ": sharding_indexed");
  spec.shard = spec.chunk;
  ASSIGN_OR_RETURN(spec.chunk, fields.integers("chunk_shape", 1, kMaxElements));
  ASSIGN_OR_RETURN(const auto inner, parse_codecs(fields, "codecs"));
  RETURN_IF_ERROR(parse_inner_codecs(inner, fields.where(), spec));
  ASSIGN_OR_RETURN(const auto index, parse_codecs(fields, "index_codecs"));
  if (index.size() != 2 || index[1].name != "crc32c") {
    return unsupported(fmt::format("{}: index_codecs other than bytes and crc32c", fields.where()));
  }
  RETURN_IF_ERROR(check_little(index[0], 8, fields.where()));
  if (fields.has("index_location")) {
    ASSIGN_OR_RETURN(const std::string location, fields.string("index_location"));
    if (location != "start" && location != "end") return fields.bad("index_location", "is not start or end");
    spec.index_at_end = location == "end";
  }
  return {};
}

Status parse_names(const JsonFields& fields, ZarrSpec& spec) {
  if (!fields.has("dimension_names")) return {};
  ASSIGN_OR_RETURN(const Json* names, fields.get("dimension_names"));
  if (names->is_null()) return {};
  if (!names->is_array()) return fields.bad("dimension_names", "is not a list");
  for (const Json& name : *names) {
    if (!name.is_string() && !name.is_null()) return fields.bad("dimension_names", "holds more than names");
    spec.dimension_names.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  return {};
}

Status parse_key_encoding(const JsonFields& fields, ZarrSpec& spec) {
  ASSIGN_OR_RETURN(const Json* value, fields.get("chunk_key_encoding"));
  ASSIGN_OR_RETURN(const Named encoding, parse_named(*value, fields.where() + ": chunk_key_encoding"));
  if (encoding.name != "default" && encoding.name != "v2") {
    return unsupported(fmt::format("{}: chunk_key_encoding \"{}\"", fields.where(), encoding.name));
  }
  spec.v2_names = encoding.name == "v2";
  spec.separator = spec.v2_names ? '.' : '/';
  const JsonFields configuration(encoding.configuration, fields.where() + ": chunk_key_encoding");
  if (configuration.has("separator")) {
    ASSIGN_OR_RETURN(const std::string separator, configuration.string("separator"));
    if (separator != "/" && separator != ".") return configuration.bad("separator", "is not / or .");
    spec.separator = separator[0];
  }
  return {};
}

bool is_zero(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  return value.is_number() && value.get<double>() == 0 && !std::signbit(value.get<double>());
}

Status check_understood(const Json& root, const std::string& path) {
  static constexpr std::array<std::string_view, 11> kKnown = {
      "zarr_format",         "node_type",  "shape",  "data_type",  "chunk_grid",
      "chunk_key_encoding",  "fill_value", "codecs", "attributes", "dimension_names",
      "storage_transformers"};
  for (const auto& [key, value] : root.items()) {
    bool known = false;
    for (const auto name : kKnown) known = known || name == key;
    const bool may_ignore = value.is_object() && value.value("must_understand", Json(true)) == Json(false);
    if (!known && !may_ignore) return unsupported(fmt::format("{}: unknown field \"{}\"", path, key));
  }
  if (root.contains("storage_transformers") && !root["storage_transformers"].empty()) {
    return unsupported(fmt::format("{}: \"storage_transformers\" is not empty", path));
  }
  return {};
}

}  // namespace

int64_t zarr_item_size(std::string_view dtype) {
  for (const auto& [name, size] : kItemSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

std::string ZarrSpec::chunk_name(const Extents& index) const {
  std::string name = v2_names ? (index.empty() ? "0" : "") : "c";
  for (size_t d = 0; d < index.size(); ++d) {
    if (d > 0 || !v2_names) name.push_back(separator);
    name += std::to_string(index[d]);
  }
  return name;
}

std::string zarr_json(const ZarrSpec& spec) {
  OrderedJson root;
  root["zarr_format"] = 3;
  root["node_type"] = "array";
  root["shape"] = spec.shape;
  root["data_type"] = spec.dtype;
  root["chunk_grid"] = {{"name", "regular"}, {"configuration", {{"chunk_shape", spec.file_chunk()}}}};
  root["chunk_key_encoding"] = {{"name", spec.v2_names ? "v2" : "default"},
                                {"configuration", {{"separator", std::string(1, spec.separator)}}}};
  if (spec.dtype == "bool") {
    root["fill_value"] = false;
  } else if (spec.dtype.find("float") != std::string::npos) {
    root["fill_value"] = 0.0;
  } else {
    root["fill_value"] = 0;
  }
  if (spec.sharded()) {
    OrderedJson index_codecs = OrderedJson::array({bytes_codec()});
    index_codecs.push_back({{"name", "crc32c"}});
    OrderedJson configuration;
    configuration["chunk_shape"] = spec.chunk;
    configuration["codecs"] = inner_codecs(spec);
    configuration["index_codecs"] = std::move(index_codecs);
    configuration["index_location"] = spec.index_at_end ? "end" : "start";
    OrderedJson sharding;
    sharding["name"] = "sharding_indexed";
    sharding["configuration"] = std::move(configuration);
    root["codecs"] = OrderedJson::array({std::move(sharding)});
  } else {
    root["codecs"] = inner_codecs(spec);
  }
  if (!spec.dimension_names.empty()) {
    OrderedJson names = OrderedJson::array();
    for (const std::string& name : spec.dimension_names) {
      names.push_back(name.empty() ? OrderedJson() : OrderedJson(name));
    }
    root["dimension_names"] = std::move(names);
  }
  if (spec.attributes != "{}") {
    root["attributes"] = OrderedJson::parse(spec.attributes, nullptr, /*allow_exceptions=*/false);
    OSTRO_CHECK(root["attributes"].is_object(), "attributes are not a JSON object: {}", spec.attributes);
  }
  return root.dump(2) + "\n";
}

Status validate(const ZarrSpec& spec, const std::string& where) {
  const auto bad = [&](std::string what) { return Status(corrupt(fmt::format("{}: {}", where, what))); };
  const size_t rank = spec.shape.size();
  const int64_t item = spec.item_size();
  if (item == 0) return unsupported(fmt::format("{}: data_type \"{}\"", where, spec.dtype));
  if (rank > 32) return bad(fmt::format("rank {} is above 32", rank));
  if (spec.chunk.size() != rank) return bad("chunk_shape has another rank than shape");
  if (spec.sharded() && spec.shard.size() != rank)
    return bad("the shard's chunk_shape has another rank than shape");
  if (!spec.dimension_names.empty() && spec.dimension_names.size() != rank) {
    return bad("dimension_names has another length than shape");
  }
  int64_t elements = 1, chunk_elements = 1, chunks = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (spec.shape[d] < 0) return bad("a negative shape");
    if (spec.shape[d] > 0 && elements > kMaxElements / spec.shape[d]) return bad("shape is too large");
    elements *= spec.shape[d];
    if (spec.chunk[d] < 1 || chunk_elements > kMaxChunkBytes / item / spec.chunk[d]) {
      return bad(fmt::format("chunk_shape is empty or above {} bytes", kMaxChunkBytes));
    }
    chunk_elements *= spec.chunk[d];
    if (!spec.sharded()) continue;
    if (spec.shard[d] < 1 || spec.shard[d] % spec.chunk[d] != 0) {
      return bad("a shard is not a whole number of chunks");
    }
    if (chunks > kMaxChunksPerShard / (spec.shard[d] / spec.chunk[d]))
      return bad("too many chunks in a shard");
    chunks *= spec.shard[d] / spec.chunk[d];
  }
  return {};
}

Result<ZarrSpec> parse_zarr_json(std::string_view text, const std::string& path) {
  ASSIGN_OR_RETURN(const Json root, parse_json(text, path));
  const JsonFields fields(root, path);
  RETURN_IF_ERROR(fields.integer("zarr_format", 3, 3));
  ASSIGN_OR_RETURN(const std::string node_type, fields.string("node_type"));
  if (node_type != "array")
    return unsupported(fmt::format("{}: node_type \"{}\", not an array", path, node_type));
  RETURN_IF_ERROR(check_understood(root, path));

  ZarrSpec spec;
  ASSIGN_OR_RETURN(spec.shape, fields.integers("shape", 0, kMaxElements));
  ASSIGN_OR_RETURN(const Json* data_type, fields.get("data_type"));
  ASSIGN_OR_RETURN(const Named dtype, parse_named(*data_type, path + ": data_type"));
  spec.dtype = dtype.name;
  if (spec.item_size() == 0) return unsupported(fmt::format("{}: data_type \"{}\"", path, spec.dtype));

  ASSIGN_OR_RETURN(const Json* grid_value, fields.get("chunk_grid"));
  ASSIGN_OR_RETURN(const Named grid, parse_named(*grid_value, path + ": chunk_grid"));
  if (grid.name != "regular") return unsupported(fmt::format("{}: chunk_grid \"{}\"", path, grid.name));
  ASSIGN_OR_RETURN(
      spec.chunk,
      JsonFields(grid.configuration, path + ": chunk_grid").integers("chunk_shape", 1, kMaxElements));
  RETURN_IF_ERROR(parse_key_encoding(fields, spec));
  ASSIGN_OR_RETURN(const Json* fill, fields.get("fill_value"));
  if (!is_zero(*fill))
    return unsupported(fmt::format("{}: fill_value {} (only 0 is read)", path, fill->dump()));

  ASSIGN_OR_RETURN(const auto codecs, parse_codecs(fields, "codecs"));
  if (codecs.size() == 1 && codecs[0].name == "sharding_indexed") {
    RETURN_IF_ERROR(parse_sharding(codecs[0], path, spec));
  } else {
    RETURN_IF_ERROR(parse_inner_codecs(codecs, path, spec));
  }
  RETURN_IF_ERROR(parse_names(fields, spec));
  if (fields.has("attributes")) {
    RETURN_IF_ERROR(fields.object("attributes"));
    spec.attributes = root["attributes"].dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  RETURN_IF_ERROR(validate(spec, path));
  return spec;
}

}  // namespace ostro::io
