#include "ostro/convert/weight_differences.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <bit>

#include "ostro/convert/text_differences.h"
#include "ostro/hf/elements.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::convert {
namespace {

// The header of a file with one tensor "w" of n elements.
std::string header_of(const std::string& dtype, int64_t n, int64_t item) {
  std::string json =
      fmt::format(R"({{"w":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", dtype, n, n * item);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string size(8, '\0');
  size[0] = static_cast<char>(json.size());
  return size + json;
}

std::vector<float> some_weights() {
  std::vector<float> out;
  for (int i = 0; i < 64; ++i)
    out.push_back(static_cast<float>(i + 1) * (i % 3 == 0 ? -0.01F : 0.0137F) + 0.001F);
  return out;
}

std::string bytes_of(const std::string& dtype, std::span<const float> values) {
  std::string out(values.size() * static_cast<size_t>(io::safetensors_item_size(dtype)), '\0');
  hf::elements_from_f32(dtype, values, std::as_writable_bytes(std::span(out)));
  return out;
}

std::vector<float> cast(const std::string& dtype, std::span<const float> values) {
  const std::string bytes = bytes_of(dtype, values);
  std::vector<float> out(values.size());
  hf::elements_to_f32(dtype, std::as_bytes(std::span(bytes)), out);
  return out;
}

// What is said of a file of this type with `there` in place of `written`; the whole file is one piece.
std::pair<std::vector<TensorDifference>, std::string> differences(const std::string& dtype,
                                                                  const std::string& written,
                                                                  const std::string& there) {
  io::MemoryFileSystem fs;
  const int64_t item = io::safetensors_item_size(dtype);
  const std::string header = header_of(dtype, std::ssize(written) / item, item);
  check_ok(fs.make_dirs("m"));
  check_ok(io::write_file_atomically(fs, "m/a.safetensors", header + there));
  WeightDifferences all(fs, "m",
                        [](const std::string&, const std::string& begin) { return places_of_header(begin); });
  all.add("a.safetensors", header, std::ssize(header), std::as_bytes(std::span(written)),
          std::as_bytes(std::span(there)));
  CHECK(all.otherwise("a.safetensors") == "");
  return {all.tensors(), common_cause(all.tensors(), std::ssize(written) / item)};
}

TEST_CASE("one weight that differs is named by its place and both values") {
  std::string there = bytes_of("F32", some_weights());
  there[5 * 4] ^= 1;
  const auto [tensors, cause] = differences("F32", bytes_of("F32", some_weights()), there);
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].tensor.name == "w");
  CHECK(tensors[0].first == 5);
  CHECK(tensors[0].differing == 1);
  CHECK(static_cast<float>(tensors[0].written) == some_weights()[5]);
  CHECK(static_cast<float>(tensors[0].there) ==
        std::bit_cast<float>(std::bit_cast<uint32_t>(some_weights()[5]) ^ 1));
  CHECK(cause == "");
}

TEST_CASE("the cause of many differences is found: each rounding, and another model") {
  const std::vector<float> weights = some_weights();
  const auto cause = [&](const std::string& dtype, const std::string& there) {
    return differences(dtype, bytes_of(dtype, weights), there).second;
  };
  const auto has = [](const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
  };
  std::string cut;  // the upper halves
  for (const float w : weights) cut.append(reinterpret_cast<const char*>(&w) + 2, 2);
  CHECK(has(cause("BF16", cut), "cutting off bits"));
  CHECK(has(cause("F32", bytes_of("F32", cast("BF16", weights))), "rounded to bf16"));
  CHECK(has(cause("F32", bytes_of("F32", cast("F16", weights))), "rounded to f16"));
  CHECK(has(cause("BF16", bytes_of("F16", weights)), "other type of 16 bits"));
  CHECK(has(cause("F16", bytes_of("BF16", weights)), "other type of 16 bits"));
  std::vector<float> other = weights;
  for (float& w : other) w = 0.3F - w;
  CHECK(has(cause("F32", bytes_of("F32", other)), "another model"));
}

TEST_CASE("weights that were rounded to another type first are told from those that were not") {
  // Behind the middle of two bf16 by so little that f16 does not keep it.
  std::vector<float> exact = some_weights();
  for (int i = 0; i < 8; ++i) exact.push_back(1 + 0x1p-8F + static_cast<float>(i) * 0x1p-6F + 0x1p-13F);
  for (const char* other : {"F16", "BF16"}) {
    const std::string dtype = other == std::string("F16") ? "BF16" : "F16";
    const std::vector<float> twice = cast(dtype, cast(other, exact)), once = cast(dtype, exact);
    CHECK(twice != once);
    CHECK(twice_rounded(dtype, exact, twice).find(dtype == "BF16" ? "to f16 first" : "to bf16 first") !=
          std::string::npos);
    CHECK(twice_rounded(dtype, exact, once) == "");
  }
}

TEST_CASE("how often an adapter was added") {
  const std::vector<float> base = some_weights();
  std::vector<float> merged, twice, other = base;
  for (size_t i = 0; i < base.size(); ++i) {
    const float delta = static_cast<float>(i % 7) * 0.01F - 0.02F;
    merged.push_back(base[i] + delta), twice.push_back(base[i] + 2 * delta);
  }
  CHECK(added_again(base, merged, twice).value() == doctest::Approx(1));
  CHECK(added_again(base, merged, base).value() == doctest::Approx(-1));
  CHECK_FALSE(added_again(base, merged, merged));
  for (size_t i = 0; i < other.size(); ++i) other[i] = merged[i] + (i % 2 == 0 ? 0.1F : -0.1F);
  CHECK_FALSE(added_again(base, merged, other));
}

TEST_CASE("texts: keys of JSON files with both values, lines of others") {
  CHECK(text_difference("config.json", R"({"a":1,"hidden_act":"silu"})", R"({"a":1,"hidden_act":"relu"})") ==
        R"("hidden_act" is "relu", not "silu")");
  CHECK(text_difference("merges.txt", "a b\nc d\n", "a b\nc e\n") ==
        "differs at byte 6, in line 2: 8 bytes, not 8");
}

}  // namespace
}  // namespace ostro::convert
