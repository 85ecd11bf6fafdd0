"""The cores and their variants: what lint, tests and synthesis go through."""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = ["common", "aes", "gcm", "hash", "des", "chacha", "checksum", "instructions", "engine"]


class Variant:
    """A module with its parameters, and the file of test/cases_*.py that has its cases."""

    def __init__(self, name, folder, module, parameters=None, cases=None):
        self.name, self.folder, self.module = name, folder, module
        self.parameters = parameters or {}
        self.cases = cases

    @property
    def source(self):
        """The file that has the module."""
        return HERE / self.folder / f"{self.module}.v"


STREAMS = [
    Variant("aes-ctr", "aes", "aes_ctr", {}, "ctr"),
    Variant("aes-ctr-pipelined", "aes", "aes_ctr", {"PIPELINED": 1}, "ctr"),
    Variant("aes-cbc", "aes", "aes_cbc", {}, "cbc"),
    Variant("aes-gcm", "gcm", "aes_gcm", {}, "gcm"),
    Variant("aes-gcm-digit4", "gcm", "aes_gcm", {"DIGIT": 4}, "gcm"),
    Variant("aes-gcm-pipelined", "gcm", "aes_gcm", {"PIPELINED": 1, "DIGIT": 128}, "gcm"),
    Variant("hmac-sha256", "hash", "hmac", {"ALGORITHM": 2}, "sha256"),
    Variant("hmac-sha1", "hash", "hmac", {"ALGORITHM": 1}, "sha1"),
    Variant("hmac-md5", "hash", "hmac", {"ALGORITHM": 0}, "md5"),
    Variant("3des-cbc", "des", "triple_des_cbc", {}, "3des"),
    Variant("chacha20poly1305", "chacha", "chacha20_poly1305", {}, "chacha"),
    Variant("chacha20poly1305-small", "chacha", "chacha20_poly1305", {"QUARTERS": 1, "DIGIT": 12}, "chacha"),
    Variant("checksum", "checksum", "checksum", {}, "checksum"),
    Variant("esp-ctr-sha1", "engine", "esp_engine", {"CIPHER": 1, "INTEGRITY": 2}, "esp-ctr-sha1"),
    Variant("esp-cbc-sha256", "engine", "esp_engine", {"CIPHER": 2, "INTEGRITY": 3}, "esp-cbc-sha256"),
    Variant("esp-3des-md5", "engine", "esp_engine", {"CIPHER": 3, "INTEGRITY": 1}, "esp-3des-md5"),
    Variant("esp-gcm", "engine", "esp_engine", {"CIPHER": 4, "INTEGRITY": 0}, "esp-gcm"),
    Variant("esp-chacha", "engine", "esp_engine", {"CIPHER": 5, "INTEGRITY": 0}, "esp-chacha"),
]


def sources():
    """All Verilog files, in the order of the folders."""
    return [path for folder in FOLDERS for path in sorted((HERE / folder).glob("*.v"))]


def closure(module):
    """The files of a module and of all modules inside of it."""
    known = {path.stem: path for path in sources()}
    found, left = {}, [module]
    while left:
        name = left.pop()
        if name in found:
            continue
        found[name] = known[name]
        left += [
            word
            for word in re.findall(r"^\s*(\w+) (?:#\(|\w+ \()", known[name].read_text(), re.M)
            if word in known
        ]
    return [found[name] for name in sorted(found)]


def search_path():
    """The folders as options of Verilator and Icarus Verilog."""
    return [word for folder in FOLDERS if (HERE / folder).is_dir() for word in ("-y", str(HERE / folder))]
