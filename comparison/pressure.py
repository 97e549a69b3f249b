"""How busy the machine was: a figure measured on a starved machine says more about the machine."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

_CPU = Path("/proc/pressure/cpu")


@dataclass(frozen=True)
class Pressure:
    """The kernel's count of the time in which some process waited for a CPU."""

    t_ns: int
    waited_us: int | None

    @classmethod
    def now(cls) -> Pressure:
        """Now. Kernels without pressure figures (macOS, old Linux) have no count."""
        try:
            found = re.search(r"^some .*total=(\d+)", _CPU.read_text(), re.MULTILINE)
        except OSError:
            found = None
        return cls(time.monotonic_ns(), int(found[1]) if found else None)

    def since(self) -> float | None:
        """The share of the time since then in which somebody waited for a CPU, from 0 to 1."""
        later = Pressure.now()
        if self.waited_us is None or later.waited_us is None:
            return None
        return 1000 * (later.waited_us - self.waited_us) / max(later.t_ns - self.t_ns, 1)
