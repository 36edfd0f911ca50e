#include "ostro/io/arrays/zarr_1d.h"

#include <doctest/doctest.h>

#include <numeric>

#include "ostro/io/arrays/zarr.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"

using namespace ostro;
using namespace ostro::io;

namespace {

// The token store's layout with small chunks: 10 elements, 4 chunks a shard.
ZarrSpec small_spec() {
  ZarrSpec spec = token_store_spec("int32", 1000);
  spec.chunk = {10};
  spec.shard = {40};
  return spec;
}

std::vector<int32_t> numbers(int32_t begin, int32_t end) {
  std::vector<int32_t> values(static_cast<size_t>(end - begin));
  std::iota(values.begin(), values.end(), begin);
  return values;
}

Status append(Zarr1dWriter& writer, int32_t begin, int32_t end) {
  return writer.append(std::span<const int32_t>(numbers(begin, end)));
}

Result<std::vector<int32_t>> read(FileSystem& fs, int64_t start, int64_t count) {
  ASSIGN_OR_RETURN(const auto reader, Zarr1dReader::open(fs, "t"));
  std::vector<int32_t> values(static_cast<size_t>(count));
  RETURN_IF_ERROR(reader.read(start, std::span<int32_t>(values)));
  return values;
}

}  // namespace

TEST_CASE("zarr 1-d: elements appended in any pieces read back in any ranges") {
  for (const int32_t piece : {1, 3, 10, 39, 40, 41, 95}) {
    MemoryFileSystem fs;
    auto writer = Zarr1dWriter::create(fs, "t", small_spec());
    REQUIRE(writer.ok());
    for (int32_t at = 0; at < 95; at += piece) check_ok(append(*writer, at, std::min(95, at + piece)));
    REQUIRE(writer->commit().ok());
    for (int32_t start = 0; start <= 95; start += 7) {
      for (int32_t count = 0; count + start <= 95; count += 5) {
        CHECK(*read(fs, start, count) == numbers(start, start + count));
      }
    }
    // The general reader sees the same array, with zeros behind the end.
    auto array = ZarrArray::open(fs, "t");
    std::vector<int32_t> all(120);
    check_ok(array->read_box({0}, {120}, std::as_writable_bytes(std::span(all))));
    auto expected = numbers(0, 95);
    expected.resize(120);
    CHECK(all == expected);
  }
}

