#include "ostro/paper/prelude.h"

#include <fmt/format.h>

namespace ostro::paper {
namespace {

constexpr const char* kHead =
    R"css(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"><style>
body{max-width:46rem;margin:0 auto;padding:2rem 1.2rem;background:#fcfcfb;color:#1d2127;font:16px/1.5 system-ui,sans-serif}
h2,h3,p,code{overflow-wrap:anywhere}a{color:#2f6db5}figure{margin:1.5rem 0}figcaption{font-size:.92rem;color:#626a75}
table{border-collapse:collapse;font-size:.92rem}td,th{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid #dfe2e6}
img,svg{max-width:100%;height:auto}code{font-size:.85em}
</style>)css";

}  // namespace

const char* const kPrelude =
    R"typ(// The numbers of a report for its paper. `ostro lab report` wrote this file and values.json, which it reads.
#let _all = json("values.json")

#let _get(kind, what, name) = {
  let all = _all.at(kind)
  if name not in all {
    let names = all.keys().map(n => "\"" + n + "\"").join(", ")
    panic("the plan has no " + what + " \"" + str(name) + "\"; it has " + if names == none { "none" } else { names })
  }
  all.at(name)
}

// The answer to a query; with `digits`, 0 to 9, rounded to so many behind the point.
#let num(name, digits: none) = {
  let entry = _get("values", "query", name)
  let text = entry.value
  if digits != none {
    if "rounded" not in entry {
      panic("num(\"" + name + "\"): " + text + " is no number with a fraction; leave out the digits")
    }
    if type(digits) != int or digits < 0 or digits >= entry.rounded.len() {
      panic("num(\"" + name + "\"): digits is " + repr(digits) + "; use 0 to " + str(entry.rounded.len() - 1))
    }
    text = entry.rounded.at(digits)
  }
  link(label("ostro-values-" + name), text)
}

// What came out of a hypothesis: supported, refuted, neither, open or withdrawn.
#let verdict(name) = link(label("ostro-hypotheses-" + name), _get("hypotheses", "hypothesis", name).verdict)

// The caption, and the class of what is shown, which leads to its entry in the appendix.
#let _caption(kind, name, caption) = {
  if caption != none { caption + [ ] }
  text(size: 0.85em)[(#link(label("ostro-" + kind + "-" + name), _all.at(kind).at(name).class))]
}

// A figure; references to it are @fig:NAME.
#let fig(name, caption: none, width: 100%) = {
  let _ = _get("figures", "figure", name)
  [#figure(
    image(name + ".svg", width: width, alt: name),
    kind: image,
    caption: _caption("figures", name, caption),
  ) #label("fig:" + name)]
}

// A table; references to it are @tab:NAME.
#let tab(name, caption: none) = {
  let entry = _get("tables", "table", name)
  [#figure(
    table(
      columns: entry.columns.len(),
      align: entry.numeric.map(n => if n { right } else { left }),
      stroke: none,
      table.hline(),
      table.header(..entry.columns.map(strong)),
      table.hline(stroke: 0.5pt),
      ..entry.rows.flatten(),
      table.hline(),
    ),
    kind: table,
    caption: _caption("tables", name, caption),
  ) #label("tab:" + name)]
}

#let _constants(entry) = {
  let said(key, before) = if key in entry [#before #entry.at(key).map(raw).join([, ]). ]
  said("constants", [Typed into the query, and a part of the answer:])
  said("choices", [Typed into the query to choose:])
  said("units", [Units:])
}

#let _entries(kind, title, shown, again) = {
  let all = _all.at(kind)
  if all.len() > 0 { heading(level: 2, title) }
  for (name, entry) in all {
    [#heading(level: 3, outlined: false, bookmarked: false, name) #label("ostro-" + kind + "-" + name)]
    set par(justify: false)
    [
      #shown(entry), class *#entry.class*. #_constants(entry) #if entry.reads.len() > 0 [Reads #entry.reads.map(raw).join([, ]).] else [Reads no table.] \
      #raw(entry.query, lang: "sql") \
      Again: #raw("ostro lab report " + _all.lab.file + again(name))
    ]
  }
}

// Where each number comes from. It stands behind the paper by itself.
#let appendix() = {
  set heading(numbering: none)
  pagebreak(weak: true)
  set text(size: 9pt)
  heading(level: 1)[Where the numbers come from]
  [
    This paper was made by #raw("ostro lab report " + _all.lab.file). Each number in it is the answer to a query over the
    record of the lab, the file #raw("record.sqlite"), and has the last of these classes that anything has of which it was computed.
    *Replayed*: recorded, and all steps that it stands on were done again with equal bits. *Recorded*: in a hash chain, or computed
    from what is. *Declared*: a person or any program said so, as the constants of a query do that are a part of its answer.
    *Measured*: a clock or a machine gave it; it is another number each time. #raw("ostro lab run " + _all.lab.file) makes the record again from its sources, and
    #raw("ostro lab report " + _all.lab.file + " --check") compares the paper with it. The hash of the lab is
    #raw(_all.lab.hash).
  ]
  _entries("values", [Values], e => raw(e.value), n => " --value " + n)
  _entries("hypotheses", [Hypotheses], e => [Verdict #raw(e.verdict)], n => "")
  _entries("tables", [Tables], e => [Rows: #e.rows.len()], n => "")
  _entries("figures", [Figures], e => [Points: #e.rows.len()], n => "")
  if _all.inputs.len() > 0 {
    heading(level: 2)[Inputs]
    [SHA-256 of the rows of each table that a query reads.]
    table(columns: 2, stroke: none, ..for (name, hash) in _all.inputs { (raw(name), raw(hash)) })
  }
  if _all.replays.len() > 0 {
    heading(level: 2)[Replays]
    [What was done again with equal bits, and by whom.]
    table(columns: 3, stroke: none, ..for (step, verified, who) in _all.replays { (raw(step), verified, who) })
  }
  heading(level: 2)[Typed by hand]
  if _all.typed.len() == 0 [No number of the text or of a query was typed by hand.] else [
    Numbers that stand in the text itself, or in queries, and are checked by nothing:
    #list(.._all.typed.map(raw))
  ]
}
)typ";

std::string main_document(const std::string& paper) {
  return fmt::format(
      "#import \"ostro.typ\": appendix\n#show link: set text(fill: rgb(\"#2f6db5\"))\n#include "
      "\"{}\"\n#appendix()\n",
      paper);
}

std::string figure_document(const std::string& svg) {
  return fmt::format("#set page(width: auto, height: auto, margin: 0pt)\n#image(\"{}\")\n", svg);
}

std::string styled_html(std::string html) {
  if (const size_t head = html.find("</head>"); head != std::string::npos) html.insert(head, kHead);
  return html;
}

}  // namespace ostro::paper
