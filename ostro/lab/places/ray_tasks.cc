#include "ostro/lab/places/ray_tasks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "ostro/base/run_program.h"
#include "ostro/cluster/ray/ray_python.h"
#include "ostro/io/files/atomic_file.h"

namespace ostro::lab {
namespace {

// Exit statuses of python/ostro_ray/step.py.
constexpr int kProcessEnded = 0, kPlaceLost = 3;

class RayCluster final : public Cluster {
 public:
  RayCluster(io::FileSystem& fs, RayOptions options, std::string python, std::string program)
      : fs_(fs), options_(std::move(options)), python_(std::move(python)), program_(std::move(program)) {}

  // Ray ends what an earlier driver has begun.
  Result<bool> has(const TaskFiles&) const override { return false; }

  Result<AttemptEnd> attempt(const TaskFiles& files, bool saves,
                             const std::function<bool()>& stop) const override {
    using How = AttemptEnd::How;
    ProgramCall call;
    call.words = {python_,
                  "-m",
                  "ostro_ray.step",
                  "--address",
                  options_.address,
                  "--cpus",
                  std::to_string(options_.cpus),
                  "--program",
                  program_,
                  "--task",
                  files.task,
                  "--parent",
                  std::to_string(::getpid())};
    if (!options_.resources.empty()) call.words.insert(call.words.end(), {"--resources", options_.resources});
    std::optional<int> status;
    call.status = &status;
    bool told = false;
    call.stop = [&] {
      if (!stop() || told) return false;
      if (!saves) return true;
      told = io::write_file_atomically(fs_, files.stop, "").ok();
      return false;
    };
    const auto said = run_program(call);
    if (said.ok() && status == kProcessEnded) return AttemptEnd{How::kEnded, one_line(*said)};
    if (status == kPlaceLost) return AttemptEnd{How::kTaken, words_of(said.error().message())};
    if (stop()) return AttemptEnd{How::kCancelled, "was no longer wanted"};
    if (!status) return AttemptEnd{How::kTaken, one_line(said.error().message())};
    return io_error("--place ray: " + words_of(said.error().message()));
  }

 private:
  static std::string one_line(std::string text) {
    for (char& c : text)
      if (c == '\n') c = ' ';
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }
  // What the program said, without the words of run_program() about it.
  static std::string words_of(const std::string& message) {
    const size_t at = message.find(": ");
    std::string said = one_line(at == std::string::npos ? message : message.substr(at + 2));
    return said.starts_with("error: ") ? said.substr(std::string_view("error: ").size()) : said;
  }

  io::FileSystem& fs_;
  RayOptions options_;
  std::string python_, program_;
};

}  // namespace

Result<std::unique_ptr<Cluster>> ray_tasks(io::FileSystem& fs, const RayOptions& options) {
  RETURN_IF_ERROR(cluster::check_ray_resources("--resources", options.resources, "{\"GPU\": 1}"));
  ASSIGN_OR_RETURN(std::string python, cluster::ray_python("ostro lab run --place ray"));
  ASSIGN_OR_RETURN(std::string program, own_path());
  return std::unique_ptr<Cluster>(
      std::make_unique<RayCluster>(fs, options, std::move(python), std::move(program)));
}

}  // namespace ostro::lab
