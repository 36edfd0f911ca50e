// fetched: keys of objects that lead out of the folder of copies. (tests/s3 has copies that are made and go
// away.)
#include <doctest/doctest.h>

#include "ostro/io/files/memory_file_system.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

TEST_CASE("an object whose key leads out of the folder of copies is refused") {
  io::MemoryFileSystem fs;
  for (const std::string path : {"s3://b/../../x.html", "s3://../x.html", "s3://b/k/../x.html",
                                 "s3://b//x.html", "s3://b/./x.html", "s3://b/..", "s3://b/k/"}) {
    INFO(path);
    const auto copy = fetched(fs, "out/f", path);
    REQUIRE_FALSE(copy.ok());
    CHECK(copy.error().message().find(path + ": its key has an empty") == 0);
  }
  CHECK_FALSE(*fs.exists("out"));
}

}  // namespace
}  // namespace ostro::lab
