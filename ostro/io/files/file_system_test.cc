#include "ostro/io/files/file_system.h"
#include "ostro/io/files/below.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/io/files/direct_file.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"

using namespace ostro;
using namespace ostro::io;

namespace {

std::string read_range(FileSystem& fs, const std::string& path, int64_t offset, int64_t size) {
  auto file = fs.open(path);
  REQUIRE(file.ok());
  std::string text(static_cast<size_t>(size), '?');
  const Status status = (*file)->read(offset, std::as_writable_bytes(std::span(text)));
  return status.ok() ? text : status.error().message();
}

// What every implementation must do; `root` is an empty directory.
void check_file_system(FileSystem& fs, const std::string& root) {
  const std::string dir = join_path(root, "a/b"), file = join_path(dir, "one");
  CHECK(fs.create(file).error().code() == ErrorCode::kNotFound);
  check_ok(fs.make_dirs(dir));
  check_ok(fs.make_dirs(dir));
  {
    auto out = fs.create(file);
    REQUIRE(out.ok());
    check_ok((*out)->append("hello "));
    check_ok((*out)->append("world"));
    check_ok((*out)->sync());
    check_ok((*out)->close());
  }
  check_ok(fs.sync_dir(dir));
  check_ok(fs.sync_tree(root));
  CHECK(*fs.read_file(file) == "hello world");
  CHECK(fs.read_file(file, 5).error().code() == ErrorCode::kCorrupt);
  CHECK(read_range(fs, file, 6, 5) == "world");
  CHECK(read_range(fs, file, 6, 6).find("ends at byte 11") != std::string::npos);
  CHECK(read_range(fs, file, 100, 1).find(file) != std::string::npos);
  CHECK(fs.stat(file)->size == 11);
  CHECK_FALSE(fs.stat(file)->is_directory);
  CHECK(fs.stat(dir)->is_directory);
  CHECK_FALSE(*fs.exists(join_path(dir, "two")));
  CHECK(fs.read_file(join_path(dir, "two")).error().message().find("No such file") != std::string::npos);
  CHECK(fs.read_file(dir).error().code() == ErrorCode::kIo);
  {
    auto out = fs.open_append(file);
    check_ok((*out)->append("!"));
    check_ok((*out)->close());
  }
  CHECK(*fs.read_file(file) == "hello world!");
  check_ok(fs.truncate(file, 5));
  CHECK(*fs.read_file(file) == "hello");

  check_ok(write_file_atomically(fs, join_path(dir, "two"), "2"));
  check_ok(write_file_atomically(fs, join_path(dir, "two"), "22"));
  CHECK(*fs.read_file(join_path(dir, "two")) == "22");
  check_ok(fs.make_dirs(join_path(root, "a/c")));
  CHECK(*fs.list(dir) == std::vector<DirEntry>{{"one", false}, {"two", false}});
  CHECK(*fs.list(join_path(root, "a")) == std::vector<DirEntry>{{"b", true}, {"c", true}});

  check_ok(fs.rename(file, join_path(root, "a/c/three")));
  CHECK_FALSE(*fs.exists(file));
  CHECK(fs.remove(dir).error().code() == ErrorCode::kIo);  // not empty
  check_ok(fs.rename(join_path(root, "a/c"), join_path(root, "a/d")));
  CHECK(*fs.read_file(join_path(root, "a/d/three")) == "hello");

  const auto globbed = [&](const char* pattern) { return *fs.glob(join_path(root, pattern)); };
  using Names = std::vector<std::string>;
  const std::string two = join_path(root, "a/b/two"), three = join_path(root, "a/d/three");
  CHECK(globbed("a/*/t*") == Names{two, three});
  CHECK(globbed("**/t[h-x]*") == Names{two, three});
  CHECK(globbed("**") == Names{two, three});
  CHECK(globbed("a/**/three") == Names{three});
  CHECK(globbed("a/b/two") == Names{two});
  CHECK(globbed("a/*") == Names{});  // directories are not files
  CHECK(globbed("nowhere/*") == Names{});
  // A name that is there is itself, whatever it would match.
  for (const char* name : {"x[1]", "x1", "what?", "whatx"})
    check_ok(write_file_atomically(fs, join_path(root, name), "text"));
  CHECK(globbed("x[1]") == Names{join_path(root, "x[1]")});
  CHECK(globbed("what?") == Names{join_path(root, "what?")});
  CHECK(globbed("x[12]") == Names{join_path(root, "x1")});
  for (const char* name : {"x[1]", "x1", "what?", "whatx"}) check_ok(fs.remove(join_path(root, name)));

  const std::string lock_path = join_path(root, "LOCK");
  {
    auto held = fs.lock(lock_path, "process 1, epoch 7");
    REQUIRE(held.ok());
    const auto second = fs.lock(lock_path, "process 2");
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code() == ErrorCode::kBusy);
    CHECK(second.error().message().find("process 1, epoch 7") != std::string::npos);
  }
  CHECK(fs.lock(lock_path, "process 2").ok());

