# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sphinx configuration: 'make html' renders these pages to build/html.

The ABI header has comments in the kernel's own format. The kernel's scripts/kernel-doc, which is in the headers of
every kernel, turns them into reStructuredText; the first directive below puts that into a page. The library's headers
are read by Doxygen, and put into pages by Breathe, header by header, with the second.
"""

import os
import re
import subprocess
import xml.etree.ElementTree

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
extensions = ["breathe"]
breathe_default_project = "dapx"
breathe_show_include = False
manpages_url = "man/{page}.{section}.html"
# Two dashes are options of programs.
smartquotes = False
nitpicky = True
# Types of the C library and of the kernel's headers have no page here, nor has what is inside of the library.
nitpick_ignore_regex = [
    (r"c:.*", r"(__\w+|char|struct sockaddr\w*|sockaddr\w*)"),
    (r"cpp:.*", r"(dapx|::\w+|detail(::\w+)?|Clock::time_point|Deadline::max|Flags)"),
]


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


class Headers(Directive):
    """.. headers:: evd.hpp ...: all that these headers of the library have for a program: classes, then functions."""

    required_arguments = 1
    final_argument_whitespace = True
    used = set()

    def run(self):
        folder = self.state.document.settings.env.config.breathe_projects["dapx"]
        text = []
        for header in self.arguments[0].split():
            directives_of_it = list(in_header(folder, header))
            if not directives_of_it:
                raise self.error("%s has nothing for a program" % header)
            text += directives_of_it
            Headers.used.add("dapx/" + header)
        node = nodes.Element()
        node.document = self.state.document
        self.state.nested_parse(StringList("\n".join(text).splitlines(), header), 0, node)
        return node.children


def compounds(folder):
    """What is in namespace dapx: (element, file) of each class, and of each function, enum, type and variable."""
    namespace = xml.etree.ElementTree.parse(os.path.join(folder, "namespacedapx.xml")).find("compounddef")
    for inner in namespace.iterfind("innerclass"):
        element = xml.etree.ElementTree.parse(os.path.join(folder, inner.get("refid") + ".xml")).find("compounddef")
        yield element, element.find("location").get("file")
    for element in namespace.iterfind("sectiondef/memberdef"):
        yield element, element.find("location").get("file")


def in_header(folder, header):
    """Breathe's directives for it."""
    for element, file in compounds(folder):
        kind = element.get("kind")
        name = element.findtext("compoundname") or "dapx::" + element.findtext("name")
        if file != "dapx/" + header or not has_comment(element):
            continue
        if kind == "function":
            name += re.sub(r"\s*noexcept$", "", element.findtext("argsstring"))
        # A nested one is a member of the other.
        if name.count("::") == 1 or kind not in ("class", "struct"):
            yield ".. doxygen%s:: %s\n%s\n" % (kind, name, "   :members:\n   :undoc-members:\n" if kind in ("class", "struct") else "")


def has_comment(element):
    return any("".join(part.itertext()).strip() for part in element.iterfind("*") if part.tag.endswith("description"))


def check_headers(app, _env):
    """Fails if a header of the library is on no page."""
    folder = app.config.breathe_projects["dapx"]
    for file in sorted({file for element, file in compounds(folder) if has_comment(element)} - Headers.used):
        sphinx.util.logging.getLogger(__name__).warning("%s is on no page of Documentation/library", file)


def setup(app):
    app.connect("env-check-consistency", check_headers)
    app.add_directive("headers", Headers)
    app.add_config_value("kernel_doc", "", "env")
    app.add_directive("kernel-doc", KernelDoc)
    return {"parallel_read_safe": True}