TEST_CASE("zarr 1-d: what was never written is an error unless zeros are asked for") {
  MemoryFileSystem fs;
  auto writer = Zarr1dWriter::create(fs, "t", small_spec());
  check_ok(append(*writer, 0, 25));
  REQUIRE(writer->commit().ok());
  CHECK(read(fs, 25, 5).ok());  // inside the last chunk: only the owner's ledger knows where the rows end
  CHECK(read(fs, 25, 6).error().message() == "t: elements [30, 31) were never written");
  CHECK(read(fs, 40, 1).error().code() == ErrorCode::kCorrupt);
  CHECK(read(fs, 999, 2).error().code() == ErrorCode::kInvalidArgument);
  auto reader = Zarr1dReader::open(fs, "t");
  std::vector<int32_t> values(10, 7);
  check_ok(reader->read(25, std::span<int32_t>(values), /*must_exist=*/false));
  CHECK(values == std::vector<int32_t>(10, 0));
  CHECK(append(*writer, 0, 976).error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("zarr 1-d: a random window costs one read per chunk it touches, and one per shard seen first") {
  MemoryFileSystem memory;
  auto writer = Zarr1dWriter::create(memory, "t", small_spec());
  check_ok(append(*writer, 0, 95));
  REQUIRE(writer->commit().ok());
  CountingFileSystem fs(memory);
  auto reader = Zarr1dReader::open(fs, "t");
  std::vector<int32_t> values(8);
  fs.reset();
  check_ok(reader->read(52, std::span<int32_t>(values)));
  CHECK(values == numbers(52, 60));
  CHECK(fs.counts().opens == 1);
  CHECK(fs.counts().reads == 2);  // index, chunk
  fs.reset();
  check_ok(reader->read(61, std::span<int32_t>(values)));
  CHECK(fs.counts().reads == 1);
  fs.reset();
  check_ok(reader->read(56, std::span<int32_t>(values)));  // both chunks are cached
  CHECK(fs.counts() == CountingFileSystem::Counts{});
}

TEST_CASE("zarr 1-d: resuming goes on from the recorded position, whatever was appended since") {
  MemoryFileSystem fs;
  for (const int32_t committed : {0, 5, 10, 38, 40, 45, 80, 95}) {
    for (const int32_t lost : {0, 3, 60}) {
      auto writer = Zarr1dWriter::create(fs, "t", small_spec());
      check_ok(append(*writer, 0, committed));
      const auto position = writer->commit();
      REQUIRE(position.ok());
      CHECK(position->elements == committed);
      check_ok(append(*writer, 500, 500 + lost));
      auto resumed = Zarr1dWriter::resume(fs, "t", *position);
      REQUIRE_MESSAGE(resumed.ok(), (resumed.ok() ? "" : resumed.error().message()));
      CHECK(resumed->elements() == committed);
      check_ok(append(*resumed, committed, 120));
      REQUIRE(resumed->commit().ok());
      CHECK(*read(fs, 0, 120) == numbers(0, 120));
    }
  }
  CHECK(Zarr1dWriter::resume(fs, "t", {119, 1 << 20}).error().code() == ErrorCode::kCorrupt);
  CHECK(Zarr1dWriter::resume(fs, "t", {2000, 0}).error().code() == ErrorCode::kCorrupt);
}

TEST_CASE("zarr 1-d: a power cut at any operation leaves the committed elements readable after resume") {
  const auto work = [](FileSystem& fs, Zarr1dWriter::Position& ledger) -> Status {
    ASSIGN_OR_RETURN(auto writer, Zarr1dWriter::create(fs, "t", small_spec()));
    ASSIGN_OR_RETURN(ledger, writer.commit());
    for (int32_t i = 0; i < 95; i += 19) {
      RETURN_IF_ERROR(append(writer, i, i + 19));
      ASSIGN_OR_RETURN(ledger, writer.commit());
    }
    return {};
  };
  int64_t operations = 0;
  {
    MemoryFileSystem memory;
    FaultyFileSystem fs(memory);
    Zarr1dWriter::Position ledger;
    check_ok(work(fs, ledger));
    operations = fs.writes();
  }
  CHECK(operations > 20);
  for (int64_t at = 0; at < operations; ++at) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      MemoryFileSystem memory;
      FaultyFileSystem fs(memory);
      fs.inject(Fault::kCrash, at);
      Zarr1dWriter::Position ledger;
      CHECK_FALSE(work(fs, ledger).ok());
      memory.crash(seed);
      if (ledger.elements == 0) continue;
      auto writer = Zarr1dWriter::resume(memory, "t", ledger);
      REQUIRE_MESSAGE(writer.ok(), (writer.ok() ? "" : writer.error().message()));
      check_ok(append(*writer, static_cast<int32_t>(ledger.elements), 100));
      REQUIRE(writer->commit().ok());
      CHECK(*read(memory, 0, 100) == numbers(0, 100));
    }
  }
}

TEST_CASE("zarr 1-d: one element can be replaced") {
  MemoryFileSystem fs;
  auto writer = Zarr1dWriter::create(fs, "t", small_spec());
  check_ok(append(*writer, 0, 95));
  REQUIRE(writer->commit().ok());
  const int32_t value = 77;
  check_ok(replace_element(fs, "t", 0, std::as_bytes(std::span(&value, 1))));
  check_ok(replace_element(fs, "t", 94, std::as_bytes(std::span(&value, 1))));
  auto expected = numbers(0, 95);
  expected.front() = expected.back() = 77;
  CHECK(*read(fs, 0, 95) == expected);
  CHECK(replace_element(fs, "t", 130, std::as_bytes(std::span(&value, 1))).error().code() ==
        ErrorCode::kNotFound);
}

TEST_CASE("zarr 1-d: a shard cut anywhere is refused; with a changed byte nothing crashes" *
          doctest::test_suite("one-thread")) {
  MemoryFileSystem fs;
  auto writer = Zarr1dWriter::create(fs, "t", small_spec());
  check_ok(append(*writer, 0, 35));
  REQUIRE(writer->commit().ok());
  const std::string good = *fs.read_file("t/c/0");
  const auto index_bytes = static_cast<size_t>(shard_index_bytes(small_spec()));
  for (size_t size = 0; size < good.size(); ++size) {
    *fs.content("t/c/0") = good.substr(0, size);
    CHECK_FALSE(read(fs, 0, 35).ok());
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      *fs.content("t/c/0") = good;
      (*fs.content("t/c/0"))[at] = static_cast<char>(good[at] ^ (1 << bit));
      const auto values = read(fs, 0, 35);
      const auto window = read(fs, 13, 4);
      if (at >= good.size() - index_bytes) {
        CHECK_FALSE(values.ok());
        CHECK_FALSE(window.ok());
      }
    }
  }
}
