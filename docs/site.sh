# SPDX-License-Identifier: Apache-2.0
# site.sh FOLDER MODEL...: writes a site; see `make site`.  Models whose dims are open get 1 for them.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(cd "$1" && pwd)
shift
pages=

# Headers and pages, in one search.
if command -v "${DOXYGEN:-doxygen}" >/dev/null; then
	{
		cat "$here/docs/Doxyfile"
		printf '%s\n' "INPUT = $here/include/onnxmem $here/README.md $here/docs $here/docs/guide $here/passes" 'FILE_PATTERNS = *.h *.md' \
			"USE_MDFILE_AS_MAINPAGE = $here/README.md" "IMAGE_PATH = $here $here/docs" 'WARN_AS_ERROR = NO' 'WARN_IF_DOC_ERROR = NO' \
			'WARNINGS = NO' "STRIP_FROM_PATH = $here" 'FILTER_PATTERNS =' "INPUT_FILTER = " "FILTER_PATTERNS = *.h=\"${AWK:-awk} -f $here/docs/doxygen.awk\""
	} >"$out/Doxyfile"
	(cd "$here" && srcdir=$here OUTPUT=$out "${DOXYGEN:-doxygen}" "$out/Doxyfile" >/dev/null 2>&1)
	rm "$out/Doxyfile"
	pages='<li><a href="html/index.html">Documentation: the guide, the pages, the C library</a></li>'
else
	echo "site: there is no doxygen, and no documentation of the C library" >&2
fi

# The package for Python.
if (cd "$out/python" && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here/python ONNXMEM_LIBRARY=$LIBRARY "$PYTHON" -c '
import inspect, pathlib, pydoc, onnxmem, onnxmem.interop
for module, file in (onnxmem, "onnxmem"), (onnxmem.interop, "interop"):
    names = [name for name in module.__all__ if not name.startswith("_")]
    parts = [pydoc.html.document(getattr(module, name), name) for name in names if inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name))]
    pathlib.Path(file + ".html").write_text(pydoc.html.page(module.__name__, pydoc.html.markup(module.__doc__ or "") + "<hr>".join(parts)))
'); then
	pages="$pages"'<li><a href="python/onnxmem.html">Python: onnxmem</a>, <a href="python/interop.html">onnxmem.interop</a></li>'
else
	echo "site: $PYTHON cannot import the package, whose pages are missing" >&2
fi

# The gallery: a page for each model, and its memory map.
rows=
for model; do
	name=$(basename "$model" .onnx)
	line=$("$ONNXMEM" report "$model" --default-dim 1 --html "$out/gallery/$name.html" -q 2>/dev/null | sed -n 's/^  arena *\([0-9]*\) .*/\1/p') ||
		line=
	[ -s "$out/gallery/$name.html" ] || { echo "site: $name has no page in the gallery" >&2; continue; }
	rows="$rows<tr><td><a href=\"gallery/$name.html\">$name</a></td><td>$line</td></tr>"
done
cat >"$out/index.html" <<END
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>onnxmem</title>
<style>body { font: 16px sans-serif; max-width: 50em; margin: 2em auto } td { padding-right: 2em }</style></head>
<body><h1>onnxmem: how little memory an ONNX model can run in</h1>
<ul>$pages</ul>
<h2>Gallery</h2><table><tr><th>model</th><th>arena, bytes</th></tr>$rows</table>
</body></html>
END
echo "$out/index.html"
