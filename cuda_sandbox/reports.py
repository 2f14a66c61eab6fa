"""Read what the sanitizers print."""

from __future__ import annotations

import re

LONGEST = 600  # characters of what one sanitizer found

_ASAN = re.compile(r"^SUMMARY: AddressSanitizer: (.+)$", re.MULTILINE)
_ACCESS = re.compile(r"^((?:READ|WRITE) of size \d+)", re.MULTILINE)
_UBSAN = re.compile(r"^(\S+: runtime error: .+)$", re.MULTILINE)
_FINDING = re.compile(r"^=+ (\S.*)\n((?:=+ {2,}\S.*\n?)*)", re.MULTILINE)
_DETAIL = re.compile(r"^=+ +((?:at|and|by|Address|Device Frame:) .*)$", re.MULTILINE)
_INNER = r"(?:[^()]|\([^()]*\))*"  # with parentheses inside, as in (Shape<(int)4>, float *)
_ARGUMENTS = re.compile(rf"\((?!\)){_INNER}\)(?=\+0x)")
_WARNINGS_ONLY = re.compile(
    r"RACECHECK SUMMARY: \d+ hazards? displayed \(0 errors, (\d+ warnings?)"
)


def gcc_sanitizers(code: int, output: str) -> dict[str, str]:
    """What ASan and UBSan found in one run: ``address`` and ``undefined``, where they did."""
    wrong: dict[str, str] = {}
    if undefined := _UBSAN.search(output):
        wrong["undefined"] = "failed: " + _short(undefined[1])
    if address := _ASAN.search(output):
        access = _ACCESS.search(output)
        detail = f"{access[1]}: " if access else ""
        wrong["address"] = "failed: " + _short(detail + address[1])
    elif code:
        wrong["address"] = f"failed: {_last_words(code, output)}"
    return wrong


def compute_sanitizer(tool: str, code: int, output: str) -> dict[str, str]:
    """What one tool of compute-sanitizer found, under the tool's name."""
    if code == 0:
        return {}
    if harmless := _WARNINGS_ONLY.search(output):
        # Racecheck's own word for what a programmer may mean, such as copies behind a barrier.
        return {tool: f"passed with {harmless[1]}"}
    if code == 99 and (found := _findings(output)):
        return {tool: "failed: " + _short("; ".join(found))}
    if code in (97, 98):
        return {tool: f"failed: {_last_words(code, output)}"}
    return {tool: f"not run: compute-sanitizer ended with {code}: {_last_words(code, output)}"}


def _findings(output: str) -> list[str]:
    """Each finding with its places, on a line; races before what the tool says of itself."""
    noise = ("COMPUTE-SANITIZER", "Target", "ERROR SUMMARY", "RACECHECK SUMMARY", "Warning")
    told: dict[str, str] = {}  # of several threads at one place the first
    for head, rest in _FINDING.findall(output):
        if not head.startswith(noise):
            lines = [_ARGUMENTS.sub("", line) for line in (head, *_DETAIL.findall(rest))]
            place = " ".join(line for line in lines if not line.startswith(("by ", "Address ")))
            told.setdefault(place, " ".join(lines))
    return sorted(told.values(), key=lambda line: not line.startswith("Error: Race"))


def _last_words(code: int, output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else f"the driver ended with code {code}"


def _short(text: str) -> str:
    """One line without the jail's folders."""
    return re.sub(r"/(?:src|out)/", "", " ".join(text.split()))[:LONGEST]
