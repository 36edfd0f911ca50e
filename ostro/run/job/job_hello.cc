#include "ostro/run/job/job_hello.h"

#include <fmt/format.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "ostro/audit/record/amend.h"
#include "ostro/base/host_name.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/version.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/routing_file_system.h"

namespace ostro::run {
namespace {

constexpr int64_t kMostPlaceBytes = 1000;

std::string mesh_options(train::ShardingOptions options) {
  config::OptionTable table;
  options.visit_options(table);
  return config::flow_text(table.write(config::Write::kAll));
}

}  // namespace

cluster::Hello job_hello(const train::TrainConfig& config, const std::string& place) {
  cluster::Hello hello;
  hello.job = train::run_directory(config);
  hello.host = host_name();
  hello.pid = ::getpid();
  hello.equal = {{"numerics version", chain::kNumericsVersion}};
  const auto options = chain::values_by_path(train::canonical_text(config));
  hello.equal.insert(hello.equal.end(), options.begin(), options.end());
  hello.equal.emplace_back("trainer.mesh and what is split over it", mesh_options(config.trainer.sharding));
  // It decides how many messages an exchange has.
  hello.equal.emplace_back("trainer.cross_check", fmt::format("{}", config.trainer.cross_check));
  hello.equal.emplace_back(fmt::format("the folder {}, seen by its {},", hello.job, kPlaceFile), place);
  return hello;
}

Result<std::string> place_of_run(const std::string& directory) {
  io::FileSystem& fs = objects::default_file_system();
  const std::string path = io::join_path(directory, kPlaceFile);
  if (auto found = fs.read_file(path, kMostPlaceBytes); found.ok() && !found->empty()) return found;
  std::random_device device;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", device());
  RETURN_IF_ERROR(io::write_file_atomically(fs, path, text));
  return text;
}

std::string find_place_of_run(io::FileSystem& fs, const std::string& directory,
                              std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto found = fs.read_file(io::join_path(directory, kPlaceFile), kMostPlaceBytes);
    if (found.ok() && !found->empty()) return *found;
    if (std::chrono::steady_clock::now() >= until) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace ostro::run
