"""Facts about the machine that only Linux reports."""

from functools import cache

_PROCESSOR = "/sys/devices/system/cpu/modalias"
"""The file that identifies the processor, its vendor first."""

_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"
"""The folder with the settings of huge pages."""


@cache
def is_amd() -> bool:
    """Whether the processor is one of AMD's."""
    try:
        return "ven0002" in _read(_PROCESSOR)
    except OSError:
        return False


@cache
def huge_page() -> int:
    """Return the size in bytes of the huge pages that the kernel gives on request, 0 for none."""
    try:
        if "[never]" in _read(f"{_HUGE_PAGES}/enabled"):
            return 0
        return int(_read(f"{_HUGE_PAGES}/hpage_pmd_size"))
    except (OSError, ValueError):
        return 0


def _read(path: str) -> str:
    """Read a file without pathlib, whose import takes 3 ms."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()
