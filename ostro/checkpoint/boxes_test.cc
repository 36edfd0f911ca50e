#include "ostro/checkpoint/boxes.h"

#include <doctest/doctest.h>

#include <random>

#include "ostro/checkpoint/save.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/numerics/bf16.h"

namespace ostro::checkpoint {
namespace {

const Extents kShape = {3, 4, 5, 6};

// Whole numbers, which are the same in bf16 up to 256.
std::vector<float> numbers() {
  std::vector<float> out(static_cast<size_t>(io::product(kShape)));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i % 251);
  return out;
}

runtime::Buffer buffer(ir::DType dtype) {
  runtime::Buffer out = runtime::Buffer::empty({dtype, {{"a", 3}, {"b", 4}, {"c", 5}, {"d", 6}}});
  const std::vector<float> values = numbers();
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == ir::DType::bf16)
      out.mutable_as<numerics::Bf16>()[i] = numerics::to_bf16(values[i]);
    else
      out.mutable_as<float>()[i] = values[i];
  }
  return out;
}

void check_ranges(const ReadBox& read, size_t parameter) {
  const std::vector<float> all = numbers();
  std::mt19937_64 rng(3);
  for (int i = 0; i < 200; ++i) {
    const size_t first = rng() % all.size(), count = 1 + rng() % (all.size() - first);
    std::vector<float> out(count);
    check_ok(read_range(read, parameter, kShape, static_cast<int64_t>(first), out));
    REQUIRE(std::equal(out.begin(), out.end(), all.begin() + static_cast<int64_t>(first)));
  }
}

TEST_CASE("ranges of elements, in memory and in a checkpoint, f32 and bf16") {
  const std::vector<runtime::Buffer> values = {buffer(ir::DType::f32), buffer(ir::DType::bf16)};
  io::MemoryFileSystem fs;
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < values.size(); ++k)
    tensors.push_back(
        {{k == 0 ? "x" : "y", k == 0 ? "f32" : "bf16", {"a", "b", "c", "d"}, kShape, {1, 4, 2, 6}},
         values[k].bytes(),
         nullptr});
  const auto saved = save(fs, "root", {}, tensors, {.threads = 1, .max_chunk_bytes = 100});
  REQUIRE(saved.ok());
  const auto found = Checkpoint::open(fs, saved->path);
  REQUIRE(found.ok());
  const auto reader = std::make_shared<const PartReader>(PartReader::open(fs, *found, {"x", "y"}).value());
  for (const ReadBox& read : {boxes_in_memory(values), boxes_of(reader)})
    for (size_t k = 0; k < values.size(); ++k) check_ranges(read, k);
}

TEST_CASE("a range is read in few boxes") {
  int64_t boxes = 0;
  const ReadBox count = [&](size_t, const Extents&, const Extents&, std::span<float>) {
    ++boxes;
    return Status();
  };
  std::vector<float> out(120);
  check_ok(read_range(count, 0, kShape, 120, out));  // one index of the first axis
  CHECK(boxes == 1);
  check_ok(read_range(count, 0, kShape, 121, std::span(out).first(118)));
  CHECK(boxes <= 1 + 7);  // from inside a row: at most two boxes for each axis
}

}  // namespace
}  // namespace ostro::checkpoint
