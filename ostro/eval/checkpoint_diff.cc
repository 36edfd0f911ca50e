#include "ostro/eval/checkpoint_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ostro/chain/canonical.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/config/config.h"
#include "ostro/hf/elements.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"

namespace ostro::eval {
namespace {

using checkpoint::Checkpoint;
using checkpoint::TensorSpec;

Result<Checkpoint> open_checkpoint(io::FileSystem& fs, const std::string& where) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, checkpoint::find_checkpoints(fs, where));
  return Checkpoint::open(fs, paths[0]);
}

template <typename T>
void widen(const std::vector<std::byte>& bytes, std::vector<double>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, numerics::Bf16>)
      out[i] = static_cast<double>(numerics::to_f32(value));
    else
      out[i] = static_cast<double>(value);
  }
}

// The elements of a tensor, and their values as f64: exact but for 64-bit integers above 2^53.
struct Elements {
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

Result<Elements> elements_of(const Checkpoint& from, int64_t tensor) {
  const TensorSpec& spec = from.manifest().tensors[static_cast<size_t>(tensor)];
  Elements elements;
  std::vector<std::byte>& bytes = elements.bytes;
  std::vector<double>& out = elements.values;
  bytes.resize(static_cast<size_t>(spec.bytes()));
  RETURN_IF_ERROR(from.read(tensor, bytes));
  out.resize(bytes.size() / static_cast<size_t>(checkpoint::dtype_size(spec.dtype)));
  if (spec.dtype == "f32")
    widen<float>(bytes, out);
  else if (spec.dtype == "f64")
    widen<double>(bytes, out);
  else if (spec.dtype == "i8")
    widen<int8_t>(bytes, out);
  else if (spec.dtype == "i32")
    widen<int32_t>(bytes, out);
  else if (spec.dtype == "i64")
    widen<int64_t>(bytes, out);
  else if (spec.dtype == "u32")
    widen<uint32_t>(bytes, out);
  else if (spec.dtype == "bool")
    widen<uint8_t>(bytes, out);
  else if (spec.dtype == "bf16")
    widen<numerics::Bf16>(bytes, out);
  else
    return unsupported(
        fmt::format("{}: {} is {}, which is not compared", from.path(), spec.path, spec.type_str()));
  return elements;
}

// How many elements of the same type have other bytes: -0 is another value than 0.
int64_t different_elements(const Elements& a, const Elements& b) {
  const size_t item = a.bytes.size() / std::max<size_t>(a.values.size(), 1);
  int64_t out = 0;
  for (size_t i = 0; i < a.values.size(); ++i)
    out += std::memcmp(a.bytes.data() + i * item, b.bytes.data() + i * item, item) != 0;
  return out;
}

// Whether `narrow` has the values of `wide` in this type of safetensors.
bool is_cast(std::string_view dtype, const std::vector<double>& wide, const std::vector<double>& narrow) {
  for (size_t i = 0; i < wide.size(); ++i) {
    const auto value = static_cast<float>(wide[i]);
    std::array<std::byte, 2> memory;
    float rounded = 0;
    hf::elements_from_f32(dtype, {&value, 1}, memory);
    hf::elements_to_f32(dtype, memory, {&rounded, 1});
    if (std::bit_cast<uint64_t>(static_cast<double>(rounded)) != std::bit_cast<uint64_t>(narrow[i]))
      return false;
  }
  return true;
}

// Says of a tensor that changed whether one side is the other in a narrower type.
void find_cast(const std::vector<double>& a, const std::vector<double>& b, TensorDiff& out) {
  for (const auto& [dtype, name] : {std::pair{"BF16", "bf16"}, std::pair{"F16", "f16"}})
    for (const bool first : {false, true})
      if (first ? is_cast(dtype, b, a) : is_cast(dtype, a, b)) {
        out.kind = TensorDiff::Kind::kCast, out.cast = name, out.first_is_cast = first;
        return;
      }
}

bool is_float(const TensorSpec& spec) { return spec.dtype == "f32" || spec.dtype == "bf16"; }

// Sums over elements, of one tensor or of all.
struct Sums {
  double squares = 0, first_squares = 0, max_abs = 0;
  int64_t elements = 0, changed = 0;

  void add(const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      const double d = b[i] - a[i];
      first_squares += a[i] * a[i];
      squares += d * d;
      // Not a number on one side only is the largest difference there is.
      if (std::isnan(d)) {
        if (std::bit_cast<uint64_t>(a[i]) != std::bit_cast<uint64_t>(b[i])) max_abs = d, ++changed;
        continue;
      }
      if (!(std::abs(d) <= max_abs) && !std::isnan(max_abs)) max_abs = std::abs(d);
      if (a[i] != b[i]) ++changed;
    }
    elements += static_cast<int64_t>(a.size());
  }
  void add(const Sums& other) {
    squares += other.squares, first_squares += other.first_squares;
    if (!(other.max_abs <= max_abs) && !std::isnan(max_abs)) max_abs = other.max_abs;
    elements += other.elements, changed += other.changed;
  }
  void put(TensorDiff& out) const {
    out.elements = elements, out.changed = changed, out.max_abs = max_abs;
    if (elements > 0) out.rms = numerics::sqrt_f64(squares / static_cast<double>(elements));
    if (first_squares > 0) out.relative = numerics::sqrt_f64(squares / first_squares);
    if (changed > 0) out.kind = TensorDiff::Kind::kChanged;
  }
};

