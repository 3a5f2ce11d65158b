# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sphinx configuration: 'make html' renders these pages to build/html.

The ABI header has comments in the kernel's own format. The kernel's scripts/kernel-doc, which is in the headers of
every kernel, turns them into reStructuredText; the directive below puts that into a page.
"""

import os
import re
import subprocess

import sphinx
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from sphinx.util.nodes import nested_parse_with_titles

HERE = os.path.dirname(os.path.abspath(__file__))

with open(os.path.join(HERE, "..", "CMakeLists.txt"), encoding="utf-8") as file:
    version = release = re.search(r"^project\(dapx VERSION ([\d.]+)", file.read(), re.M).group(1)
project = "dapx"
html_theme = "alabaster"
html_theme_options = {"page_width": "75em"}
html_show_copyright = False
html_copy_source = False
# The manual pages are beside these, rendered by mandoc.
manpages_url = "man/{page}.{section}.html"
# Two dashes are options of programs.
smartquotes = False
nitpicky = True
# Types of the C library and of the kernel's headers have no page here.
nitpick_ignore_regex = [(r"c:.*", r"(__\w+|char|struct sockaddr\w*|sockaddr\w*)")]


class KernelDoc(Directive):
    """.. kernel-doc:: FILE, with ':doc: TITLE' for a DOC section, or ':identifiers:' for all structs and enums."""

    required_arguments = 1
    option_spec = {"doc": directives.unchanged_required, "identifiers": directives.flag}

    def run(self):
        env = self.state.document.settings.env
        path = os.path.normpath(os.path.join(os.path.dirname(env.doc2path(env.docname)), self.arguments[0]))
        env.note_dependency(path)
        script = env.config.kernel_doc
        if not script:
            raise self.error("'-D kernel_doc=FOLDER/scripts/kernel-doc' is missing: run this by 'make html'")
        command = [script, "-rst", "-Wall", "-Werror", "-sphinx-version", sphinx.__version__]
        if "doc" in self.options:
            command += ["-function", self.options["doc"]]
        else:
            command += ["-no-doc-sections"]
        done = subprocess.run(command + [path], capture_output=True, text=True, check=False)
        if done.returncode != 0 or done.stderr or not done.stdout.strip():
            raise self.error("%s says of %s: %s" % (script, path, done.stderr.strip() or "nothing"))
        text = done.stdout
        if "doc" in self.options:
            # The page has a heading of its own.
            text = re.sub(r"\A.*?^\*\*[^\n]*\*\*$", "", text, count=1, flags=re.S | re.M)
        node = nodes.Element()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(text.splitlines(), path), node)
        return node.children


def setup(app):
    app.add_config_value("kernel_doc", "", "env")
    app.add_directive("kernel-doc", KernelDoc)
    return {"parallel_read_safe": True}
