// A text of which the newest part is kept.
#include "ostro/io/files/rotated_file.h"

#include <doctest/doctest.h>

#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::io {
namespace {

TEST_CASE("a file that grows too large becomes the older one; a new process goes on with it") {
  MemoryFileSystem fs;
  REQUIRE(fs.make_dirs("d").ok());
  {
    RotatedFile file(fs, "d/log", 10);
    CHECK(file.append("1234\n").ok());
    CHECK(file.append("5678\n").ok());  // 10 bytes fit
    CHECK(!fs.exists("d/log.1").value());
    CHECK(file.append("9\n").ok());
    CHECK(fs.read_file("d/log").value() == "9\n");
    CHECK(fs.read_file("d/log.1").value() == "1234\n5678\n");
  }
  RotatedFile file(fs, "d/log", 10);
  CHECK(file.append("a line that is long\n").ok());  // whole, in a file of its own
  CHECK(fs.read_file("d/log").value() == "a line that is long\n");
  CHECK(fs.read_file("d/log.1").value() == "9\n");
}

TEST_CASE("a write that fails halfway leaves no part of a line that another is glued to") {
  for (const Fault fault : {Fault::kShortWrite, Fault::kCrash}) {
    CAPTURE(static_cast<int>(fault));
    MemoryFileSystem fs;
    FaultyFileSystem faulty(fs);
    REQUIRE(fs.make_dirs("d").ok());
    RotatedFile file(faulty, "d/log", 100);
    CHECK(file.append("{\"event\": 1}\n").ok());
    faulty.inject(fault, 0);
    CHECK(!file.append("{\"event\": 2}\n").ok());
    REQUIRE(faulty.triggered());
    faulty.heal();
    if (fault == Fault::kShortWrite) {
      CHECK(file.append("{\"event\": 3}\n").ok());
      CHECK(fs.read_file("d/log").value() == "{\"event\": 1}\n{\"event\": 3}\n");
      continue;
    }
    RotatedFile again(fs, "d/log", 100);  // another process
    CHECK(again.append("{\"event\": 3}\n").ok());
    CHECK(fs.read_file("d/log").value() == "{\"event\": 1}\n{\"even\n{\"event\": 3}\n");
  }
}

TEST_CASE("where there is no folder, writing is an error, and works once it is there") {
  MemoryFileSystem fs;
  RotatedFile file(fs, "none/log", 10);
  CHECK(!file.append("x").ok());
  REQUIRE(fs.make_dirs("none").ok());
  CHECK(file.append("y").ok());
  CHECK(fs.read_file("none/log").value() == "y");
}

}  // namespace
}  // namespace ostro::io
