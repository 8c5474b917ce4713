# SPDX-License-Identifier: Apache-2.0
"""Models from the public model zoo, from Hugging Face, or from an address, in a verified cache."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _structs as s
from ._context import Context, byref, path_of, raw, text
from ._library import beside, lib, take_bytes
from ._program import number_of

#: Called with the name of a file, the bytes that are there, and all of them, 0 if that is not known.
FetchProgress = Callable[[str, int, int], object]

CHUNK = 1 << 16


def fetch(name: str, *, opset: int = 0, with_data: bool = False, sha256: str | None = None, mirrors: Sequence[str] = (),
          manifest: "str | os.PathLike[str] | None" = None, cache: "str | os.PathLike[str] | None" = None, hf_base: str | None = None,
          offline: bool = False, timeout: float = 30, retries: int = 5, retry_delay: float = 1,
          progress: FetchProgress | None = None) -> str:
    """Fetch a model, as ``onnxmem fetch`` does, and return its path in the cache, which both share.

    ``name`` is that of a model in the public model zoo, ``hf:ORG/REPO/FILE[@REV]``, or an address with ``#sha256=SUM``.  What is in the
    cache is complete and verified.  ``opset`` chooses a model of the zoo, by default the one with the highest; ``with_data``
    unpacks it with its test data, and returns the folder.  ``mirrors`` and ``manifest`` replace those of the environment, the configuration
    file and the package; ``offline`` uses the cache alone.  ``timeout``, ``retries`` and ``retry_delay`` are those of the command.

    Transfers are made by the module of the library where it is installed, else by Python.  Raises :class:`DownloadError` with each mirror
    and its error, :class:`UsageError` for a name that there is not.
    """
    context = Context()
    texts = {"sha256": raw(sha256) if sha256 else None, "hf_base": raw(hf_base) if hf_base else None,
             "manifest": path_of(manifest) if manifest is not None else None, "cache": path_of(cache) if cache is not None else None,
             "builtin": path_of(beside("manifest.json")) if os.path.exists(beside("manifest.json")) else None}
    tell, transfer = s.fetch_progress(_teller(context, progress)), s.transfer(_transferring(context))
    options = s.FetchOptions(
        size=ctypes.sizeof(s.FetchOptions), mirror=(ctypes.c_char_p * max(len(mirrors), 1))(*(raw(one) for one in mirrors)),
        nmirror=len(mirrors), opset=number_of("opset", opset, 0, 1000), with_data=with_data, offline=offline, timeout=timeout,
        attempts=number_of("retries", retries, 1, 1000), retry_delay=retry_delay, progress=tell, transfer=transfer, **texts)
    out = ctypes.c_void_p()
    context.check(lib.om_fetch(context.handle, raw(name), byref(options), byref(out)))
    return os.fsdecode(take_bytes(out))


def _teller(context: Context, progress: FetchProgress | None) -> Any:
    def tell(arg: object, name: bytes, now: int, most: int) -> None:
        if progress is None or context.is_stopped:
            return
        try:
            progress(text(name), now, most)
        except BaseException as error:      # raised again when the call returns
            context.stop(error)
    return tell


# ---- Transfers by Python. ----

class _Ended(Exception):
    """A transfer that ended early: how, and why."""

    def __init__(self, end: int, why: str, retry_after: float = 0) -> None:
        super().__init__(why)
        self.end, self.retry_after = end, retry_after


def _transferring(context: Context) -> Any:
    def transfer(arg: object, where: Any) -> None:
        t = where.contents
        try:
            _receive(context, t)
            t.end = s.FETCH_DONE
        except _Ended as ended:
            t.end, t.retry_after, t.reason = ended.end, ended.retry_after, str(ended).encode()[:399]
        except OSError as error:
            t.end, t.reason = s.FETCH_LOCAL, str(error).encode()[:399]
        except BaseException as error:
            t.end, t.reason = s.FETCH_FAILED, b"interrupted"
            context.stop(error)
    return transfer


def _receive(context: Context, t: s.FetchTransfer) -> None:
    """Write what an address has to the file, from its beginning."""
    os.ftruncate(t.fd, 0)
    with _opened(text(t.url), t.seconds) as answer:
        size, done = _length(answer), 0
        while data := _read(answer):
            if done + len(data) > t.most:
                os.ftruncate(t.fd, 0)
                raise _Ended(s.FETCH_FAILED, f"the server sends more than {t.most} bytes")
            done += os.pwrite(t.fd, data, done)
            t.progress(t.progress_arg, done, size)
            if context.is_stopped:
                raise _Ended(s.FETCH_FAILED, "interrupted")
        if done < size:
            raise _Ended(s.FETCH_RETRY, f"the transfer ended after {done} of {size} bytes")


def _length(answer: Any) -> int:
    """The bytes that the server announces; 0: none."""
    text = answer.headers.get("Content-Length") or "0"
    if not text.isdecimal():
        raise _Ended(s.FETCH_FAILED, f"the server announces {text!r} bytes")
    return int(text)


def _read(answer: Any) -> bytes:
    import http.client
    try:
        data: bytes = answer.read(CHUNK)
        return data
    except (OSError, http.client.HTTPException) as error:
        raise _Ended(s.FETCH_RETRY, f"the transfer broke off: {error}") from None


def _opened(url: str, seconds: float) -> Any:
    """The answer to a request.  https is never redirected to http."""
    import http.client
    import urllib.error
    import urllib.request

    class Redirects(urllib.request.HTTPRedirectHandler):
        """Redirects that stay as safe as they were."""

        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            if req.type == "https" and not newurl.startswith("https:") or not newurl.startswith("http"):
                raise _Ended(s.FETCH_FAILED, f"a redirect to {newurl.split(':')[0]} is not followed")
            return super().redirect_request(req, fp, code, msg, headers, newurl)
    if not url.startswith(("http:", "https:")):
        raise _Ended(s.FETCH_FAILED, f"{url.split(':')[0]} is no protocol for downloads")
    request = urllib.request.Request(url, headers={"User-Agent": "onnxmem"})
    try:
        return urllib.request.build_opener(Redirects).open(request, timeout=seconds)
    except urllib.error.HTTPError as error:
        temporary = error.code >= 500 or error.code in (408, 425, 429)
        after = str(error.headers.get("Retry-After") or "")
        raise _Ended(s.FETCH_RETRY if temporary else s.FETCH_FAILED, f"the server answered {error.code}",
                     float(after) if after.isdigit() else 0) from None
    except (OSError, http.client.HTTPException) as error:
        raise _Ended(s.FETCH_RETRY, str(getattr(error, "reason", error))) from None
