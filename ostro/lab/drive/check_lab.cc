#include "ostro/lab/drive/check_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/registry/check.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/decide.h"
#include "ostro/lab/drive/registering.h"

namespace ostro::lab {
namespace {

std::string counted(size_t number, const char* one) {
  return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

class LabChecker {
 public:
  LabChecker(const Context& context, const Plan& plan, bool every_byte)
      : context_(context), plan_(plan), every_byte_(every_byte), directory_(plan.directory()) {}

  Result<LabCheck> all() {
    ASSIGN_OR_RETURN(const bool exists, context_.fs.exists(io::join_path(directory_, kJournalFile)));
    if (!exists)
      return not_found(fmt::format("{} has no {}: nothing was done yet; `ostro lab run {}` comes first",
                                   directory_, kJournalFile, plan_.file));
    const auto journal = Journal::open(context_.fs, directory_);
    if (!journal.ok()) {
      if (journal.error().code() != ErrorCode::kCorrupt) return journal.error();
      add_fault(journal.error().message());
      out_.open.push_back("registry, sources and outputs: the journal does not hold");
      return std::move(out_);
    }
    out_.holds.push_back(fmt::format("journal: {}, head {}", counted(journal->lines().size(), "line"),
                                     short_hash(journal->head())));
    RETURN_IF_ERROR(check_plans(*journal));
    ASSIGN_OR_RETURN(const bool registry_holds, check_registry(*journal));
    if (registry_holds)
      RETURN_IF_ERROR(check_sources());
    else
      out_.open.push_back("sources: the registry does not hold");
    RETURN_IF_ERROR(check_outputs(*journal));
    return std::move(out_);
  }

 private:
  void add_fault(const std::string& fault) {
    if (std::find(out_.faults.begin(), out_.faults.end(), fault) == out_.faults.end())
      out_.faults.push_back(fault);
  }

  // The expanded plans that the journal names.
  Status check_plans(const Journal& journal) {
    size_t held = 0;
    for (const HashedLine& line : journal.lines()) {
      const auto entry = nlohmann::json::parse(line.entry);
      if (entry["kind"] != "plan") continue;
      const std::string hash = entry["sha256"];
      const std::string path = frozen_path(directory_, hash);
      const auto text = context_.fs.read_file(path);
      if (!text.ok() && text.error().code() == ErrorCode::kNotFound)
        add_fault(fmt::format("{}: is gone; the journal names it", path));
      else if (!text.ok())
        return text.error();
      else if (const std::string now = sha256_hex(*text); now != hash)
        add_fault(fmt::format("{}: was changed: its SHA-256 is {}", path, now));
      else
        ++held;
    }
    out_.holds.push_back(fmt::format("plans: {}", counted(held, "expanded plan")));
    return {};
  }

  Result<bool> check_registry(const Journal& journal) {
    ASSIGN_OR_RETURN(const auto faults, registry_faults(context_.fs, directory_, journal));
    for (const std::string& fault : faults) add_fault(fault);
    if (!faults.empty()) return false;
    ASSIGN_OR_RETURN(const Registry registry, Registry::open(context_.fs, directory_));
    if (registry.registration() == nullptr) {
      if (!plan_.hypotheses.empty()) out_.open.push_back("registry: the plan is not registered");
      return true;
    }
    const auto found = check_registration(context_, plan_, "");
    if (!found.ok()) {  // a source cannot be read as it was
      add_fault(found.error().message());
      return true;
    }
    for (const std::string& fault : found->faults) add_fault(fault);
    if (found->faults.empty())
      out_.holds.push_back(fmt::format("registry: {}, head {}", counted(registry.entries().size(), "line"),
                                       short_hash(registry.head())));
    return true;
  }

  Status check_sources() {
    const Services services;
    auto opened = open_lab(context_, services, plan_, /*works=*/false, every_byte_);
    if (!opened.ok()) {
      if (opened.error().code() != ErrorCode::kCorrupt) return opened.error();
      add_fault(opened.error().message());
      return {};
    }
    OpenLab& lab = *opened;
    size_t files = 0;
    for (const Step& step : plan_.steps) {
      if (step.kind->name != "source") continue;
      StepState state{.step = &step};
      Made made;
      if (!lab.pins.has(pin_name(plan_, step.name))) {
        out_.open.push_back(fmt::format("source {}: is not pinned in {} yet", step.name, kPinsFile));
        continue;
      }
      if (const Status held = decide_source(lab, state, made); !held.ok())
        add_fault(fmt::format("source {}: {}", step.name, held.error().message()));
      else
        files += made.files.size();
    }
    out_.holds.push_back(fmt::format("sources: {}, as pinned in {}", counted(files, "file"), kPinsFile));
    return {};
  }

  // What is said of an output of which the list is there without the folder, or the other way around.
  Result<std::string> half_of(const std::string& fingerprint) {
    const std::string folder = output_folder(directory_, fingerprint),
                      list = manifest_path(directory_, fingerprint);
    ASSIGN_OR_RETURN(const bool has_folder, context_.fs.exists(folder));
    ASSIGN_OR_RETURN(const bool has_list, context_.fs.exists(list));
    if (has_folder == has_list) return std::string();
    return fmt::format(
        "{}: is gone, and {} is there, so nothing says whether the output is what it was. Put back a copy, "
        "or remove that too; `ostro lab run` does the step again",
        has_list ? folder : list, has_list ? list : folder);
  }

  // Of each fingerprint its last entry.
  Status check_outputs(const Journal& journal) {
    FileHashes hashes(context_.fs, io::join_path(directory_, "hashes.json"), every_byte_);
    std::map<std::string, const DoneEntry*> last;
    for (const DoneEntry& entry : journal.done())
      if (!entry.manifest.empty()) last[entry.fingerprint] = &entry;
    size_t held = 0, gone = 0;
    for (const DoneEntry& entry : journal.done()) {
      const auto found = last.find(entry.fingerprint);
      if (found == last.end() || found->second != &entry) continue;
      if (journal.has_conflict(entry.fingerprint))
        add_fault(fmt::format("{}: fingerprint {} gave two different outputs (journal, \"conflict\")",
                              entry.step, short_hash(entry.fingerprint)));
      const auto there = check_output(context_.fs, directory_, entry.fingerprint, entry.manifest, hashes);
      std::string half;
      if (there.ok() && !*there) {
        ASSIGN_OR_RETURN(half, half_of(entry.fingerprint));
      }
      if (!there.ok())
        add_fault(fmt::format("{}: {}", entry.step, there.error().message()));
      else if (!half.empty())
        add_fault(fmt::format("{}: {}", entry.step, half));
      else
        ++(*there ? held : gone);
    }
    out_.holds.push_back(fmt::format("outputs: {}, {}", counted(held, "output"),
                                     every_byte_ ? "every byte of each file in its list"
                                                 : "files whose size or time has changed, and all lists"));
    if (gone > 0)
      out_.open.push_back(
          fmt::format("{}: not there any more; the journal has their hashes", counted(gone, "output")));
    return {};
  }

  const Context& context_;
  const Plan& plan_;
  const bool every_byte_;
  const std::string directory_;
  LabCheck out_;
};

}  // namespace

Result<LabCheck> check_lab(const Context& context, const Plan& plan, bool every_byte) {
  return LabChecker(context, plan, every_byte).all();
}

}  // namespace ostro::lab