class Comparison {
 public:
  Comparison(const Checkpoint& first, const Checkpoint& second) : first_(first), second_(second) {}

  // Compares tensor `a` of the first checkpoint with the one of its path in the second. Equal hashes of all
  // cells mean equal bytes, so the second is then not read.
  Result<TensorDiff> tensor(int64_t a) {
    const TensorSpec& spec = first_.manifest().tensors[static_cast<size_t>(a)];
    TensorDiff out;
    out.path = spec.path, out.first = spec.type_str();
    const int64_t b = second_.find(spec.path);
    if (b < 0) {
      out.kind = TensorDiff::Kind::kOnlyFirst;
      return out;
    }
    const TensorSpec& other = second_.manifest().tensors[static_cast<size_t>(b)];
    out.second = other.type_str();
    if (spec.shape != other.shape) {
      out.kind = TensorDiff::Kind::kOtherShape;
      return out;
    }
    ASSIGN_OR_RETURN(const Elements x, elements_of(first_, a));
    Elements y;
    Sums sums;
    const bool same =
        spec.dtype == other.dtype && spec.cell == other.cell &&
        first_.manifest().cells[static_cast<size_t>(a)] == second_.manifest().cells[static_cast<size_t>(b)];
    if (same) {
      sums.add(x.values, x.values);
    } else {
      ASSIGN_OR_RETURN(y, elements_of(second_, b));
      sums.add(x.values, y.values);
      if (spec.dtype == other.dtype) sums.changed = different_elements(x, y);
    }
    sums.put(out);
    if (sums.changed > 0 && is_float(spec) && is_float(other)) find_cast(x.values, y.values, out);
    all_.add(sums);
    return out;
  }
  const Sums& all() const { return all_; }

 private:
  const Checkpoint& first_;
  const Checkpoint& second_;
  Sums all_;
};

std::vector<std::string> config_differences(const Checkpoint& first, const Checkpoint& second,
                                            const models::ModelChoices& models) {
  std::vector<std::string> texts;
  for (const Checkpoint* c : {&first, &second}) {
    const auto config = train::parse_train_config(c->manifest().info.config, c->path() + ": config", models);
    if (!config.ok()) return {"the configurations cannot be compared: " + config.error().message()};
    texts.push_back(config::canonical_config(*config));
  }
  const auto found = chain::find_differences(texts[0], texts[1]);
  std::vector<std::string> out;
  for (const auto& d : found.value_or(std::vector<chain::ObjectDifference>()))
    out.push_back(
        fmt::format("{}: {} -> {}", d.path(), chain::readable_value(d.there), chain::readable_value(d.here)));
  return out;
}

CheckpointSide side_of(const Checkpoint& c) { return {c.path(), c.manifest().name, c.manifest().info.step}; }

bool is_wanted(const std::string& path, const DiffOptions& options) {
  return options.optimizer || path.starts_with("model/");
}

}  // namespace

bool CheckpointDiff::tensors_equal() const {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const TensorDiff& t) { return t.kind == TensorDiff::Kind::kEqual; });
}

const TensorDiff* CheckpointDiff::cast() const {
  const TensorDiff* out = nullptr;
  for (const TensorDiff& t : tensors) {
    if (t.kind == TensorDiff::Kind::kEqual) continue;
    if (t.kind != TensorDiff::Kind::kCast) return nullptr;
    if (out != nullptr && (t.cast != out->cast || t.first_is_cast != out->first_is_cast)) return nullptr;
    out = &t;
  }
  return out;
}

bool CheckpointDiff::equal() const { return config.empty() && tensors_equal(); }

Result<CheckpointDiff> diff_checkpoints(io::FileSystem& fs, const std::string& first,
                                        const std::string& second, const models::ModelChoices& models,
                                        const DiffOptions& options) {
  const numerics::HostArithmetic guard;
  ASSIGN_OR_RETURN(const Checkpoint a, open_checkpoint(fs, first));
  ASSIGN_OR_RETURN(const Checkpoint b, open_checkpoint(fs, second));
  CheckpointDiff out;
  out.first = side_of(a), out.second = side_of(b);
  Comparison comparison(a, b);
  for (const int64_t i : a.matching(options.only)) {
    if (!is_wanted(a.manifest().tensors[static_cast<size_t>(i)].path, options)) continue;
    ASSIGN_OR_RETURN(TensorDiff tensor, comparison.tensor(i));
    out.tensors.push_back(std::move(tensor));
  }
  for (const int64_t i : b.matching(options.only)) {
    const TensorSpec& spec = b.manifest().tensors[static_cast<size_t>(i)];
    if (!is_wanted(spec.path, options) || a.find(spec.path) >= 0) continue;
    TensorDiff tensor;
    tensor.path = spec.path, tensor.second = spec.type_str(), tensor.kind = TensorDiff::Kind::kOnlySecond;
    out.tensors.push_back(std::move(tensor));
  }
  if (out.tensors.empty())
    return not_found(fmt::format("\"{}\" matches no {} of {} or {}", options.only,
                                 options.optimizer ? "tensor" : "parameter", a.path(), b.path()));
  comparison.all().put(out.all);
  out.config = config_differences(a, b, models);
  return out;
}

}  // namespace ostro::eval
