#include "ostro/io/arrays/safetensors.h"

#include <algorithm>
#include <array>
#include <set>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::io {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Json = nlohmann::json;

constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr int64_t kMaxIndexBytes = 100'000'000;
constexpr int64_t kMaxTensorElements = int64_t{1} << 58;

constexpr std::pair<std::string_view, int64_t> kDtypeBytes[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
    {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};

OrderedJson metadata_json(const SafetensorsMetadata& metadata) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [key, value] : metadata) json[key] = value;
  return json;
}

Error wrong_size(const std::string& path, const SafetensorsEntry& entry, int64_t bytes) {
  return invalid_argument(fmt::format("{}: tensor {}: {} bytes given, its shape and dtype need {}", path,
                                      entry.name, bytes, entry.size()));
}

Status check_entries(std::span<const SafetensorsEntry> entries, const std::string& path) {
  std::set<std::string_view> names;
  for (const SafetensorsEntry& entry : entries) {
    if (safetensors_item_size(entry.dtype) == 0) {
      return invalid_argument(
          fmt::format("{}: tensor {}: no dtype \"{}\" in safetensors", path, entry.name, entry.dtype));
    }
    if (!entry.write && static_cast<int64_t>(entry.bytes.size()) != entry.size())
      return wrong_size(path, entry, static_cast<int64_t>(entry.bytes.size()));
    if (entry.name == "__metadata__" || !names.insert(entry.name).second) {
      return invalid_argument(fmt::format("{}: tensor name \"{}\" is taken", path, entry.name));
    }
  }
  return {};
}

std::string header_of(std::span<const SafetensorsEntry> entries, const SafetensorsMetadata& metadata) {
  OrderedJson header = OrderedJson::object();
  header["__metadata__"] = metadata_json(metadata);
  int64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    const int64_t end = at + entry.size();
    OrderedJson& json = header[entry.name];
    json["dtype"] = entry.dtype;
    json["shape"] = entry.shape;
    json["data_offsets"] = {at, end};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string size(8, '\0');
  for (size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(text.size() >> (8 * i));
  return size + text;
}

Result<SafetensorsInfo> parse_info(const std::string& name, const Json& value, int64_t data_begin,
                                   int64_t file_size, const std::string& path) {
  const JsonFields fields(value, fmt::format("{}: tensor {}", path, name));
  SafetensorsInfo info{.name = name};
  ASSIGN_OR_RETURN(info.dtype, fields.string("dtype"));
  const int64_t item = safetensors_item_size(info.dtype);
  if (item == 0) return unsupported(fmt::format("{}: dtype \"{}\"", fields.where(), info.dtype));
  ASSIGN_OR_RETURN(info.shape, fields.integers("shape", 0, kMaxTensorElements));
  ASSIGN_OR_RETURN(const auto offsets, fields.integers("data_offsets", 0, INT64_MAX - data_begin));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) return fields.bad("data_offsets", "is not a range");
  info.begin = data_begin + offsets[0];
  info.end = data_begin + offsets[1];
  if (info.end > file_size)
    return corrupt(fmt::format("{} ends at byte {}, but the file has {}: it is cut short; download it again",
                               fields.where(), info.end, file_size));
  int64_t elements = 1;
  for (const int64_t extent : info.shape) {
    if (extent > 0 && elements > kMaxTensorElements / extent) return fields.bad("shape", "is too large");
    elements *= extent;
  }
  if (elements * item != info.bytes()) {
    return fields.bad("data_offsets", fmt::format("holds {} bytes, but dtype and shape need {}", info.bytes(),
                                                  elements * item));
  }
  return info;
}

std::string shard_name(const std::string& stem, size_t index, size_t count) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", stem, index + 1, count);
}

// The number of entries in each file: as many as fit, but at least one.
std::vector<size_t> split_by_size(std::span<const SafetensorsEntry> entries, int64_t max_bytes) {
  std::vector<size_t> counts;
  int64_t used = 0;
  for (const SafetensorsEntry& entry : entries) {
    const int64_t size = entry.size();
    if (counts.empty() || (used > 0 && used + size > max_bytes)) {
      counts.push_back(0);
      used = 0;
    }
    ++counts.back();
    used += size;
  }
  if (counts.empty()) counts.push_back(0);
  return counts;
}

Status append_entry(WritableFile& file, const SafetensorsEntry& entry, const std::string& path) {
  if (!entry.write) return file.append(entry.bytes);
  int64_t appended = 0;
  RETURN_IF_ERROR(entry.write([&](std::span<const std::byte> bytes) {
    appended += static_cast<int64_t>(bytes.size());
    return file.append(bytes);
  }));
  return appended == entry.size() ? Status() : Status(wrong_size(path, entry, appended));
}

