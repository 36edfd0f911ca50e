#include "ostro/grok/release/writer.h"

#include <fmt/core.h>

#include "ostro/grok/pickle/writer.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::grok {
namespace {

Status write_elements(io::WritableFile& file, const Leaf& leaf, const StoredArray& array,
                      const Elements& elements) {
  int64_t left = array.bytes;
  RETURN_IF_ERROR(elements(array, [&](std::span<const std::byte> bytes) -> Status {
    left -= static_cast<int64_t>(bytes.size());
    if (left < 0) return invalid_argument(fmt::format("{}: more elements than its shape has", leaf.name));
    return file.append(bytes);
  }));
  if (left > 0)
    return invalid_argument(
        fmt::format("{}: {} bytes of elements are missing, of {}", leaf.name, left, array.bytes));
  return {};
}

// Writes the parts of a file into `path`; extends it where a part is a hole.
Status write_hollow(io::FileSystem& fs, const std::string& path, const PickleTexts& texts,
                    const StoredTensor& tensor) {
  const int64_t ends[] = {tensor.weight.begin + tensor.weight.bytes,
                          tensor.scales ? tensor.scales->begin + tensor.scales->bytes : 0};
  for (size_t i = 0; i < texts.texts.size(); ++i) {
    ASSIGN_OR_RETURN(const auto file, i == 0 ? fs.create(path) : fs.open_append(path));
    RETURN_IF_ERROR(file->append(texts.texts[i]));
    const bool last = i + 1 == texts.texts.size();
    RETURN_IF_ERROR(file->close());
    if (!last) RETURN_IF_ERROR(fs.truncate(path, ends[i]));
  }
  return {};
}

}  // namespace

Status begin_release(io::FileSystem& fs, const std::string& directory, const GrokShape& shape) {
  RETURN_IF_ERROR(fs.make_dirs(directory));
  if (shape == GrokShape()) return {};
  return io::write_file_atomically(fs, io::join_path(directory, "config.json"), shape_to_json(shape));
}

Status write_tensor(io::FileSystem& fs, const std::string& directory, const Leaf& leaf,
                    const Elements& elements) {
  StoredTensor tensor = leaf.tensor;
  const PickleTexts texts = write_pickle(tensor);
  return io::write_file_atomically(fs, io::join_path(directory, leaf.file),
                                   [&](io::WritableFile& file) -> Status {
                                     RETURN_IF_ERROR(file.append(texts.texts[0]));
                                     RETURN_IF_ERROR(write_elements(file, leaf, tensor.weight, elements));
                                     RETURN_IF_ERROR(file.append(texts.texts[1]));
                                     if (!tensor.scales) return {};
                                     RETURN_IF_ERROR(write_elements(file, leaf, *tensor.scales, elements));
                                     return file.append(texts.texts[2]);
                                   });
}

Status write_hollow_tensor(io::FileSystem& fs, const std::string& directory, const Leaf& leaf) {
  StoredTensor tensor = leaf.tensor;
  const PickleTexts texts = write_pickle(tensor);
  const std::string path = io::join_path(directory, leaf.file), temporary = io::temporary_path(path);
  const Status written = write_hollow(fs, temporary, texts, tensor);
  if (!written.ok()) {
    static_cast<void>(fs.remove(temporary));
    return written;
  }
  return fs.rename(temporary, path);
}

}  // namespace ostro::grok
