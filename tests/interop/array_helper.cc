// Writes and reads arrays for check_zarr.py, which does the same with Python's libraries.
//   array_helper write DIR                one array per case below, a token store, a checkpoint, safetensors
//   array_helper hash ARRAY               dtype, shape and SHA-256 of all elements
//   array_helper hash_1d ARRAY START N    SHA-256 of a range, read as the data loader does
//   array_helper hash_st FILE_OR_DIR      name, dtype and SHA-256 of every tensor of safetensors
// Element i of what it writes is the low bytes of i * 2654435761 (bool: its lowest bit).
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "ostro/base/sha256.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/arrays/zarr.h"
#include "ostro/io/arrays/zarr_1d.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/path.h"

using namespace ostro;
using namespace ostro::io;

namespace {

Bytes elements(std::string_view dtype, int64_t begin, int64_t count) {
  const auto item = static_cast<size_t>(zarr_item_size(dtype));
  Bytes bytes(static_cast<size_t>(count) * item);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t value = static_cast<uint64_t>(begin + i) * 2654435761u;
    if (dtype == "bool") value &= 1;
    std::memcpy(bytes.data() + static_cast<size_t>(i) * item, &value, item);
  }
  return bytes;
}

Status write_arrays(FileSystem& fs, const std::string& root) {
  const auto write = [&](const std::string& name, ZarrSpec spec) -> Status {
    ASSIGN_OR_RETURN(const ZarrArray array, ZarrArray::create(fs, join_path(root, name), spec));
    return array.write_box(Extents(spec.shape.size(), 0), spec.shape,
                           elements(spec.dtype, 0, product(spec.shape)));
  };
  for (const char* dtype : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                            "bfloat16", "float16", "float32", "float64"}) {
    RETURN_IF_ERROR(
        write(fmt::format("dtype_{}", dtype),
              {.dtype = dtype, .shape = {5, 7}, .chunk = {2, 4}, .dimension_names = {"row", "column"}}));
  }
  ZarrSpec spec{.dtype = "int32", .shape = {5, 70, 11}, .chunk = {2, 16, 11}};
  const std::pair<const char*, Compressor> compressors[] = {
      {"zstd", {.kind = Compression::kZstd, .level = 3}},
      {"gzip", {.kind = Compression::kGzip, .level = 6}},
      {"blosc_lz4", {.kind = Compression::kBlosc, .level = 5, .item_size = 4}},
      {"blosc_zstd",
       {.kind = Compression::kBlosc, .level = 1, .blosc_name = "zstd", .blosc_shuffle = 2, .item_size = 4}}};
  for (const auto& [name, compressor] : compressors) {
    ZarrSpec s = spec;
    s.compressor = compressor;
    RETURN_IF_ERROR(write(fmt::format("codec_{}", name), s));
    s.shard = {4, 32, 22};
    RETURN_IF_ERROR(write(fmt::format("sharded_{}", name), s));
    s.chunk_crc32c = true;
    RETURN_IF_ERROR(write(fmt::format("sharded_crc_{}", name), s));
  }
  RETURN_IF_ERROR(write("scalar", {.dtype = "float64"}));
  RETURN_IF_ERROR(write("dots", {.dtype = "int32", .shape = {4, 6}, .chunk = {2, 2}, .separator = '.'}));
  RETURN_IF_ERROR(write(
      "v2_names", {.dtype = "int32", .shape = {4, 6}, .chunk = {2, 2}, .separator = '.', .v2_names = true}));
  return write_zarr_group(fs, root);
}

// As Levanter lays it out, appended in uneven pieces with commits in between.
Status write_token_store(FileSystem& fs, const std::string& root) {
  for (const char* dtype : {"int32", "int64", "uint16"}) {
    ASSIGN_OR_RETURN(auto writer, Zarr1dWriter::create(fs, join_path(root, dtype), token_store_spec(dtype)));
    int64_t at = 0;
    for (const int64_t piece : {1000, 262144, 1, 300000, 262143}) {
      RETURN_IF_ERROR(writer.append(elements(dtype, at, piece)));
      RETURN_IF_ERROR(writer.commit());
      at += piece;
    }
  }
  return {};
}

