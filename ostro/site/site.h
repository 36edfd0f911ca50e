// write_site: writes pages about a lab, finished or not, that open from a folder and ask for nothing outside
// of it: the question with all steps, the runs beside each other, each run, two runs compared, the data, the
// hypotheses, and the report of a finished lab.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/drive/live_lab.h"
#include "ostro/paper/paper.h"

namespace ostro::site {

struct SiteRequest {
  // What runs now: of pages that a server gives out, which follow the lab, and ask for the batch of any step.
  // It must outlive the call.
  const lab::LiveLab* live = nullptr;
  // Sessions, seconds and what they cost, too, which are other ones wherever the lab was done.
  bool measured = false;
  // The beginnings of texts under licences that the plan marks; false: no text, whatever the plan says.
  bool texts = true;
  // Folders of boards that have a page, too.
  std::vector<std::string> boards = {};
  // The report of this state, if it was made already (without files for LaTeX).
  std::optional<paper::Paper> report = {};
};

// A page of batches whose other steps can be asked for.
struct AskedBatches {
  std::string run, key;  // one whose batches it has; BatchSet::key
  int64_t first = 0, last = 0;
};

struct Site {
  int64_t files = 0;
  std::string missing;  // why the paper is not there in its PDF; empty: it is, or there is none
  std::map<std::string, AskedBatches> batches = {};  // by the page's name, "batches-1"
};

// Writes the pages into the folder `out`, index.html first. What an earlier site has written there
// (site_folder.h) and this one does not have is removed; other files stay. All texts are
// escaped. The same state gives the same bytes, whatever threads, locale and folder. Errors: those of reading
// outputs and boards and of writing, and for a finished lab those of paper::shown_report.
Result<Site> write_site(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                        const SiteRequest& request, const std::string& out);

// Writes one page of a lab that goes on, with its style sheet and script: what runs, and all steps.
Status write_live_page(const Context& context, const lab::Plan& plan, const lab::LiveLab& lab,
                       const std::string& out);

// The file of data "data/batches-1-KEY-step-7.js" of a site that was written with `live`: the sequences of
// one step and their documents. Nothing for another name, a step that the runs of that page do not have, and
// the key of a page that an earlier site had under this name. Nothing is opened for these.
Result<std::optional<std::string>> batch_step_script(const Context& context, const lab::Plan& plan,
                                                     const lab::LabState& state, const Site& site, bool texts,
                                                     const std::string& name);

}  // namespace ostro::site
