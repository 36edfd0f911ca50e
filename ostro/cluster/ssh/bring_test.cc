// What is brought to another machine, whose shell this machine's stands for.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ostro/base/sha256.h"
#include "ostro/base/text_parts.h"
#include "ostro/cluster/ssh/bring.h"
#include "ostro/io/files/local_file_system.h"

namespace ostro::cluster {
namespace {

namespace stdfs = std::filesystem;

// A home folder of the other machine. `between` are words of a shell that stand between ssh and the script.
struct OtherHome {
  OtherHome() {
    home = stdfs::temp_directory_path() / "ostro's home XXXXXX";
    REQUIRE(::mkdtemp(home.data()) != nullptr);
  }
  ~OtherHome() { stdfs::remove_all(home); }

  Result<Arrival> take(const BroughtCopy& copy, const std::string& between = "") {
    const std::string script = bring_script(copy, fmt::format("n{}", ++calls));
    const std::string command =
        between.empty() ? script : fmt::format("{} | sh -c {}", between, shell_word(script));
    auto remote = LineProcess::start({"env", "HOME=" + home, "sh", "-c", command});
    REQUIRE(remote.ok());
    return bring(
        io::local_file_system(), copy, *remote, [this](int64_t bytes) { sent += bytes; },
        [] { return false; });
  }
  std::string read(const std::string& path) const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : stdfs::directory_iterator(home + "/copies of it"))
      out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

