# SPDX-License-Identifier: Apache-2.0
"""The gallery: a page and a memory map for each of ten well-known models.

    gallery.py MODELS FOLDER        pages and maps of the files in MODELS in FOLDER, with FOLDER/index.html
    gallery.py --table PAGE MODELS  prints PAGE with the figures of these files in its table

ONNXMEM names the command.  Ends with 1 if a model is missing, which is named."""
import html
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEAD = "| model | what it does | ops | naive | arena | lower bound |"


def models():
    """file, name, options for dims, what it does"""
    for line in (HERE / "gallery.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            file, name, dims, what = line.split("\t")
            yield file, name, [word for one in dims.split() for word in ("--dim", one)], what


def report(path, dims, *options):
    command = [os.environ.get("ONNXMEM", "onnxmem"), "report", str(path), *dims, "--json", "-", "-q", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"gallery: {path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def row(name, what, figures):
    bound = "optimal" if figures["status"] == "optimal" else f"{figures['lower_bound_bytes']:,}"
    return [name, what, f"{figures['ops']:,}", f"{figures['naive_bytes']:,}", f"{figures['arena_bytes']:,}", bound]


def page(folder, rows):
    cells = "".join(
        f'<tr><td><a href="{file}.html"><img src="{file}.svg" alt="memory map of {html.escape(cell[0])}" width="320"></a></td>'
        f'<td><a href="{file}.html">{html.escape(cell[0])}</a><br>{html.escape(cell[1])}</td>'
        + "".join(f"<td>{one}</td>" for one in cell[2:]) + "</tr>\n" for file, cell in rows)
    titles = "".join(f"<th>{one.strip()}</th>" for one in HEAD.strip("| ").split("|")[2:])
    (folder / "index.html").write_text(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>onnxmem: gallery</title>\n'
        "<style>body { font: 16px sans-serif; margin: 2em } td, th { padding: .3em 1em; text-align: right } td:nth-child(2) { text-align: left }</style></head>\n"
        f"<body><h1>Memory maps of ten models</h1><table><tr><th></th><th>model</th>{titles}</tr>\n{cells}</table></body></html>\n", encoding="utf-8")


def write_pages(data, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for file, name, dims, what in models():
        stem = pathlib.Path(file).stem
        options = ["--html", str(folder / f"{stem}.html"), "--svg", str(folder / f"{stem}.svg")]
        rows.append((stem, row(name, what, report(data / file, dims, *options))))
    page(folder, rows)
    print(folder / "index.html")


def write_table(path, data):
    """The lines of a table after its head are made anew."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = lines.index(HEAD) + 2
    end = next((k for k in range(at, len(lines)) if not lines[k].startswith("|")), len(lines))
    rows = ["| " + " | ".join(row(name, what, report(data / file, dims))) + " |" for file, name, dims, what in models()]
    print("\n".join(lines[:at] + rows + lines[end:]))


def main(words):
    if len(words) == 3 and words[0] == "--table":
        write_table(pathlib.Path(words[1]), pathlib.Path(words[2]))
    elif len(words) == 2:
        write_pages(pathlib.Path(words[0]), pathlib.Path(words[1]))
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
