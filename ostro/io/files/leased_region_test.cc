// Files as memory keep their bytes when another thread or process writes to the files.
#include "ostro/io/files/leased_region.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"

using namespace ostro;
using namespace ostro::io;

namespace {

constexpr size_t kBytes = size_t{40} << 20;  // more than is replaced at a time

Status take_all(std::span<const std::byte>) { return {}; }

struct Files {
  FileSystem& fs = local_file_system();
  char root[64] = "/tmp/ostro_leased_XXXXXX";
  std::vector<std::string> paths;

  Files() {
    REQUIRE(::mkdtemp(root) != nullptr);
    for (const char c : {'a', 'b'}) {
      paths.push_back(join_path(root, std::string(1, c)));
      check_ok(fs.write_file(paths.back(), std::string(kBytes, c)));
    }
  }
  ~Files() { check_ok(fs.remove_all(root)); }
};

bool is_all(std::span<const std::byte> bytes, char c) {
  return std::ranges::all_of(bytes, [&](std::byte b) { return b == static_cast<std::byte>(c); });
}

// Overwrites a file in place, from its first byte.
void overwrite(const std::string& path, char c) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  const std::string other(kBytes, c);
  REQUIRE(::write(fd, other.data(), other.size()) == static_cast<ssize_t>(other.size()));
  REQUIRE(::close(fd) == 0);
}

TEST_CASE("leased region: who writes to a file waits until its bytes are the process's own") {
  Files files;
  const auto region = LeasedRegion::map(files.fs, files.paths, take_all);
  if (!region.ok()) {  // this place gives no leases
    CHECK(region.error().code() == ErrorCode::kUnsupported);
    MESSAGE("not run: " << region.error().message());
    return;
  }
  const auto bytes = (*region)->bytes();
  REQUIRE(bytes.size() == 2 * kBytes);
  std::atomic<bool> stops = false, differs = false;
  std::thread reader([&] {
    while (!stops) differs = differs || !is_all(bytes.first(kBytes), 'a');
  });
  overwrite(files.paths[0], 'x');
  overwrite(files.paths[1], 'y');
  stops = true;
  reader.join();
  CHECK(!differs);
  CHECK(is_all(bytes.first(kBytes), 'a'));
  CHECK(is_all(bytes.subspan(kBytes), 'b'));
  CHECK(files.fs.read_file(files.paths[0])->front() == 'x');

  // A mapping without a lease shows what was written.
  const int fd = ::open(files.paths[0].c_str(), O_RDONLY | O_CLOEXEC);
  void* const plain = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, fd, 0);
  REQUIRE(plain != MAP_FAILED);
  overwrite(files.paths[0], 'z');
  CHECK(*static_cast<const char*>(plain) == 'z');
  ::munmap(plain, kBytes);
  ::close(fd);
}

TEST_CASE("leased region: it settles when it is told, can be written, and changes no file") {
  Files files;
  const auto region = LeasedRegion::map(files.fs, files.paths, take_all);
  if (!region.ok()) return;
  (*region)->settle();
  (*region)->settle();
  CHECK(is_all((*region)->bytes().first(kBytes), 'a'));
  (*region)->bytes()[0] = std::byte{'q'};
  overwrite(files.paths[1], 'y');
  CHECK(is_all((*region)->bytes().subspan(kBytes), 'b'));
  CHECK(files.fs.read_file(files.paths[0])->front() == 'a');
}

TEST_CASE("leased region: what cannot be mapped has to be read; a check's error is given") {
  Files files;
  const auto code = [](FileSystem& fs, const std::vector<std::string>& paths) {
    return LeasedRegion::map(fs, paths, take_all).error().code();
  };
  const std::string odd = join_path(files.root, "odd");
  check_ok(files.fs.write_file(odd, std::string(5000, 'a')));
  CHECK(code(files.fs, {files.paths[0], odd}) == ErrorCode::kUnsupported);
  CHECK(code(files.fs, {join_path(files.root, "none")}) == ErrorCode::kNotFound);
  MemoryFileSystem memory;
  check_ok(memory.write_file("a", std::string(4096, 'a')));
  CHECK(code(memory, {"a"}) == ErrorCode::kUnsupported);
  CHECK(code(files.fs, std::vector(LeasedRegion::kMostFiles + 1, files.paths[0])) == ErrorCode::kUnsupported);
  const int fd = ::open(files.paths[0].c_str(), O_WRONLY | O_CLOEXEC);
  CHECK(code(files.fs, {files.paths[0]}) == ErrorCode::kUnsupported);  // its owner may write to it
  ::close(fd);
  if (!LeasedRegion::map(files.fs, files.paths, take_all).ok()) return;
  const auto refused = LeasedRegion::map(
      files.fs, files.paths, [](std::span<const std::byte>) { return Status(corrupt("they are others")); });
  CHECK(refused.error().code() == ErrorCode::kCorrupt);
}

}  // namespace