  check_ok(fs.remove_all(join_path(root, "a")));
  check_ok(fs.remove_all(join_path(root, "a")));
  CHECK_FALSE(*fs.exists(join_path(root, "a")));
}

}  // namespace

TEST_CASE("local files") {
  char root[] = "/tmp/ostro_io_XXXXXX";
  REQUIRE(::mkdtemp(root) != nullptr);
  FileSystem& fs = local_file_system();
  check_file_system(fs, root);
  REQUIRE(::symlink("nowhere", join_path(root, "dangling").c_str()) == 0);
  CHECK(fs.list(root)->size() == 2);  // the lock and the link
  check_ok(fs.remove(join_path(root, "dangling")));
  check_ok(fs.remove_all(root));
}

TEST_CASE("a directory is removed with the links in it, and not with what they lead to") {
  char root[] = "/tmp/ostro_io_XXXXXX";
  REQUIRE(::mkdtemp(root) != nullptr);
  FileSystem& fs = local_file_system();
  check_ok(fs.make_dirs(join_path(root, "kept")));
  check_ok(fs.make_dirs(join_path(root, "gone/below")));
  check_ok(write_file_atomically(fs, join_path(root, "kept/file"), "text"));
  check_ok(write_file_atomically(fs, join_path(root, "gone/below/file"), "text"));
  for (const char* to : {"../kept", "../kept/file", "nowhere"})
    REQUIRE(::symlink(to, join_path(root, fmt::format("gone/{}", base_name(to))).c_str()) == 0);
  REQUIRE(::symlink("kept", join_path(root, "link").c_str()) == 0);
  CHECK(is_link(join_path(root, "link")));
  CHECK(is_link(join_path(root, "gone/nowhere")));
  CHECK_FALSE(is_link(join_path(root, "kept")));
  CHECK_FALSE(is_link(join_path(root, "none")));
  for (const char* name : {"gone", "link", "none"}) check_ok(fs.remove_all(join_path(root, name)));
  CHECK(fs.list(root).value().size() == 1);
  CHECK(fs.read_file(join_path(root, "kept/file")).value() == "text");
  check_ok(fs.remove_all(root));
}

TEST_CASE("a Git LFS pointer is no file to read, whatever its name says") {
  char root[] = "/tmp/ostro_io_XXXXXX";
  REQUIRE(::mkdtemp(root) != nullptr);
  FileSystem& fs = local_file_system();
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 5\n";
  for (const char* name : {"model.safetensors", "tokenizer.json", "rows.jsonl", "part.parquet"}) {
    const std::string path = join_path(root, name);
    check_ok(write_file_atomically(fs, path, pointer));
    for (const Status& refused : {Status(fs.open(path).error()), Status(fs.read_file(path).error())}) {
      CHECK(refused.error().message().find(path + ": is a Git LFS pointer of 126 bytes") == 0);
      CHECK(refused.error().message().find(std::string("`git lfs pull` in ") + root) != std::string::npos);
    }
  }
  // What only looks like one: a text about pointers, and a pointer with more text than one has.
  const std::string path = join_path(root, "about.txt");
  check_ok(write_file_atomically(fs, path, "It says: " + pointer));
  CHECK(fs.read_file(path).ok());
  check_ok(write_file_atomically(fs, path, pointer + std::string(1024, 'x')));
  CHECK(fs.read_file(path).ok());
  check_ok(fs.remove_all(root));
}

