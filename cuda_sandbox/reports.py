"""Read what the sanitizers print."""

from __future__ import annotations

import re

_ASAN = re.compile(r"^SUMMARY: AddressSanitizer: (.+)$", re.MULTILINE)
_ACCESS = re.compile(r"^((?:READ|WRITE) of size \d+)", re.MULTILINE)
_UBSAN = re.compile(r"^(\S+: runtime error: .+)$", re.MULTILINE)
_FIRST = re.compile(r"^=+ (?!COMPUTE-SANITIZER)(\S.*)$", re.MULTILINE)
_WARNINGS_ONLY = re.compile(
    r"RACECHECK SUMMARY: \d+ hazards? displayed \(0 errors, (\d+ warnings?)"
)
_PLACE = re.compile(r"^=+\s+at .*?(\S+ in \S+)", re.MULTILINE)


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
    if code == 99 and (lines := _findings(output)):
        place = _PLACE.search(output)
        return {tool: "failed: " + _short(lines[0] + (f" at {place[1]}" if place else ""))}
    if code in (97, 98):
        return {tool: f"failed: {_last_words(code, output)}"}
    return {tool: f"not run: compute-sanitizer ended with {code}: {_last_words(code, output)}"}


def _findings(output: str) -> list[str]:
    """The first line of each finding; races before what the tool says of itself."""
    noise = ("Target", "ERROR SUMMARY", "RACECHECK SUMMARY", "Warning")
    lines = [line for line in _FIRST.findall(output) if not line.startswith(noise)]
    return sorted(lines, key=lambda line: not line.startswith("Error: Race"))


def _last_words(code: int, output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else f"the driver ended with code {code}"


def _short(text: str) -> str:
    """One line without the jail's folders."""
    return re.sub(r"/(?:src|out)/", "", " ".join(text.split()))[:300]
