// LabFacts: what the pages of a lab are made of: plan, states, record, and what is known of its runs. A value
// that refers to the plan, the states and the record.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/experiment/journal/journal.h"
#include "ostro/experiment/tables/database.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/page/facts/facts.h"

namespace ostro::site {

// A run that is done.
struct RunFacts {
  std::string name;      // of its step
  std::string id;        // "run-1": its page is run-1.html, its chain data/run-1.js
  std::string batches;   // "batches-1": the page of its batches; empty: none
  std::string verified;  // what was computed again, for people; empty: nothing that the journal knows of
  std::optional<double> flops = {};         // of its training, counted from its programs; nothing: not known
  std::optional<page::Facts> samples = {};  // nothing: there are none, or their texts may not be shown
};

// A text as HTML that stands within a line of other text: marks of direction in it turn nothing else.
std::string isolated(const std::string& text);

struct LabFacts {
  const lab::Plan& plan;
  const lab::LabState& state;
  const lab::Database& record;
  bool measured = false;  // pages have clocks, too
  std::vector<RunFacts> runs;
  bool has_other_pages = true;  // false: the first page stands alone

  // Null when the step has no page.
  const RunFacts* find(const std::string& step) const;
  // The name of a step as HTML, a link where it has a page.
  std::string step_html(const std::string& name) const;
  // A text in which paths begin in the plan's folder, also those that were absolute, so that no place of this
  // machine is in a page.
  std::string without_folder(const std::string& text) const;
  // The second column of a SELECT by its first one, both as texts; of several rows of one name the last, so a
  // SELECT that can have them must order them. Errors: as Database::select.
  Result<std::map<std::string, std::string>> by_name(const std::string& sql) const;
};

// The facts of all runs that are done, without `batches`.
LabFacts lab_facts(const lab::Plan& plan, const lab::LabState& state, const lab::Database& record,
                   const lab::Journal& journal, bool measured);

}  // namespace ostro::site