TEST_CASE("direct reads of any place, length and memory are the bytes of the file") {
  std::string content(3 * 1048576 + 777, 0);
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + i / 4096);
  char root[] = "/tmp/ostro_io_XXXXXX";
  REQUIRE(::mkdtemp(root) != nullptr);
  FileSystem& fs = local_file_system();
  MemoryFileSystem memory;
  check_ok(write_file_atomically(fs, join_path(root, "file"), content));
  check_ok(memory.make_dirs(root));
  check_ok(write_file_atomically(memory, join_path(root, "file"), content));
  const std::unique_ptr<std::byte, void (*)(void*)> aligned(
      static_cast<std::byte*>(std::aligned_alloc(kDirectBlock, 4 << 20)), std::free);
  const auto size = static_cast<int64_t>(content.size());
  for (FileSystem* each : {&fs, static_cast<FileSystem*>(&memory)}) {
    const auto file = open_direct(*each, join_path(root, "file"));
    REQUIRE(file.ok());
    for (const int64_t offset :
         {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{70000}, int64_t{1048577}, size - 5000})
      for (const int64_t bytes :
           {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{9000}, int64_t{1500000}, size - offset})
        for (const int64_t shift : {int64_t{0}, offset % kDirectBlock, int64_t{3}}) {
          if (offset + bytes > size) continue;
          const std::span<std::byte> out(aligned.get() + shift, static_cast<size_t>(bytes));
          std::fill(out.begin(), out.end(), std::byte{0});
          check_ok((*file)->read(offset, out));
          REQUIRE(std::memcmp(out.data(), content.data() + offset, out.size()) == 0);
        }
    for (const int64_t shift : {0, 3}) {
      const Status beyond = (*file)->read(size - 10, {aligned.get() + shift, 11});
      CHECK(beyond.error().code() == ErrorCode::kCorrupt);
      CHECK(beyond.error().message().find("ends at byte 3146505") != std::string::npos);
    }
  }
  check_ok(fs.remove_all(root));
}

TEST_CASE("files in memory, counted and behind a disk without faults") {
  MemoryFileSystem memory;
  check_file_system(memory, "/");
  MemoryFileSystem other;
  FaultyFileSystem faulty(other);
  CountingFileSystem counting(faulty);
  check_file_system(counting, "root");
  CHECK(counting.counts().reads > 5);
  counting.reset();
  check_ok(counting.make_dirs("x"));
  check_ok(write_file_atomically(counting, "x/f", "0123456789"));
  CHECK(counting.counts() == CountingFileSystem::Counts{});
  REQUIRE(counting.read_file("x/f").ok());
  CHECK(counting.counts() == CountingFileSystem::Counts{.opens = 1, .reads = 1, .bytes_read = 10});
}

TEST_CASE("glob_literal matches its path alone") {
  CHECK(glob_literal("s3://a/b-c.txt") == "s3://a/b-c.txt");
  CHECK(glob_literal("a*?[x]") == "a[*][?][[]x]");
  for (const char* path : {"my [texts]/notes [1].txt", "[", "[[-]]", "**", "a/**/b*", "why?", "[!a]", "]["}) {
    CAPTURE(path);
    CHECK(glob_match(glob_literal(path), path));
  }
  CHECK_FALSE(glob_match(glob_literal("[ab]"), "a"));
  CHECK_FALSE(glob_match(glob_literal("a*"), "ab"));
  CHECK_FALSE(glob_match(glob_literal("a?"), "ab"));
  CHECK_FALSE(glob_match(glob_literal("**"), "a/b"));
}

TEST_CASE("glob_match") {
  CHECK(glob_match("model/layers/*/weight", "model/layers/q/weight"));
  CHECK_FALSE(glob_match("model/*", "model/layers/q"));
  CHECK(glob_match("model/**", "model/layers/q"));
  CHECK(glob_match("**", "anything/at/all"));
  CHECK(glob_match("**/w", "w"));
  CHECK(glob_match("a/**/**/b", "a/b"));
  CHECK(glob_match("a/**/b/**/c", "a/b/x/b/y/c"));
  CHECK_FALSE(glob_match("a/**/b/**/c", "a/x/c"));
  CHECK(glob_match("a?c*[0-9]", "abcxx7"));
  CHECK_FALSE(glob_match("[!a]", "a"));
  CHECK(glob_match("[]]", "]"));
  CHECK(glob_match("[x", "[x"));
  CHECK(glob_match("*a*b", "xxaxxbb"));
  CHECK_FALSE(glob_match("*a*b", "xxaxxbc"));
}

