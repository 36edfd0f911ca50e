#include "ostro/io/arrays/zarr_parts.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <random>

#include "ostro/io/files/counting_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

Status read_part(FileSystem& fs, const ZarrArray& array, const Extents& start, const Extents& shape,
                 std::span<std::byte> out) {
  const PartRead part{&array, start, shape, out};
  return read_parts(fs, {&part, 1}, 2);
}

struct Numbers {
  explicit Numbers(const Extents& chunk, const Compressor& compressor = {}) {
    ZarrSpec spec;
    spec.dtype = "int16";
    spec.shape = {5, 7, 6};
    spec.chunk = chunk;
    spec.separator = '.';
    spec.compressor = compressor;
    array = std::make_unique<ZarrArray>(ZarrArray::create(memory, "a", spec).value());
    std::vector<int16_t> values(5 * 7 * 6);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int16_t>(i);
    check_ok(array->write_box({0, 0, 0}, spec.shape, std::as_bytes(std::span(values))));
  }
  MemoryFileSystem memory;
  std::unique_ptr<ZarrArray> array;
};

TEST_CASE("a part is what read_box gives, and only its bytes are read") {
  std::mt19937_64 rng(5);
  for (const Extents& chunk : {Extents{5, 7, 6}, Extents{1, 7, 6}, Extents{2, 3, 6}, Extents{2, 2, 4}}) {
    Numbers numbers(chunk);
    CountingFileSystem fs(numbers.memory);
    for (int i = 0; i < 50; ++i) {
      Extents start(3), shape(3);
      for (size_t d = 0; d < 3; ++d) {
        start[d] = static_cast<int64_t>(rng() % static_cast<uint64_t>(numbers.array->spec().shape[d]));
        shape[d] = 1 + static_cast<int64_t>(rng() %
                                            static_cast<uint64_t>(numbers.array->spec().shape[d] - start[d]));
      }
      Bytes part(static_cast<size_t>(product(shape)) * 2), box(part.size());
      fs.reset();
      check_ok(read_part(fs, *numbers.array, start, shape, part));
      check_ok(numbers.array->read_box(start, shape, box));
      CHECK(part == box);
      CHECK(fs.counts().bytes_read == static_cast<int64_t>(part.size()));
    }
  }
}

TEST_CASE("files that are missing or cut are errors that name them; compressed chunks are read whole") {
  Numbers numbers({2, 3, 6});
  REQUIRE(check_files(numbers.memory, *numbers.array).ok());
  Bytes part(12);
  numbers.memory.content("a/c.1.2.0")->pop_back();
  for (const Error& cut : {check_files(numbers.memory, *numbers.array).error(),
                           read_part(numbers.memory, *numbers.array, {2, 6, 0}, {1, 1, 6}, part).error()})
    CHECK(cut.message() == "a/c.1.2.0: 71 bytes, a chunk of this array has 72");
  check_ok(numbers.memory.remove("a/c.1.2.0"));
  const Status missing = read_part(numbers.memory, *numbers.array, {2, 6, 0}, {1, 1, 6}, part);
  CHECK(missing.error().code() == ErrorCode::kNotFound);
  CHECK(missing.error().message().find("a/c.1.2.0 is missing") != std::string::npos);

  Numbers packed({2, 3, 6}, Compressor{.kind = Compression::kZstd});
  REQUIRE(check_files(packed.memory, *packed.array).ok());
  Bytes box(12);
  check_ok(read_part(packed.memory, *packed.array, {3, 5, 0}, {1, 1, 6}, part));
  check_ok(packed.array->read_box({3, 5, 0}, {1, 1, 6}, box));
  CHECK(part == box);
}

TEST_CASE("a file that is changed after it was checked is an error of the parts that touch it") {
  for (const Compressor& compressor : {Compressor{}, Compressor{.kind = Compression::kZstd}}) {
    Numbers numbers({2, 3, 6}, compressor);
    const CheckedFiles checked = check_files(numbers.memory, *numbers.array).value();
    CHECK(checked.size() == 9);
    Bytes bytes(12);
    const PartRead touched{numbers.array.get(), {3, 5, 0}, {1, 1, 6}, bytes},
        beside{numbers.array.get(), {0, 0, 0}, {1, 1, 6}, bytes};
    check_ok(read_parts(numbers.memory, {&touched, 1}, 1, &checked));
    const std::string content = numbers.memory.read_file("a/c.1.1.0").value();
    check_ok(numbers.memory.write_file("a/c.1.1.0", content));  // the same bytes, at another time
    const Status changed = read_parts(numbers.memory, {&touched, 1}, 1, &checked);
    REQUIRE_FALSE(changed.ok());
    CHECK(changed.error().code() == ErrorCode::kCorrupt);
    CHECK(changed.error().message().find("a/c.1.1.0: ") == 0);
    CHECK(changed.error().message().find("put that file back or start again") != std::string::npos);
    check_ok(read_parts(numbers.memory, {&beside, 1}, 1, &checked));
    check_ok(read_parts(numbers.memory, {&touched, 1}, 1));  // without a check before
  }
}

// Blocks and stretches have limits; only arrays of megabytes meet them.
TEST_CASE("several large parts at once, on a disk") {
  std::string folder = join_path(std::filesystem::temp_directory_path().string(), "ostro_parts_XXXXXX");
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  FileSystem& fs = local_file_system();
  ZarrSpec spec;
  spec.dtype = "float32";
  spec.shape = {3, 1500, 1100};
  std::vector<float> values(static_cast<size_t>(product(spec.shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (const Extents& chunk : {Extents{3, 1500, 1100}, Extents{1, 1500, 550}, Extents{2, 700, 1100}}) {
    spec.chunk = chunk;
    spec.separator = '.';
    const ZarrArray array = ZarrArray::create(fs, folder, spec).value();
    check_ok(array.write_box({0, 0, 0}, spec.shape, std::as_bytes(std::span(values))));
    std::vector<float> all(values.size()), strip(3 * 1500 * 100), rows(2 * 20 * 1100), wanted(rows.size());
    const std::vector<PartRead> parts = {
        {&array, {0, 0, 0}, spec.shape, std::as_writable_bytes(std::span(all))},
        {&array, {0, 0, 500}, {3, 1500, 100}, std::as_writable_bytes(std::span(strip))},
        {&array, {1, 690, 0}, {2, 20, 1100}, std::as_writable_bytes(std::span(rows))}};
    check_ok(read_parts(fs, parts, 3));
    CHECK(all == values);
    for (size_t i = 0; i < strip.size(); ++i)
      REQUIRE(strip[i] == static_cast<float>(i / 100 * 1100 + 500 + i % 100));
    check_ok(array.read_box({1, 690, 0}, {2, 20, 1100}, std::as_writable_bytes(std::span(wanted))));
    CHECK(rows == wanted);
    check_ok(fs.remove_all(folder));
  }
}

}  // namespace
}  // namespace ostro::io
