// Shell: what all pages of a site have in common: head, links to the others, style sheet and script. A value.
//
// Pages load style.css and site.js beside them and nothing else; the script loads data/*.js when a reader
// asks for what is in them. Without scripts all texts, tables and figures are there.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ostro::site {

struct Shell {
  std::string lab;                                         // its name
  std::vector<std::pair<std::string, std::string>> links;  // file and name of each page that is linked to

  // A page that a server gives out of a lab that is not done: the script asks for the next one every few
  // seconds and puts it in its place; without scripts the browser loads it again.
  bool live = false;

  // A whole page; `file` is its own name. `title` is escaped here, `body` is HTML.
  std::string page(const std::string& file, const std::string& title, const std::string& body) const;
};

// A mark that says of numbers of which class they are, or what was checked: `kind` is a class of style.css.
std::string badge(const std::string& kind, const std::string& text, const std::string& meaning);

// The files style.css and site.js.
std::string style_sheet();
std::string site_script();

// A file of data for site.js: a classic script that hands over `json` under a name. The bytes are ASCII.
std::string data_script(const std::string& name, const std::string& json);

}  // namespace ostro::site
