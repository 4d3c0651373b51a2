#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a man page of the text that the program itself prints or reads.

  manual.py coracled VERSION daemon/main.cc                          from the text of --help
  manual.py coraclectl VERSION coraclectl.txt                        from what `coraclectl __manual` prints
  manual.py coracle-oci VERSION coracle-oci.txt                      from what `coracle-oci __manual` prints
  manual.py coracle-config VERSION config.h config.cc EXAMPLE.yaml   from the comments on the settings; every one has to have one

Prints the page. Its language is man(7).
"""
import os
import re
import sys

ASCII = {"…": "...", "→": "->", "–": "-", "—": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "≤": "<=", "≥": ">=", "×": "x"}


def roff(text):
    """Text as roff shows it unchanged."""
    for sign, instead in ASCII.items():
        text = text.replace(sign, instead)
    if not text.isascii():
        raise SystemExit(f"manual.py: no ASCII for a sign in: {text}")
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


def bold(text):
    return f"\\fB{roff(text)}\\fR"


def sentence(text):
    """A remark as a sentence of its own; a name or a value in front stays as it is."""
    value = r"[\w=…-]+"
    if re.match(r"[a-z]+(?:, |: | (?!=))", text) and not re.fullmatch(rf"{value}(?:, {value})*(?: or|,) {value}", text):
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", ":", "!", "?", "…")) else ".")


class Page:
    def __init__(self, name, section, about, version):
        self.lines = [f'.TH {roff(name)} {section} "" "Coracle {version}" "Coracle"', ".SH NAME", f"{roff(name)} \\- {roff(about)}"]

    def section(self, title):
        self.lines.append(f".SH {roff(title.upper())}")

    def part(self, title):
        self.lines.append(f'.SS "{roff(title)}"')

    def text(self, *paragraphs):
        for paragraph in paragraphs:
            self.lines += [".PP", roff(paragraph)]

    def item(self, head, text):
        """`head` is roff already."""
        self.lines += [".TP", head, roff(text) if text else "\\&"]

    def example(self, text):
        self.lines += [".PP", ".nf", ".RS 4"] + [roff(line) if line else "\\&" for line in text.splitlines()] + [".RE", ".fi"]

    def files(self, *names):
        self.section("files")
        for name in names:
            self.item(f"\\fI{roff(name)}\\fR", FILES[name])

    def see_also(self, *pages):
        self.section("see also")
        self.lines.append(", ".join(f"\\fB{roff(name)}\\fR({section})" for name, section in pages))

    def print(self):
        print("\n".join(self.lines))


FILES = {
    "/etc/coracle/config.yaml": "The settings: see coracle-config(5).",
    "/etc/coracle/admin.kubeconfig": "The administrator's key to the API, made on the first start.",
    "/etc/coracle/manifests/": "Static pods: files of one Pod each.",
    "/usr/lib/coracle/config.yaml": "The vendor's settings, over which those of the machine are laid.",
    "/var/lib/coracle/": "The store, certificates, images and volumes.",
    "/run/coracle/": "Sockets, and volumes in memory.",
    "/var/log/pods/": "The containers' logs.",
    "/run/coracle-oci/": "The state of containers, unless --root names another directory.",
    "/usr/share/doc/coracle/README.md": "The manual of the whole.",
}


def coracled(version, main):
    help_text = re.search(r'R"\((coracled: .*?)\)"', open(main, encoding="utf-8").read(), re.S)
    if not help_text:
        raise SystemExit(f"manual.py: {main} has no text of --help")
    head, *lines = help_text.group(1).splitlines()
    page = Page("coracled", 8, head.split(": ", 1)[1], version)
    page.section("synopsis")
    page.lines.append(f"{bold('coracled')} [\\fIOPTION\\fR]...")
    page.section("description")
    page.text("It serves the Kubernetes API, keeps its objects, and runs the pods of this machine. Pods do not need it to go on: it can be "
              "stopped, replaced and started while they run. Under systemd it is coracled.service; the pods stand in "
              "coracle-pods.service, and end when that is stopped.")
    page.section("options")
    for line in lines:
        option = re.fullmatch(r"  (--[a-z-]+)(?: ([A-Z]+))?  +(.*)", line)
        if option:
            name, value, about = option.groups()
            page.item(bold(name) + (f" \\fI{value}\\fR" if value else ""), sentence(about))
        elif line and not line.startswith("Usage: "):
            raise SystemExit(f"manual.py: {main}: this line of --help is no option: {line}")
    page.section("exit status")
    page.text("0 when it was asked to end, 1 after an error, 2 when the command line or the settings are wrong.")
    page.files("/etc/coracle/config.yaml", "/etc/coracle/admin.kubeconfig", "/etc/coracle/manifests/", "/var/lib/coracle/",
               "/run/coracle/", "/var/log/pods/", "/usr/share/doc/coracle/README.md")
    page.see_also(("coraclectl", 1), ("coracle-oci", 8), ("coracle-config", 5))
    page.print()


def read_commands(path):
    """Commands as dictionaries, the program itself first."""
    commands = []
    for line in open(path, encoding="utf-8").read().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "command":
            commands.append({"name": rest, "about": [], "alias": [], "argument": [], "flag": [], "footer": []})
        elif kind in ("about", "alias", "argument", "flag", "footer") and commands:
            commands[-1][kind].append(rest)
        else:
            raise SystemExit(f"manual.py: {path}: unknown line: {line}")
    if not commands:
        raise SystemExit(f"manual.py: {path} is empty")
    return commands


def flag_head(names):
    """"-o,--output=VALUE" as a person writes it."""
    names, _, value = names.partition("=") if "[=" not in names else names.partition("[=")
    shown = ", ".join(bold(name) for name in names.split(","))
    return shown + ("" if not value else "[=\\fIVALUE\\fR]" if value.endswith("]") else " \\fIVALUE\\fR")


def flag_items(page, flags):
    for flag in flags:
        names, _, about = flag.partition(" | ")
        page.item(flag_head(names), sentence(about))


def command_pages(page, commands):
    root, *below = commands
    page.section("synopsis")
    page.lines.append(f"{bold(root['name'])} \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...")
    page.section("description")
    page.text(*root["about"])
    page.text(f"{root['name']} COMMAND --help says what is here about a command.")
    page.section("options of all commands")
    flag_items(page, root["flag"])
    page.section("commands")
    for command in below:
        name = command["name"].split(" ", 1)[1]
        arguments = [argument.partition(" | ") for argument in command["argument"]]
        usage = " ".join([bold(name)] + [f"\\fI{roff(argument.upper())}\\fR" for argument, _, _ in arguments])
        page.part(name)
        page.lines += [".PP", usage]
        page.text(*(sentence(about) for about in command["about"]))
        if command["alias"]:
            page.text("Also: " + ", ".join(command["alias"]) + ".")
        for argument, _, about in arguments:
            page.item(f"\\fI{roff(argument.upper())}\\fR", sentence(about))
        flag_items(page, command["flag"])
        if command["footer"]:
            page.text(" ".join(command["footer"]))


def coraclectl(version, path):
    page = Page("coraclectl", 1, "controls the pods of a Coracle machine", version)
    command_pages(page, read_commands(path))
    page.section("exit status")
    page.text("0 when it is done, 1 when the server, the input or the command line is wrong. Of diff, 1 says that something differs, and 2 "
              "that something is wrong; exec ends with the status of the program that it ran.")
    page.section("environment")
    page.item(bold("KUBECONFIG"), "The kubeconfig file, unless --kubeconfig names one.")
    page.files("/etc/coracle/admin.kubeconfig")
    page.see_also(("coracled", 8), ("coracle-oci", 8), ("coracle-config", 5))
    page.print()


def coracle_oci(version, path):
    page = Page("coracle-oci", 8, "runs containers from OCI bundles", version)
    command_pages(page, read_commands(path))
    page.section("exit status")
    page.text("0 when it is done, 1 when it could not be; run and exec end with the status of the program that they ran.")
    page.files("/run/coracle-oci/")
    page.see_also(("coracled", 8), ("coraclectl", 1))
    page.print()


# ---- the settings ----

def constants_of(source):
    return dict(re.findall(r'\*\s?(k\w+) = "([^"]*)"', source))


def read_settings(header):
    """What config.h says: ("heading", text), ("text", text) and ("setting", name, default, text), in its order."""
    source = open(header, encoding="utf-8").read()
    constants = {}
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for included in re.findall(r'#include "([^"]*)"', source):
        constants |= constants_of(open(os.path.join(root, included), encoding="utf-8").read())
    constants |= constants_of(source)
    body = re.search(r"struct Config \{\n(.*?)\n\};", source, re.S)
    if not body:
        raise SystemExit(f"manual.py: {header} has no struct Config")
    found, block, block_leads, declaration, remark = [], [], False, "", None

    def end_declaration():
        nonlocal block, declaration, remark
        text = re.sub(r" Source: .*", "", " ".join(block))
        name, about = split_name(remark or "")
        if not name:
            name, about = split_name(text)
        elif text:
            found.append(("heading" if block_leads else "text", text))
        if name:
            found.append(("setting", name, *default_and_text(declaration, about, constants)))
        block, declaration, remark = [], "", None

    was_blank = False
    for line in body.group(1).splitlines() + [""]:
        comment = re.fullmatch(r"( *)// ?(.*)", line)
        if remark is not None and comment and len(comment.group(1)) > 2:
            remark += " " + comment.group(2).strip()
            continue
        if remark is not None or declaration.endswith(";"):
            end_declaration()
        if comment:
            if not block:
                block_leads = was_blank or not found
            block.append(comment.group(2).strip())
        elif line.strip():
            code, slashes, behind = line.partition("//")
            declaration = (declaration + " " + code.strip()).strip()
            if slashes:
                remark = behind.strip()
        elif block:
            raise SystemExit(f"manual.py: {header}: a comment in front of nothing: {block[0]}")
        was_blank = not line.strip()
    return found


def split_name(text):
    """"port: 0 picks a free one" → its two parts; without a setting's name in front, ("", text)."""
    name = re.fullmatch(r"([a-z]\w*)(?:: (.*))?", text, re.S)
    return (name.group(1), name.group(2) or "") if name else ("", text)


