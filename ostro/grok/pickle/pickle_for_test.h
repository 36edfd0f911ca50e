// pickle_of, BytesFile: pickles of the release as texts, and files in memory, for tests and the fuzzer.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "ostro/grok/pickle/writer.h"

namespace ostro::grok {

// A file in memory that counts what is read of it.
class BytesFile final : public io::RandomAccessFile {
 public:
  explicit BytesFile(std::string bytes) : bytes_(std::move(bytes)) {}

  Status read(int64_t offset, std::span<std::byte> out) const override {
    if (offset < 0 || offset + static_cast<int64_t>(out.size()) > size())
      return corrupt(fmt::format("{}: read beyond the end", path_));
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    bytes_read_ += static_cast<int64_t>(out.size());
    return {};
  }
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  const std::string& path() const override { return path_; }
  int64_t bytes_read() const { return bytes_read_; }

 private:
  std::string path_ = "dir/tensor00000_000", bytes_;
  mutable int64_t bytes_read_ = 0;
};

inline StoredTensor array_of(Dtype dtype, io::Extents shape) {
  return {{.dtype = dtype, .shape = std::move(shape)}, std::nullopt};
}

inline StoredTensor quantized_of(io::Extents shape, io::Extents scales) {
  return {{.dtype = Dtype::kInt8, .shape = std::move(shape)},
          StoredArray{.dtype = Dtype::kBf16, .shape = std::move(scales)}};
}

// The whole file of a tensor whose elements are all the byte `fill`; sets where they are.
inline std::string pickle_of(StoredTensor& tensor, char fill = 0) {
  const PickleTexts texts = write_pickle(tensor);
  std::string bytes =
      texts.texts[0] + std::string(static_cast<size_t>(tensor.weight.bytes), fill) + texts.texts[1];
  if (tensor.scales) bytes += std::string(static_cast<size_t>(tensor.scales->bytes), fill) + texts.texts[2];
  return bytes;
}

}  // namespace ostro::grok
