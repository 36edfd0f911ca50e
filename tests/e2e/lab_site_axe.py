#!/usr/bin/env python3
"""The pages of `ostro lab site` under axe-core, the checker of accessibility, in a browser without a window: every kind of page,
opened from disk and after its controls were used, in light and dark. Nothing serious may be found.

axe-core comes from npm, so this is no test of the suite, which asks nobody but this machine. Without npm or chromium it says that it
tried nothing, and exits with 77.

    lab_site_axe.py --ostro BINARY [--axe axe.min.js] [--log FILE]
"""
import argparse
import pathlib
import sys
import tempfile

import browser
from lab_live_test import LiveLab
from lab_site_test import SiteLab, Tab
from program import check
from serve_load import Log
from serve_page_axe import CONTROL, axe_source, violations

# A page, a script that uses it, and when it is done.
PAGES = (("index.html", "0", "true"),
         ("runs.html", "document.querySelector('#csv').click()", "document.querySelector('#csvtext')"),
         ("runs.html#group=rate&filter=cool&equal=1", "0", "document.querySelector('tr.group')"),
         ("run-1.html#log=1&smooth=0.5", "document.querySelector('#check').click()", "document.querySelector('#checked').className && document.querySelector('svg.live')"),
         ("diff.html#a=run-1&b=run-3", "0", "document.querySelector('svg.live')"),
         ("data.html", "0", "true"),
         ("batches-1.html#step=3&document=0&find=jsonl", "0", "document.querySelector('#document h3') && document.querySelector('#sequences h3')"),
         ("hypotheses.html", "0", "true"))
# Of another lab, with a scaling plan and a board.
OTHERS = (("index.html", "0", "true"), ("scaling.html", "0", "true"), ("boards.html", "0", "true"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--axe", type=pathlib.Path)
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    log = Log(args.log, "The pages of a lab under axe-core")
    with tempfile.TemporaryDirectory() as name:
        folder, bad = pathlib.Path(name), []
        axe = axe_source(args.axe, folder, log)
        if axe is None or browser.find() is None:
            print("NOT TRIED: axe-core comes by npm, and the pages are opened by chromium; one of them is missing here")
            sys.exit(77)
        site = SiteLab(args.ostro, folder / "lab").site("site", words=("--measured",))
        other = LiveLab(args.ostro, folder / "other")
        other.finish()
        sites = ((site, PAGES), (other.site("--board", other.add_board()), OTHERS))
        for dark in (False, True):
            for place, pages in sites:
                tab = Tab(place, dark=dark)
                for page, use, done in pages:
                    tab.open(page)
                    tab.run(f"(() => {{ {use}; }})()")
                    check(tab.until(done), f"{page}: is not ready")
                    tab.run(f"{axe}; 0")
                    bad += violations(tab, f"{'dark' if dark else 'light'}, {place.parent.name}, {page}", log)
                tab.run(f"(() => {{ {CONTROL}; }})()")
                check(violations(tab, "the control, a button without a name", log), "axe-core does not find the control")
                tab.tab.close()  # axe-core itself asks for the style sheet by other means, which the pages refuse
        log.say(f"{len(bad)} serious or critical findings")
    log.write()
    check(not bad, f"axe-core finds {bad}")


if __name__ == "__main__":
    main()
