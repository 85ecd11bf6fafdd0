"""Runs of the traffic of [E] on a core: both protocols, both directions."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.study import Study, StudyRun, StudyScenario, digits

# Firmware and custom instructions of a mix, without and with instructions.
FIRMWARE = {
    ("reference", False): ("ipsec-reference", "none"),
    ("reference", True): ("ipsec-reference-custom", "ipsec-keys"),
    ("tuned", False): ("ipsec-plain", "none"),
    ("tuned", True): ("ipsec-custom", "ipsec"),
}


@dataclass(frozen=True)
class Core:
    """A core's runs of the whole traffic: ESP and AH, outbound and inbound."""

    esp_out: StudyRun
    esp_in: StudyRun
    ah_out: StudyRun
    ah_in: StudyRun

    @property
    def esp(self) -> tuple[StudyRun, StudyRun]:
        return self.esp_out, self.esp_in

    @property
    def ah(self) -> tuple[StudyRun, StudyRun]:
        return self.ah_out, self.ah_in

    @property
    def all(self) -> tuple[StudyRun, ...]:
        return *self.esp, *self.ah

    def protocol(self) -> float:
        """Cycles of the protocol, of both modes."""
        return total(self.all, "side.protocol")

    def aes(self) -> float:
        return total(self.esp, "group.aes")

    def md5(self) -> float:
        return total(self.ah, "group.md5") + total(self.ah, "group.hash")

    def parts(self) -> list[float]:
        """Protocol, AES, MD5."""
        return [self.protocol(), self.aes(), self.md5()]


def total(runs: tuple[StudyRun, ...], path: str) -> float:
    return sum(run[path] for run in runs)


def saved(before: float, after: float) -> float:
    """Share of the cycles that is saved, in per cent."""
    return 100.0 * (1.0 - after / before)


def cents(values: list[float]) -> str:
    """Per cents, protocol, AES, MD5."""
    return f"protocol {digits(values[0])} %, AES {digits(values[1])} %, MD5 {digits(values[2])} %"


class Traffic:
    """The scenarios of the study, by mix and mode."""

    def __init__(self, s: Study) -> None:
        self.s = s
        self.esp = s.scenario("esp.toml")
        self.ah = s.scenario("ah.toml")

    def scenarios(self, mix: str, custom: bool, sets: dict[str, object]) -> list[StudyScenario]:
        firmware, instructions = FIRMWARE[mix, custom]
        found = []
        for base in (self.esp, self.ah):
            one = base.set("firmware.path", firmware).set("core.instructions", instructions)
            for key, value in sets.items():
                one = one.set(key, value)
            found += [one, one.set("input.direction", "in")]
        return found

    def core(self, mix: str, custom: bool, sets: dict[str, object] | None = None) -> Core:
        """The runs of a mix on the base core with some keys set."""
        return Core(*self.s.run(self.scenarios(mix, custom, sets or {})))

    def cores(self, mix: str, custom: bool, sets: list[dict[str, object]]) -> list[Core]:
        """The same for several settings, in parallel."""
        wanted = [one for each in sets for one in self.scenarios(mix, custom, each)]
        runs = self.s.run(wanted)
        return [Core(*runs[at : at + 4]) for at in range(0, len(runs), 4)]