// Removes the files of `stem` from the directory, except for those named.
Status remove_others(FileSystem& fs, const std::string& directory, const std::string& stem,
                     const std::set<std::string>& keep) {
  ASSIGN_OR_RETURN(const auto entries, fs.list(directory));
  bool removed = false;
  for (const DirEntry& entry : entries) {
    const bool ours = glob_match(stem + "-*-of-*.safetensors", entry.name) ||
                      entry.name == stem + ".safetensors" || entry.name == stem + ".safetensors.index.json";
    if (!ours || entry.is_directory || keep.contains(entry.name)) continue;
    RETURN_IF_ERROR(fs.remove(join_path(directory, entry.name)));
    removed = true;
  }
  return removed ? fs.sync_dir(directory) : Status();
}

}  // namespace

int64_t safetensors_item_size(std::string_view dtype) {
  for (const auto& [name, size] : kDtypeBytes) {
    if (name == dtype) return size;
  }
  return 0;
}

int64_t SafetensorsEntry::size() const { return product(shape) * safetensors_item_size(dtype); }

Status write_safetensors(FileSystem& fs, const std::string& path, std::span<const SafetensorsEntry> entries,
                         const SafetensorsMetadata& metadata) {
  RETURN_IF_ERROR(check_entries(entries, path));
  return write_file_atomically(fs, path, [&](WritableFile& file) -> Status {
    RETURN_IF_ERROR(file.append(header_of(entries, metadata)));
    for (const SafetensorsEntry& entry : entries) RETURN_IF_ERROR(append_entry(file, entry, path));
    return {};
  });
}

// The index is written after all its files, and files of an earlier export that the new one does not have are
// removed last.
Status write_safetensors_sharded(FileSystem& fs, const std::string& directory,
                                 std::span<const SafetensorsEntry> entries, int64_t max_file_bytes,
                                 const SafetensorsMetadata& metadata, const std::string& stem) {
  RETURN_IF_ERROR(check_entries(entries, directory));
  RETURN_IF_ERROR(fs.make_dirs(directory));
  const std::vector<size_t> counts = split_by_size(entries, max_file_bytes);
  if (counts.size() == 1) {
    RETURN_IF_ERROR(write_safetensors(fs, join_path(directory, stem + ".safetensors"), entries, metadata));
    return remove_others(fs, directory, stem, {stem + ".safetensors"});
  }
  OrderedJson index;
  int64_t total = 0;
  for (const SafetensorsEntry& entry : entries) total += entry.size();
  index["metadata"]["total_size"] = total;
  OrderedJson& weight_map = index["weight_map"] = OrderedJson::object();
  std::set<std::string> keep = {stem + ".safetensors.index.json"};
  size_t first = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::string name = shard_name(stem, i, counts.size());
    const auto part = entries.subspan(first, counts[i]);
    RETURN_IF_ERROR(write_safetensors(fs, join_path(directory, name), part, metadata));
    for (const SafetensorsEntry& entry : part) weight_map[entry.name] = name;
    keep.insert(name);
    first += counts[i];
  }
  const std::string path = join_path(directory, stem + ".safetensors.index.json");
  RETURN_IF_ERROR(write_file_atomically(fs, path, index.dump(2) + "\n"));
  return remove_others(fs, directory, stem, keep);
}