Status write_checkpoint(FileSystem& fs, const std::string& root) {
  const Bytes w = elements("float32", 0, 2 * 6 * 5), norm = elements("bfloat16", 0, 6),
              step = elements("int64", 7, 1);
  const std::vector<checkpoint::Tensor> tensors = {
      {{"model/layers/w", "f32", {"layers", "embed", "mlp"}, {2, 6, 5}, {1, 4, 5}}, w, nullptr},
      {{"model/norm", "bf16", {"embed"}, {6}, {}}, norm, nullptr},
      {{"step", "i64", {}, {}, {}}, step, nullptr}};
  ASSIGN_OR_RETURN(const auto saved,
                   checkpoint::save(fs, root, {.step = 7, .numerics_version = "1"}, tensors));
  fmt::print("{}\n", saved.name);
  return {};
}

Status write_weights(FileSystem& fs, const std::string& root) {
  const Bytes w = elements("float32", 0, 12), h = elements("bfloat16", 0, 5), i = elements("int64", 0, 3);
  const std::vector<SafetensorsEntry> entries = {
      {"w", "F32", {3, 4}, w}, {"half", "BF16", {5}, h}, {"ids", "I64", {3}, i}, {"none", "F32", {0, 2}, {}}};
  RETURN_IF_ERROR(write_safetensors_sharded(fs, join_path(root, "one"), entries, 1000));
  return write_safetensors_sharded(fs, join_path(root, "many"), entries, 50);
}

Status hash_array(FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const ZarrArray array, ZarrArray::open(fs, path));
  const ZarrSpec& spec = array.spec();
  Bytes bytes(static_cast<size_t>(product(spec.shape) * spec.item_size()));
  RETURN_IF_ERROR(array.read_box(Extents(spec.shape.size(), 0), spec.shape, bytes));
  std::string shape;
  for (const int64_t extent : spec.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ",", extent);
  fmt::print("{} [{}] {}\n", spec.dtype, shape, sha256_hex(std::span<const std::byte>(bytes)));
  return {};
}

Status hash_range(FileSystem& fs, const std::string& path, int64_t start, int64_t count) {
  ASSIGN_OR_RETURN(const auto reader, Zarr1dReader::open(fs, path));
  Bytes bytes(static_cast<size_t>(count * reader.spec().item_size()));
  RETURN_IF_ERROR(reader.read(start, std::span<std::byte>(bytes)));
  fmt::print("{}\n", sha256_hex(std::span<const std::byte>(bytes)));
  return {};
}

Status hash_weights(FileSystem& fs, const std::string& path) {
  const bool is_file = path.ends_with(".safetensors");
  ASSIGN_OR_RETURN(const auto reader,
                   is_file ? SafetensorsReader::open(fs, path) : SafetensorsReader::open_directory(fs, path));
  for (const SafetensorsInfo& info : reader.tensors()) {
    Bytes bytes(static_cast<size_t>(info.bytes()));
    RETURN_IF_ERROR(reader.read(info.name, bytes));
    fmt::print("{} {} {}\n", info.name, info.dtype, sha256_hex(std::span<const std::byte>(bytes)));
  }
  return {};
}

Status run(int argc, char** argv) {
  FileSystem& fs = local_file_system();
  const std::string command = argc > 2 ? argv[1] : "", path = argc > 2 ? argv[2] : "";
  if (command == "write") {
    RETURN_IF_ERROR(write_arrays(fs, join_path(path, "arrays")));
    RETURN_IF_ERROR(write_token_store(fs, join_path(path, "tokens")));
    RETURN_IF_ERROR(write_weights(fs, join_path(path, "weights")));
    return write_checkpoint(fs, join_path(path, "checkpoints"));
  }
  if (command == "hash") return hash_array(fs, path);
  if (command == "hash_1d" && argc == 5)
    return hash_range(fs, path, std::atoll(argv[3]), std::atoll(argv[4]));
  if (command == "hash_st") return hash_weights(fs, path);
  return invalid_argument("usage: array_helper write|hash|hash_1d|hash_st PATH [START N]");
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message());
  return status.ok() ? 0 : 1;
}
