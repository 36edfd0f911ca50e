#include "ostro/experiment/plan/evaluation_files.h"

#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {

Result<std::vector<data::SourceFile>> evaluation_files(io::FileSystem& fs, const Plan& plan,
                                                       const Step& step) {
  std::vector<std::string> places;
  for (const config::Node& file : step.parameters.find("evaluation")->items)
    places.push_back(io::join_path(plan.folder, file.text));
  if (places.empty()) return std::vector<data::SourceFile>{};
  ASSIGN_OR_RETURN(const data::FoundSources found,
                   data::find_sources(fs, {places, {}}, {.train = "evaluation"}));
  return found.all();
}

Result<std::map<std::string, std::string>> evaluation_hashes(io::FileSystem& fs, const Plan& plan,
                                                             const Step& step) {
  std::map<std::string, std::string> out;
  ASSIGN_OR_RETURN(const std::vector<data::SourceFile> files, evaluation_files(fs, plan, step));
  for (const data::SourceFile& file : files) {
    ASSIGN_OR_RETURN(out[plan.relative(file.path)], io::file_sha256(fs, file.path));
  }
  return out;
}

}  // namespace ostro::lab