Status SafetensorsReader::add_file(FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(auto file, fs.open(path));
  std::array<std::byte, 8> prefix;
  if (file->size() < 8)
    return corrupt(fmt::format("{}: {} bytes, too short for safetensors", path, file->size()));
  RETURN_IF_ERROR(file->read(0, prefix));
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < 8; ++i) header_bytes |= static_cast<uint64_t>(prefix[i]) << (8 * i);
  if (header_bytes > static_cast<uint64_t>(std::min(kMaxHeaderBytes, file->size() - 8))) {
    return corrupt(fmt::format("{}: a header of {} bytes does not fit the file", path, header_bytes));
  }
  std::string text(header_bytes, '\0');
  RETURN_IF_ERROR(file->read(8, std::as_writable_bytes(std::span(text))));
  ASSIGN_OR_RETURN(const Json header, parse_json(text, path + ": header"));
  if (!header.is_object()) return corrupt(fmt::format("{}: header: not a JSON object", path));

  std::vector<SafetensorsInfo> infos;
  const int64_t data_begin = 8 + static_cast<int64_t>(header_bytes);
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      ASSIGN_OR_RETURN(SafetensorsInfo info, parse_info(name, value, data_begin, file->size(), path));
      infos.push_back(std::move(info));
      continue;
    }
    if (!value.is_object()) return corrupt(fmt::format("{}: \"__metadata__\" is not an object", path));
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string())
        return corrupt(fmt::format("{}: \"__metadata__\" holds more than strings", path));
      metadata_[key] = text_value.get<std::string>();
    }
  }
  std::sort(infos.begin(), infos.end(), [](const SafetensorsInfo& a, const SafetensorsInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  int64_t at = data_begin;
  for (SafetensorsInfo& info : infos) {
    if (info.begin != at) {
      return corrupt(
          fmt::format("{}: tensor {}: \"data_offsets\" leaves a hole or overlaps", path, info.name));
    }
    at = info.end;
    if (!by_name_.try_emplace(info.name, tensors_.size()).second) {
      return corrupt(fmt::format("{}: tensor {} is also in another file", path, info.name));
    }
    tensors_.push_back(std::move(info));
    file_of_.push_back(files_.size());
  }
  if (at != file->size())
    return corrupt(fmt::format("{}: {} bytes after the last tensor", path, file->size() - at));
  files_.push_back(std::move(file));
  return {};
}

Result<SafetensorsReader> SafetensorsReader::open(FileSystem& fs, const std::string& path) {
  SafetensorsReader reader;
  RETURN_IF_ERROR(reader.add_file(fs, path));
  return reader;
}

Result<SafetensorsReader> SafetensorsReader::open_directory(FileSystem& fs, const std::string& directory,
                                                            const std::string& stem) {
  const std::string index_path = join_path(directory, stem + ".safetensors.index.json");
  ASSIGN_OR_RETURN(const bool has_index, fs.exists(index_path));
  const std::string single = join_path(directory, stem + ".safetensors");
  if (!has_index) return open(fs, single);
  ASSIGN_OR_RETURN(const bool has_both, fs.exists(single));
  if (has_both)
    return corrupt(
        fmt::format("{} and {}: programs read the one or the other; remove the file that is not the model",
                    single, index_path));

  ASSIGN_OR_RETURN(const std::string text, fs.read_file(index_path, kMaxIndexBytes));
  ASSIGN_OR_RETURN(const Json index, parse_json(text, index_path));
  ASSIGN_OR_RETURN(const JsonFields weight_map, JsonFields(index, index_path).object("weight_map"));
  std::map<std::string, std::string> where;
  std::set<std::string> names;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
      return weight_map.bad(tensor, "is not the name of a file beside the index");
    }
    where[tensor] = file.get<std::string>();
    names.insert(where[tensor]);
  }
  SafetensorsReader reader;
  for (const std::string& name : names) RETURN_IF_ERROR(reader.add_file(fs, join_path(directory, name)));
  for (const auto& [tensor, file] : where) {
    const auto found = reader.by_name_.find(tensor);
    if (found == reader.by_name_.end() ||
        reader.files_[reader.file_of_[found->second]]->path() != join_path(directory, file)) {
      return weight_map.bad(tensor, fmt::format("says {}, which does not hold it", file));
    }
  }
  return reader;
}

const SafetensorsInfo* SafetensorsReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

Status SafetensorsReader::read(std::string_view name, std::span<std::byte> bytes) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end())
    return not_found(fmt::format("{}: no tensor {}", files_.empty() ? "" : files_[0]->path(), name));
  const SafetensorsInfo& info = tensors_[found->second];
  const RandomAccessFile& file = *files_[file_of_[found->second]];
  if (static_cast<int64_t>(bytes.size()) != info.bytes()) {
    return invalid_argument(
        fmt::format("{}: tensor {} has {} bytes, not {}", file.path(), name, info.bytes(), bytes.size()));
  }
  return file.read(info.begin, bytes);
}

const std::string& SafetensorsReader::file_of(const SafetensorsInfo& info) const {
  return files_[file_of_[by_name_.find(info.name)->second]]->path();
}

Status SafetensorsReader::read_range(const SafetensorsInfo& info, int64_t offset,
                                     std::span<std::byte> bytes) const {
  const RandomAccessFile& file = *files_[file_of_[by_name_.find(info.name)->second]];
  if (offset < 0 || offset + static_cast<int64_t>(bytes.size()) > info.bytes())
    return invalid_argument(fmt::format("{}: tensor {} has {} bytes; {} from {} on were asked for",
                                        file.path(), info.name, info.bytes(), bytes.size(), offset));
  return file.read(info.begin + offset, bytes);
}

}  // namespace ostro::io
