#include "ostro/convert/weight_differences.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ostro/convert/text_differences.h"
#include "ostro/hf/elements.h"
#include "ostro/io/files/path.h"

namespace ostro::convert {
namespace {

constexpr int64_t kMany = 10;  // differences that can have something in common

float as_f32(std::string_view dtype, std::span<const std::byte> element) {
  if (dtype == "I8") return static_cast<float>(static_cast<int8_t>(element[0]));
  float out = 0;
  hf::elements_to_f32(dtype, element, {&out, 1});
  return out;
}

// The value, rounded to the type and back.
float rounded(std::string_view dtype, float value) {
  std::array<std::byte, sizeof(float)> memory;
  const auto bytes = std::span(memory).first(static_cast<size_t>(io::safetensors_item_size(dtype)));
  hf::elements_from_f32(dtype, {&value, 1}, bytes);
  return as_f32(dtype, bytes);
}

bool is_about(float a, float b) { return std::abs(a - b) <= std::abs(b) * 0x1p-7F; }

void add_element(std::span<const std::byte> written, std::span<const std::byte> there, int64_t index,
                 TensorDifference& out) {
  const std::string& dtype = out.tensor.dtype;
  const float w = as_f32(dtype, written), t = as_f32(dtype, there);
  if (out.differing++ == 0) out.first = index, out.written = w, out.there = t;
  if (dtype == "F32") {
    if (t == rounded("BF16", w)) ++out.as_bf16;
    if (t == rounded("F16", w)) ++out.as_f16;
    return;
  }
  if (dtype != "BF16" && dtype != "F16") return;
  uint16_t a = 0, b = 0;
  std::memcpy(&a, written.data(), sizeof(a)), std::memcpy(&b, there.data(), sizeof(b));
  if (a == b + 1) ++out.cut_off;  // the magnitude is in the lower bits
  if (a == b + 1 || b == a + 1) ++out.neighbours;
  if (is_about(as_f32(dtype == "BF16" ? "F16" : "BF16", there), w)) ++out.other_bits;
}

void add_elements(std::span<const std::byte> written, std::span<const std::byte> there, int64_t first,
                  TensorDifference& out) {
  const auto item = static_cast<size_t>(io::safetensors_item_size(out.tensor.dtype));
  for (size_t at = 0; at + item <= std::min(written.size(), there.size()); at += item)
    if (std::memcmp(written.data() + at, there.data() + at, item) != 0)
      add_element(written.subspan(at, item), there.subspan(at, item), first + static_cast<int64_t>(at / item),
                  out);
}

// Whether the file begins with these bytes.
bool begins_with(io::FileSystem& fs, const std::string& path, const std::string& begin) {
  const auto file = fs.open(path);
  if (!file.ok() || (*file)->size() < std::ssize(begin)) return false;
  std::vector<std::byte> bytes(begin.size());
  return (*file)->read(0, bytes).ok() && std::memcmp(bytes.data(), begin.data(), begin.size()) == 0;
}

std::string shape_text(const io::Extents& shape) {
  std::string out = "[";
  for (const int64_t n : shape) out += fmt::format("{}{}", out.size() > 1 ? ", " : "", n);
  return out + "]";
}

// How the header of a file that can be read differs from the one that is written.
std::string header_difference(io::FileSystem& fs, const std::string& path, const std::string& written) {
  constexpr size_t kPrefix = 8;
  const auto file = fs.open(path);
  std::array<std::byte, kPrefix> prefix;
  if (!file.ok() || !(*file)->read(0, prefix).ok()) return "cannot be read";
  size_t size = 0;
  for (size_t i = 0; i < kPrefix; ++i) size |= static_cast<size_t>(prefix[i]) << (8 * i);
  std::string there(size, ' ');  // as large as the reader that took it allows
  if (!(*file)->read(kPrefix, std::as_writable_bytes(std::span(there))).ok()) return "cannot be read";
  return "its header: " + text_difference("header.json", written.substr(kPrefix), there);
}

}  // namespace

std::vector<TensorPlace> places_of_header(std::string_view header) {
  constexpr size_t kPrefix = 8;
  std::vector<TensorPlace> out;
  if (header.size() < kPrefix) return out;
  const auto json = nlohmann::ordered_json::parse(header.substr(kPrefix), nullptr, false);
  if (!json.is_object()) return out;
  const auto data = static_cast<int64_t>(header.size());
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") continue;
    const auto& offsets = value.at("data_offsets");
    out.push_back({name, value.at("dtype").get<std::string>(), value.at("shape").get<io::Extents>(),
                   data + offsets[0].get<int64_t>(), data + offsets[1].get<int64_t>()});
  }
  return out;
}