def default_and_text(declaration, about, constants):
    quoted = re.fullmatch(r'"([^"]*)"', about)
    if quoted:  # the program keeps it in another form
        return quoted.group(1), ""
    value = re.search(r" = (.*);$", declaration)
    if not value:
        return "", about
    value = value.group(1)
    name = value.split("::")[-1]
    return constants.get(name, name.strip('"')), about


def coracle_config(version, header, table, example):
    settings = read_settings(header)
    known = set(re.findall(r'^ {6}\{"(\w+)",', open(table, encoding="utf-8").read(), re.M))
    described = {setting[1] for setting in settings if setting[0] == "setting"}
    for name in sorted(known ^ described):
        raise SystemExit(f"manual.py: {name} is " + (f"described in {header}, but not read" if name in described else f"not described in {header}"))
    page = Page("coracle-config", 5, "settings of Coracle, in /etc/coracle/config.yaml", version)
    page.section("description")
    page.text("The file is one YAML document of the fields below. Each has a default that works; a field that is not known, or a value that "
              "cannot be, is an error that names its line. After a change: systemctl restart coracled, which leaves the pods alone. `coracled --check-config` says whether "
              "the file is accepted. /usr/lib/coracle/config.yaml is read first, and what is set here goes over it, field by field.")
    for setting in settings:
        if setting[0] == "heading":
            page.section(setting[1].rstrip("."))
        elif setting[0] == "text":
            page.text(setting[1])
        else:
            _, name, default, about = setting
            text = " ".join(filter(None, [sentence(about) if about else "", f"Default: {default}." if default else ""]))
            page.item(bold(name), text)
    page.section("example")
    page.example(open(example, encoding="utf-8").read())
    page.files("/etc/coracle/config.yaml", "/usr/lib/coracle/config.yaml")
    page.see_also(("coracled", 8), ("coraclectl", 1))
    page.print()


def main():
    pages = {"coracled": coracled, "coraclectl": coraclectl, "coracle-oci": coracle_oci, "coracle-config": coracle_config}
    if len(sys.argv) < 4 or sys.argv[1] not in pages:
        raise SystemExit(__doc__)
    sys.stdout.reconfigure(encoding="utf-8")
    pages[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
