#include "ostro/train/step/run_files.h"

#include <fmt/core.h>

#include "ostro/base/log.h"
#include "ostro/checkpoint/scratch.h"
#include "ostro/io/files/local_file_system.h"

namespace ostro::train {

std::shared_ptr<io::FileSystem> scratch_files(io::FileSystem& fs, const TrainConfig& config) {
  const auto& scratch = config.trainer.scratch_dir;
  if (!scratch) return nullptr;
  const std::string directory = run_directory(config);
  if (!fs.is_object_store(directory)) {
    log_info(fmt::format(
        "trainer.scratch_dir: {} is not used: {} is on a disk, where checkpoints are read as they lie",
        *scratch, directory));
    return nullptr;
  }
  return std::make_shared<checkpoint::ScratchFileSystem>(fs, io::local_file_system(), *scratch, directory);
}

}  // namespace ostro::train