WeightDifferences::File& WeightDifferences::file_of(const std::string& file, const std::string& begin) {
  const auto [it, is_new] = files_.try_emplace(file);
  File& out = it->second;
  if (!is_new) return out;
  for (TensorPlace& place : places_(file, begin)) {
    out.tensors.emplace_back();
    out.tensors.back().file = file;
    out.tensors.back().tensor = std::move(place);
  }
  const std::string path = io::join_path(directory_, file);
  if (!file.ends_with(".safetensors") || begins_with(fs_, path, begin)) return out;
  auto reader = io::SafetensorsReader::open(fs_, path);
  if (!reader.ok()) {
    out.unreadable = reader.error().message();
    return out;
  }
  out.reader = std::move(*reader);
  out.otherwise = header_difference(fs_, path, begin);
  for (const io::SafetensorsInfo& there : out.reader->tensors())
    if (std::none_of(out.tensors.begin(), out.tensors.end(),
                     [&](const TensorDifference& one) { return one.tensor.name == there.name; })) {
      out.otherwise =
          fmt::format("has a tensor {} {}, which the export has not", there.name, shape_text(there.shape));
      break;
    }
  for (TensorDifference& one : out.tensors) {
    const TensorPlace& written = one.tensor;
    const io::SafetensorsInfo* there = out.reader->find(written.name);
    if (there == nullptr)
      one.other = "is not there";
    else if (there->dtype != written.dtype || there->shape != written.shape)
      one.other = fmt::format("is {} {}, not {} {}", there->dtype, shape_text(there->shape), written.dtype,
                              shape_text(written.shape));
  }
  return out;
}

void WeightDifferences::add(const std::string& file, const std::string& begin, int64_t offset,
                            std::span<const std::byte> written, std::span<const std::byte> there) {
  File& in = file_of(file, begin);
  if (!in.unreadable.empty()) return;
  const int64_t end = offset + std::ssize(written);
  std::vector<std::byte> memory;
  for (TensorDifference& one : in.tensors) {
    const int64_t first = std::max(offset, one.tensor.begin), last = std::min(end, one.tensor.end);
    if (first >= last || !one.other.empty()) continue;
    const auto from = static_cast<size_t>(first - offset), count = static_cast<size_t>(last - first);
    std::span<const std::byte> beside;
    if (!in.reader) {
      beside = there.subspan(std::min(from, there.size()));
      beside = beside.first(std::min(count, beside.size()));
    } else {
      memory.resize(count);
      const auto* info = in.reader->find(one.tensor.name);
      if (const Status read = in.reader->read_range(*info, first - one.tensor.begin, memory); !read.ok()) {
        in.unreadable = read.error().message();
        return;
      }
      beside = memory;
    }
    add_elements(written.subspan(from, count), beside,
                 (first - one.tensor.begin) / io::safetensors_item_size(one.tensor.dtype), one);
  }
}

std::vector<TensorDifference> WeightDifferences::tensors() const {
  std::vector<TensorDifference> out;
  for (const auto& [name, file] : files_)
    for (const TensorDifference& one : file.tensors)
      if (one.differing > 0 || !one.other.empty()) out.push_back(one);
  return out;
}

std::string WeightDifferences::otherwise(const std::string& file) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return "";
  return found->second.unreadable.empty() ? found->second.otherwise : found->second.unreadable;
}

std::string common_cause(const std::vector<TensorDifference>& tensors, int64_t elements) {
  TensorDifference sum;
  for (const TensorDifference& one : tensors) {
    sum.differing += one.differing;
    sum.cut_off += one.cut_off, sum.neighbours += one.neighbours;
    sum.as_bf16 += one.as_bf16, sum.as_f16 += one.as_f16, sum.other_bits += one.other_bits;
  }
  const int64_t n = sum.differing;
  if (n < kMany) return "";
  if (sum.cut_off == n)
    return "every one is the next number towards zero: the weights were rounded by cutting off bits, not to "
           "the nearest number";
  if (sum.as_bf16 == n) return "every one is the record's weight rounded to bf16";
  if (sum.as_f16 == n) return "every one is the record's weight rounded to f16";
  if (sum.neighbours == n) return "every one is a neighbouring number: the weights were rounded otherwise";
  if (10 * sum.other_bits >= 9 * n)
    return "their bits are those of the other type of 16 bits: f16 where bf16 is claimed, or bf16 for f16";
  if (2 * n >= elements)
    return "most weights differ: they are of another model, or of another state of the run";
  return "";
}

std::string twice_rounded(const std::string& dtype, std::span<const float> exact,
                          std::span<const float> there) {
  const char* other = dtype == "BF16" ? "F16" : "BF16";
  for (size_t i = 0; i < exact.size(); ++i)
    if (there[i] != rounded(dtype, rounded(other, exact[i]))) return "";
  return fmt::format("every one is the record's weight rounded to {} first",
                     dtype == "BF16" ? "f16" : "bf16");
}

std::optional<double> added_again(std::span<const float> base, std::span<const float> written,
                                  std::span<const float> there) {
  double along = 0, way = 0, rest = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    const double added = static_cast<double>(written[i]) - base[i],
                 more = static_cast<double>(there[i]) - written[i];
    along += added * more, way += added * added, rest += more * more;
  }
  if (way == 0 || rest == 0) return std::nullopt;
  // The part of the difference that has this direction: nearly all of it, but for roundings.
  if (along * along < 0.9 * way * rest) return std::nullopt;
  return along / way;
}

}  // namespace ostro::convert
