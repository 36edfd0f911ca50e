#include "ostro/publication/publish/publish_lab.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ostro/base/machine.h"
#include "ostro/base/sha256.h"
#include "ostro/bundle/parts/file_sums.h"
#include "ostro/bundle/parts/write_manifest.h"
#include "ostro/bundle/publish/publish.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/experiment/registry/registry.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/steps/halving.h"
#include "ostro/publication/check/check_publication.h"
#include "ostro/publication/others/others.h"
#include "ostro/publication/publish/copy_lab.h"
#include "ostro/publication/publish/front_page.h"
#include "ostro/site/site.h"

namespace ostro::publication {
namespace {

// A finished lab, read before anything is written.
struct Material {
  lab::Plan plan;
  lab::LabState state;
  std::optional<bundle::SigningKey> key;
  int threads = 1;
};

Result<Material> open_material(const Context& context, const PublishRequest& request) {
  Material out;
  if (request.checkpoints < 0)
    return invalid_argument(fmt::format("--checkpoints {}: use 0 or more", request.checkpoints));
  if (request.records_only && request.checkpoints > 0)
    return invalid_argument("--records_only publishes no states; leave out it or --checkpoints");
  if (!request.sign.empty()) {
    ASSIGN_OR_RETURN(out.key, bundle::SigningKey::read(context.fs, request.sign));
  }
  RETURN_IF_ERROR(convert::check_is_new(context.fs, request.out));
  ASSIGN_OR_RETURN(out.threads, default_threads());
  ASSIGN_OR_RETURN(out.plan, lab::read_plan(context.fs, request.plan));
  ASSIGN_OR_RETURN(out.state, lab::finished_lab(context, out.plan, /*every_byte=*/true));
  return out;
}

// A step's name as a folder: "base[rate=0.001]" is base-rate-0.001. Two names that would be one get numbers.
std::string folder_of(const std::string& step, std::set<std::string>& taken) {
  std::string out;
  for (const char c : step) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (plain)
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  std::string name = out;
  for (int number = 2; !taken.insert(name).second; ++number) name = fmt::format("{}-{}", out, number);
  return io::join_path(kBundlesFolder, name);
}

// The store that a run was trained on; empty where it is not one alone: the run's record names its stores.
std::string store_of(const Material& material, const lab::Step& step) {
  if (const auto data = step.inputs.find("data"); data != step.inputs.end())
    return material.state.made.at(data->second).folder;
  const auto of = step.inputs.find("of");
  return of == step.inputs.end() ? "" : store_of(material, *material.plan.find(of->second));
}

// Whether a step is a run that went to its end. One that a rung has stopped has its record among the outputs.
Result<bool> is_whole_run(io::FileSystem& fs, const Material& material, const lab::Step& step) {
  if (!step.kind->makes_run() || lab::is_part_of_halving(material.plan, step)) return false;
  ASSIGN_OR_RETURN(const auto stopped, lab::stopped_at(fs, material.plan, material.state.made, step));
  return !stopped;
}

Result<std::map<std::string, PublishedStep>> published_steps(io::FileSystem& fs, const Material& material,
                                                             bool bundles) {
  std::map<std::string, PublishedStep> out;
  std::set<std::string> taken;
  for (const lab::StepState& s : material.state.kept()) {
    PublishedStep& step = out[s.step->name];
    step = {s.step->kind->name, s.fingerprint, s.content};
    ASSIGN_OR_RETURN(const bool is_whole, is_whole_run(fs, material, *s.step));
    if (is_whole && bundles) step.bundle = folder_of(s.step->name, taken);
    if (step.kind != "source") continue;
    const lab::Made& made = material.state.made.at(s.step->name);
    step.licence = s.step->parameters.find("licence")->text;
    for (size_t i = 0; i < made.files.size(); ++i)
      step.sources.push_back(
          {material.plan.relative(made.files[i].path), made.pinned.at(i), made.files[i].size});
  }
  return out;
}

Status publish_bundles(const Context& context, const PublishRequest& request, const Material& material,
                       const PublicationManifest& manifest, const std::string& place,
                       std::vector<std::string>& remarks) {
  for (const lab::StepState& s : material.state.kept()) {
    const std::string& folder = manifest.steps.at(s.step->name).bundle;
    if (folder.empty()) continue;
    RETURN_IF_ERROR(context.fs.make_dirs(io::join_path(place, kBundlesFolder)));
    bundle::PublishRequest one;
    one.run = material.state.made.at(s.step->name).folder;
    one.out = io::join_path(place, folder);
    one.cache = store_of(material, *s.step);
    one.sign = request.sign;
    one.checkpoints = request.checkpoints;
    if (!request.licence.empty()) one.license = request.licence;
    one.version = request.version;
    auto published = bundle::publish(context, one);
    if (!published.ok()) return published.error().with_context(fmt::format("step {}", s.step->name));
    for (const std::string& remark : published->remarks)
      remarks.push_back(fmt::format("{}: {}", folder, remark));
  }
  return {};
}

Status write_publication(const Context& context, const PublishRequest& request, const Material& material,
                         const std::string& place, Published& out) {
  io::FileSystem& fs = context.fs;
  const lab::Plan& plan = material.plan;
  PublicationManifest& manifest = out.manifest;
  manifest.lab = plan.name, manifest.question = plan.question;
  manifest.plan = plan.relative(plan.file);
  manifest.lab_hash = material.state.hash();
  ASSIGN_OR_RETURN(const lab::Journal journal, lab::Journal::open(fs, plan.directory()));
  ASSIGN_OR_RETURN(const lab::Registry registry, lab::Registry::open(fs, plan.directory()));
  manifest.journal = journal.head(), manifest.registry = registry.head();
  ASSIGN_OR_RETURN(manifest.steps, published_steps(fs, material, !request.records_only));
  manifest.made_by = bundle::program_json(request.version);
  RETURN_IF_ERROR(copy_plan(fs, plan, place, out.remarks));
  RETURN_IF_ERROR(copy_lab(context, plan, material.state, place));
  // The texts of sources are not published, so pages have none either.
  ASSIGN_OR_RETURN(const site::Site site,
                   site::write_site(context, plan, material.state, {.measured = false, .texts = false},
                                    io::join_path(place, kSiteFolder)));
  if (!site.missing.empty()) out.remarks.push_back("the paper itself is not there: " + site.missing);
  RETURN_IF_ERROR(publish_bundles(context, request, material, manifest, place, out.remarks));
  RETURN_IF_ERROR(fs.write_file(io::join_path(place, kPageFile), front_page(manifest, plan)));
  ASSIGN_OR_RETURN(std::vector<std::string> files, bundle::files_below(fs, place));
  std::erase_if(files, [](const std::string& file) { return is_in_bundle(file); });
  for (auto& [path, sum] :
       bundle::hash_files(fs, place, files, material.threads, context.progress, "hashing files")) {
    ASSIGN_OR_RETURN(manifest.files[path], std::move(sum));
  }
  const auto others = texts_for_others(manifest, material.state, request.licence, material.key);
  for (const auto& [name, text] : others) {
    RETURN_IF_ERROR(fs.write_file(io::join_path(place, name), text));
    manifest.files[name] = {static_cast<int64_t>(text.size()), sha256_hex(text)};
  }
  RETURN_IF_ERROR(bundle::write_manifest(fs, place, {kManifestFile, manifest_text(manifest), manifest.files},
                                         material.key ? &*material.key : nullptr, request.time_request));
  return fs.sync_tree(place);
}

}  // namespace

Result<Published> publish_lab(const Context& context, const PublishRequest& request) {
  ASSIGN_OR_RETURN(const Material material, open_material(context, request));
  Published out;
  RETURN_IF_ERROR(convert::make_whole(
      context.fs, request.out,
      [&](const std::string& place) -> Status {
        RETURN_IF_ERROR(write_publication(context, request, material, place, out));
        ASSIGN_OR_RETURN(const bundle::BundleAudit audit, check_publication(context, place, {}));
        ASSIGN_OR_RETURN(const std::vector<std::string> found,
                         bundle::remarks_of(audit, "publication", place, io::clean_path(request.out)));
        out.remarks.insert(out.remarks.end(), found.begin(), found.end());
        return {};
      },
      ".publishing"));
  ASSIGN_OR_RETURN(out.size, bundle::size_below(context.fs, request.out));
  for (const auto& [name, step] : out.manifest.steps) out.bundles += step.bundle.empty() ? 0 : 1;
  if (material.key) out.key = material.key->public_key().fingerprint();
  return out;
}

}  // namespace ostro::publication