  std::string home;
  int calls = 0;
  int64_t sent = 0;
};

BroughtFile text_file(const std::string& name, const std::string& text) {
  return {.name = name,
          .from = {},
          .text = text,
          .size = static_cast<int64_t>(text.size()),
          .sha256 = sha256_hex(text)};
}

BroughtCopy copy_with(const std::string& data) {
  return {.folder = "~/copies of it",
          .files = {text_file("bin/ostro", "#!/bin/sh\n[ \"$1\" = --version ]\n"),
                    text_file("work/a b/again.txt", data), text_file("work/a b/data.txt", data),
                    text_file("work/empty", "")},
          .program = "bin/ostro",
          .elsewhere = {}};
}

TEST_CASE("a copy arrives once; of another one only what is new is sent, and the newest three stay") {
  OtherHome other;
  const BroughtCopy first = copy_with("some text\n");
  const auto arrived = other.take(first);
  REQUIRE_MESSAGE(arrived.ok(), arrived.error().message());
  CHECK(arrived->files == 3);  // two have the same bytes
  CHECK(stdfs::path(first.place()).filename() == stdfs::path(arrived->folder).filename());
  CHECK(other.read(arrived->folder + "/work/a b/data.txt") == "some text\n");
  CHECK(other.read(arrived->folder + "/work/a b/again.txt") == "some text\n");
  CHECK(stdfs::exists(arrived->folder + "/work/empty"));
  CHECK(other.names().size() == 1);
  other.sent = 0;
  const auto again = other.take(first);
  REQUIRE_MESSAGE(again.ok(), again.error().message());
  CHECK(again->files == 0);
  CHECK(other.sent == 0);
  // A file that was damaged there comes again, and it alone.
  stdfs::permissions(arrived->folder + "/work/a b/data.txt", stdfs::perms::owner_all);
  std::ofstream(arrived->folder + "/work/a b/data.txt") << "other text";
  const auto mended = other.take(first);
  REQUIRE_MESSAGE(mended.ok(), mended.error().message());
  CHECK(mended->files == 1);
  CHECK(other.read(arrived->folder + "/work/a b/data.txt") == "some text\n");
  // Those that another machine with this home folder may use stay, too, for some days.
  const auto aged = [&](const Arrival& copy, int days) {
    stdfs::last_write_time(copy.folder + "/list",
                           stdfs::file_time_type::clock::now() - std::chrono::hours(24 * days + 1));
  };
  aged(*again, kDaysOfCopy - 1);
  for (const char* data : {"2", "3", "4"}) {
    const auto next = other.take(copy_with(data));
    REQUIRE_MESSAGE(next.ok(), next.error().message());
    CHECK(next->files == 1);
    CHECK(next->removed == 0);
  }
  CHECK(other.names().size() == kKeptCopies + 1);
  aged(*again, kDaysOfCopy);
  const auto last = other.take(copy_with("4"));
  REQUIRE_MESSAGE(last.ok(), last.error().message());
  CHECK(last->removed == 1);
  CHECK(last->was_there);
  CHECK(!stdfs::exists(again->folder));
  CHECK(other.names().size() == kKeptCopies);
}

TEST_CASE("a copy without data has the folder in which workers run; what was half removed goes") {
  OtherHome other;
  BroughtCopy copy = copy_with("");
  copy.files.resize(1);
  stdfs::create_directories(other.home + "/copies of it/.old-n-0123456789abcdef/bin");
  for (const bool there : {false, true}) {
    const auto arrived = other.take(copy);
    REQUIRE_MESSAGE(arrived.ok(), arrived.error().message());
    CHECK(arrived->was_there == there);
    CHECK(stdfs::is_directory(arrived->folder + "/" + kWorkOfCopy));
    CHECK(stdfs::exists(arrived->folder + "/" + kWorkOfCopy + "/" + kListOfCopy));
    CHECK(other.names().size() == 1);
    stdfs::remove(arrived->folder + "/" + kWorkOfCopy);
  }
}

TEST_CASE("a copy whose making ends before it is whole has no name") {
  OtherHome other;
  const BroughtCopy copy = copy_with("x");
  stdfs::create_directories(other.home + "/tools");
  // The disk is full when the copy is made of its parts.
  for (const char* tool : {"ln", "cp"}) {
    std::ofstream(other.home + "/tools/" + tool) << "#!/bin/sh\necho full >&2; exit 1\n";
    stdfs::permissions(other.home + "/tools/" + tool, stdfs::perms::owner_all);
  }
  const auto failed =
      other.take(copy, fmt::format("export PATH={}:\"$PATH\"; cat", shell_word(other.home + "/tools")));
  REQUIRE(!failed.ok());
  CHECK_MESSAGE(failed.error().message().find("full") != std::string::npos, failed.error().message());
  CHECK(other.names().empty());
}

TEST_CASE("a machine that takes nothing is waited for as long as is said, or until it is not wanted") {
  const std::string much(size_t{1} << 20, 'x');
  auto stalled = LineProcess::start({"sleep", "1000"});
  REQUIRE(stalled.ok());
  const Status late = stalled->send(much, {}, std::chrono::milliseconds(50));
  REQUIRE(!late.ok());
  CHECK_MESSAGE(late.error().message().find("takes nothing for") == 0, late.error().message());
  const Status unwanted = stalled->send(much, [] { return true; });
  REQUIRE(!unwanted.ok());
  CHECK(unwanted.error().code() == ErrorCode::kBusy);
  auto takes = LineProcess::start({"wc", "-c"});
  REQUIRE(takes.ok());
  CHECK(takes->send(much, [] { return false; }).ok());
  takes->end_input();
  CHECK(takes->answer(std::chrono::seconds(60), {}).value() == std::to_string(much.size()));
}

TEST_CASE("a file that arrives with other bytes is refused, and nothing of it stays") {
  OtherHome other;
  const BroughtCopy copy = copy_with("these are the words\n");
  const auto arrived = other.take(copy, "sed -u s/these.are/these-are/");
  REQUIRE(!arrived.ok());
  CHECK(arrived.error().code() == ErrorCode::kCorrupt);
  CHECK_MESSAGE(
      arrived.error().message().find("work/a b/again.txt arrived with other bytes") != std::string::npos,
      arrived.error().message());
  CHECK(other.names().empty());
  const auto whole = other.take(copy, "sed -u s/these.were/these-are/");
  REQUIRE_MESSAGE(whole.ok(), whole.error().message());
}

TEST_CASE("what is wrong on the other machine is named") {
  OtherHome other;
  const auto error = [&](const BroughtCopy& copy, const std::string& before = "") {
    const auto arrived = other.take(copy, before);
    return arrived.ok() ? "none" : arrived.error().message();
  };
  BroughtCopy copy = copy_with("x");
  copy.elsewhere = {"/", other.home + "/none"};
  CHECK(error(copy).find(other.home + "/none is not there; it is outside") == 0);
  copy = copy_with("x");
  copy.files[0] = text_file("bin/ostro", "#!/bin/sh\necho no library; exit 127\n");
  CHECK(error(copy).find("/bin/ostro does not run there: no library") != std::string::npos);
  copy = copy_with("x");
  copy.files[1].size = int64_t{1} << 50;
  copy.files[1].sha256 = sha256_hex("a petabyte");
  const std::string full = error(copy);
  CHECK(full.find("/copies of it/") != std::string::npos);
  CHECK_MESSAGE(
      full.find("MiB are free: make room, or name another folder with --bring_to") != std::string::npos,
      full);
  copy = copy_with("x");
  copy.folder = other.home + "/file/copies";
  std::ofstream(other.home + "/file") << "no folder";
  CHECK(error(copy).find("file") != std::string::npos);
  // The other machine's uname.
  stdfs::create_directory(other.home + "/tools");
  std::ofstream(other.home + "/tools/uname") << "#!/bin/sh\necho Linux mips\n";
  stdfs::permissions(other.home + "/tools/uname", stdfs::perms::owner_all);
  copy = copy_with("x");
  CHECK(error(copy, fmt::format("export PATH={}:\"$PATH\"; cat", shell_word(other.home + "/tools")))
            .find("the machine is Linux mips, and this program is for Linux ") == 0);
  copy.files[1].name = "work/a\nb";
  CHECK(!check_copy(copy).ok());
}

}  // namespace
}  // namespace ostro::cluster
