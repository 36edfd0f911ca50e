#include "ostro/eval/checkpoint_diff.h"

#include <doctest/doctest.h>

#include "ostro/checkpoint/save.h"
#include "ostro/hf/elements.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/models/model_choices.h"

namespace ostro::eval {
namespace {

using Kind = TensorDiff::Kind;

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Writes a checkpoint of one tensor into a run directory of this name.
void put(io::FileSystem& fs, const std::string& name, const std::string& dtype,
         std::vector<std::byte> bytes) {
  checkpoint::Tensor tensor;
  tensor.spec.path = "model/w";
  tensor.spec.dtype = dtype;
  tensor.spec.axes = {"x"};
  tensor.spec.shape = {std::ssize(bytes) / checkpoint::dtype_size(dtype)};
  tensor.bytes = bytes;
  check_ok(fs.make_dirs(name + "/checkpoints"));
  checkpoint::Info info;
  info.numerics_version = "1";
  const auto saved = checkpoint::save(fs, name + "/checkpoints", info, std::span(&tensor, 1));
  REQUIRE_MESSAGE(saved.ok(), saved.error().message());
}

CheckpointDiff diff_of(const std::string& first, std::vector<std::byte> a, const std::string& second,
                       std::vector<std::byte> b) {
  io::MemoryFileSystem fs;
  put(fs, "a", first, std::move(a));
  put(fs, "b", second, std::move(b));
  auto diff = diff_checkpoints(fs, "a", "b", models::builtin_models(), {});
  REQUIRE_MESSAGE(diff.ok(), diff.error().message());
  return *diff;
}

std::vector<float> rounded(const std::string& dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * 2);
  hf::elements_from_f32(dtype, values, bytes);
  std::vector<float> out(values.size());
  hf::elements_to_f32(dtype, bytes, out);
  return out;
}

TEST_CASE("diff: a changed element is found in every type that checkpoints have") {
  for (const std::string dtype : {"f32", "f64", "i8", "i32", "i64", "u32", "bool", "bf16"}) {
    CAPTURE(dtype);
    std::vector<std::byte> a(16 * static_cast<size_t>(checkpoint::dtype_size(dtype)), std::byte{1});
    std::vector<std::byte> b = a;
    b[2 * static_cast<size_t>(checkpoint::dtype_size(dtype))] = std::byte{0};
    CHECK(diff_of(dtype, a, dtype, a).tensors_equal());
    const CheckpointDiff diff = diff_of(dtype, a, dtype, b);
    CHECK_FALSE(diff.tensors_equal());
    CHECK(diff.tensors[0].changed == 1);
  }
}

TEST_CASE("diff: a zero of the other sign is another value") {
  const CheckpointDiff diff = diff_of("f32", bytes_of(std::vector<float>{0.0F, 1.3F}), "f32",
                                      bytes_of(std::vector<float>{-0.0F, 1.3F}));
  CHECK(diff.tensors[0].kind == Kind::kChanged);
  CHECK(diff.tensors[0].max_abs == 0);
}

TEST_CASE("diff: values rounded to bf16 or f16 are equal under the cast, in either direction") {
  const std::vector<float> values = {1.00123F, -3.14159F, 0.3333F, 7.77F};
  for (const char* dtype : {"BF16", "F16"}) {
    const std::vector<float> narrow = rounded(dtype, values);
    const CheckpointDiff forward = diff_of("f32", bytes_of(values), "f32", bytes_of(narrow));
    REQUIRE(forward.cast() != nullptr);
    CHECK(forward.cast()->cast == (std::string(dtype) == "BF16" ? "bf16" : "f16"));
    CHECK_FALSE(forward.cast()->first_is_cast);
    CHECK_FALSE(forward.tensors_equal());
    CHECK(diff_table(forward, false).find("equal under the cast: the second has the values of the first") !=
          std::string::npos);
    const CheckpointDiff back = diff_of("f32", bytes_of(narrow), "f32", bytes_of(values));
    REQUIRE(back.cast() != nullptr);
    CHECK(back.cast()->first_is_cast);
    std::vector<float> other = narrow;
    other[1] = values[1];
    CHECK(diff_of("f32", bytes_of(values), "f32", bytes_of(other)).cast() == nullptr);
  }
  // A checkpoint that holds bf16.
  std::vector<std::byte> halves(values.size() * 2);
  hf::elements_from_f32("BF16", values, halves);
  const CheckpointDiff diff = diff_of("f32", bytes_of(values), "bf16", halves);
  REQUIRE(diff.cast() != nullptr);
  CHECK(diff.cast()->cast == "bf16");
  CHECK(diff_of("f32", bytes_of(rounded("BF16", values)), "bf16", halves).tensors_equal());
}

}  // namespace
}  // namespace ostro::eval