TEST_CASE("paths") {
  CHECK(has_extension("a/b.JSONL.gz", ".jsonl.GZ"));
  CHECK(has_extension(".gz", ".gz"));
  CHECK_FALSE(has_extension("gz", ".gz"));
  CHECK_FALSE(has_extension("a.gz.txt", ".gz"));
  CHECK_FALSE(has_extension("a[gz", "{gz"));  // no letters, though 32 apart
  CHECK(join_path("a", "b") == "a/b");
  CHECK(join_path("a/", "b") == "a/b");
  CHECK(join_path("a", "/b") == "/b");
  CHECK(join_path("", "b") == "b");
  CHECK(parent_path("a/b") == "a");
  CHECK(parent_path("a") == ".");
  CHECK(parent_path("/a") == "/");
  CHECK(base_name("a/b") == "b");
  CHECK(clean_path("./a//b/./c/") == "a/b/c");
  CHECK(clean_path("//a") == "/a");
  for (const char* below : {"a", "a/b.txt", "..a/b", "a/...", "s3:a"}) CHECK(stays_below(below));
  for (const char* other : {"", "/a", ".", "..", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "a/./b"})
    CHECK_FALSE(stays_below(other));
}

TEST_CASE("a power cut keeps what was synced and nothing else for sure") {
  MemoryFileSystem fs;
  check_ok(fs.make_dirs("d"));
  auto file = fs.create("d/f");
  check_ok((*file)->append("synced"));
  check_ok((*file)->sync());
  check_ok((*file)->append(" and not"));
  fs.crash(0);
  CHECK_FALSE(*fs.exists("d/f"));  // its name was never synced
  CHECK((*file)->append("x").error().code() == ErrorCode::kIo);

  file = fs.create("d/f");
  check_ok((*file)->append("synced"));
  check_ok((*file)->sync());
  check_ok(fs.sync_dir("d"));
  check_ok((*file)->append(" and not"));
  fs.crash(0);
  CHECK(*fs.read_file("d/f") == "synced");

  bool torn_seen = false;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    file = fs.open_append("d/f");
    check_ok((*file)->append(" and not"));
    fs.crash(seed);
    const std::string left = *fs.read_file("d/f");
    CHECK(left.starts_with("synced"));
    torn_seen = torn_seen || (left != "synced" && left != "synced and not");
    check_ok(fs.truncate("d/f", 6));
  }
  CHECK(torn_seen);
}

TEST_CASE("an atomic write leaves the old or the new file, at every moment and for every fault") {
  const auto attempt = [](FileSystem& fs) -> Status {
    return write_file_atomically(fs, "d/f", std::string(100, 'n'));
  };
  const auto prepare = [](MemoryFileSystem& fs) {
    check_ok(fs.make_dirs("d"));
    check_ok(write_file_atomically(fs, "d/f", "old"));
  };
  int64_t operations = 0;
  {
    MemoryFileSystem memory;
    prepare(memory);
    FaultyFileSystem faulty(memory);
    check_ok(attempt(faulty));
    operations = faulty.writes();
  }
  CHECK(operations == 5);
  for (const Fault fault :
       {Fault::kIoError, Fault::kShortWrite, Fault::kDiskFull, Fault::kSyncError, Fault::kCrash}) {
    bool old_seen = false;
    for (int64_t at = 0; at < operations; ++at) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        MemoryFileSystem memory;
        prepare(memory);
        FaultyFileSystem faulty(memory);
        faulty.inject(fault, at);
        const Status status = attempt(faulty);
        if (fault != Fault::kDiskFull) CHECK_FALSE(status.ok());
        memory.crash(seed);
        const std::string left = *memory.read_file("d/f");
        const bool is_new = left == std::string(100, 'n');
        CHECK((is_new || left == "old"));
        if (status.ok()) CHECK(is_new);
        old_seen = old_seen || !is_new;
      }
    }
    CHECK(old_seen);
  }
  // The control: without the sync before the rename the file can be torn.
  bool torn_seen = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    MemoryFileSystem memory;
    prepare(memory);
    auto file = memory.create("d/g");
    check_ok((*file)->append(std::string(100, 'n')));
    check_ok(memory.rename("d/g", "d/f"));
    check_ok(memory.sync_dir("d"));
    memory.crash(seed);
    torn_seen = torn_seen || memory.read_file("d/f")->size() != 100;
  }
  CHECK(torn_seen);
}

TEST_CASE("a full disk and a failing read say so and name the file") {
  MemoryFileSystem memory;
  FaultyFileSystem fs(memory);
  fs.limit_space(10);
  auto file = fs.create("f");
  check_ok((*file)->append("123456"));
  const Status status = (*file)->append("789012");
  CHECK(status.error().message() == "f: cannot write: No space left on device (injected)");
  CHECK(*memory.read_file("f") == "1234567890");
  fs.heal();
  fs.inject_read_error(1);
  CHECK(fs.read_file("f").error().message().find("f: cannot read: Input/output error") == 0);
  CHECK(fs.read_file("f").ok());
}
