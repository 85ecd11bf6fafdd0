"""What the options of a core pay for their area, beyond the paper."""

from __future__ import annotations

from forebay.study import Study

from .claims import OPTIONS
from .cores import Core, Traffic, saved, total


def pays(s: Study, plain: dict[str, Core], custom: dict[str, Core], traffic: Traffic) -> None:
    """What each option saves of the time for its area, with the clock that the longest path allows."""

    def time(core: Core) -> float:
        return total(core.all, "cycles") / core.esp_out["clock_mhz"]

    def area(core: Core) -> float:
        return core.esp_out["area_kge"]

    def row(name: str, before: Core, after: Core) -> list[object]:
        gain, more = saved(time(before), time(after)), area(after) - area(before)
        return [name, after.esp_out["clock_mhz"], gain, more, gain / more]

    fitted = {"core.long_paths": "latency"}
    [base] = traffic.cores("reference", True, [fitted])
    found = [
        row("custom instructions, which lower the clock", plain["reference"], custom["reference"]),
        row("custom instructions, which take the cycles that their paths need", plain["reference"], base),
    ]
    more = []
    for name, key, values in OPTIONS:
        for value, one in zip(
            values, traffic.cores("reference", True, [{**fitted, key: value} for value in values])
        ):
            if area(one) > area(base):
                more.append(row(f"{name} {value}", base, one))
    found += sorted(more, key=lambda one: -float(str(one[-1])))
    s.table(
        "The options that pay most, reference mix",
        ["option", "MHz", "time saved (%)", "area (kGE)", "% per kGE"],
        found[:12],
        note="Areas and paths of the instructions are those of synthesis, other areas estimates from published figures. "
        "Options below the first two are added to the second.",
    )
