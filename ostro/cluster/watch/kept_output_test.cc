// What workers write, kept with times.
#include "ostro/cluster/watch/kept_output.h"

#include <doctest/doctest.h>

#include <regex>

#include "ostro/io/files/memory_file_system.h"

namespace ostro::cluster {
namespace {

// The lines without their times, which must be there.
std::string without_times(const std::string& text) {
  const std::regex time("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z ");
  return std::regex_replace(text, time, "@");
}

TEST_CASE(
    "lines have a time and a process; what is drawn over is left out, and a line without an end is kept") {
  io::MemoryFileSystem fs;
  REQUIRE(fs.make_dirs("d").ok());
  KeptOutput kept(fs, "d/worker-0.log");
  kept.add(7, "first\nsec");
  kept.add(7, "ond\n\n");
  kept.add(7, "\r\x1b[Kstep 1\r\x1b[Kstep 2  loss 3\nthe \x1b[31mend");
  kept.end(7);
  kept.add(8, "another\n");
  CHECK(without_times(fs.read_file("d/worker-0.log").value()) ==
        "@7 first\n@7 second\n@7 step 2  loss 3\n@7 the end\n@8 another\n");
}

TEST_CASE("a line that ends with a carriage return and a line feed is kept, as ssh writes its own") {
  io::MemoryFileSystem fs;
  REQUIRE(fs.make_dirs("d").ok());
  KeptOutput kept(fs, "d/w");
  kept.add(7, "ssh: connect to host down port 22: Connection refused\r\nstep 1\rstep 2\r");
  kept.add(7, "\nthe last\r");
  kept.end(7);
  CHECK(without_times(fs.read_file("d/w").value()) ==
        "@7 ssh: connect to host down port 22: Connection refused\n@7 step 2\n@7 the last\n");
}

TEST_CASE("what is kept is bounded, whatever a worker writes") {
  io::MemoryFileSystem fs;
  REQUIRE(fs.make_dirs("d").ok());
  KeptOutput kept(fs, "d/w", 4096);
  for (int i = 0; i < 1000; ++i) kept.add(1, "a line of a worker that says too much\n");
  kept.add(1, std::string(100'000, 'x'));
  CHECK(fs.read_file("d/w").value().size() <= 20'000);  // a line is cut at 16 KiB
  CHECK(fs.read_file("d/w.1").value().size() <= 20'000);
}

}  // namespace
}  // namespace ostro::cluster
