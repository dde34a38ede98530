"""Files in other encodings than UTF-8 are read, checked and written as they are declared, and come back byte for byte where nothing changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Problem, Status
from dpmigrate.report import changes
from dpmigrate.report import text as report
from dpmigrate.settings import Settings
from dpmigrate.source import Source, parse

#: {a} to {d} are letters beyond ASCII, in names and strings, also before what changes on a line
PROGRAM = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def {a}size(x): return x


def {b}():
    {c} = "{d}"; data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)))
    {d} = {a}size("{c}"); loader = DataLoader(data, batch_size={a}size(8), shuffle=True)  # {a}
    return loader


def main():
    loader = {b}()
    {a} = nn.Linear(4, 3).cuda(); {d} = "{d}"
    {c} = "{c}"; {a} = nn.DataParallel({a})
    opt = torch.optim.SGD({a}.parameters(), lr=0.1)
    for {d} in range(3):
        total = 0.0
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            opt.zero_grad(); {c} = "{c}"; loss = nn.functional.cross_entropy({a}(x), y)
            loss.backward(); {c} = "{c}"; opt.step()
            {c} = "{d}"; total += loss.item()
        print(f"{d} {{{d}}} {{total / len(loader)}}"); torch.save({{"{c}": 1, "{a}": {a}.module.state_dict()}}, "{d}.pth")


if __name__ == "__main__":
    {b} = {b}; main()
"""
WESTERN, JAPANESE = "äéñü", "模回題練"
ENCODINGS = [
    pytest.param("utf-8", WESTERN, False, id="utf-8"),
    pytest.param("utf-8", JAPANESE, True, id="utf-8 with BOM"),
    pytest.param("utf-8-sig", WESTERN, False, id="utf-8-sig without BOM"),
    pytest.param("latin-1", WESTERN, False, id="latin-1"),
    pytest.param("cp1252", WESTERN, False, id="cp1252"),
    pytest.param("mac-roman", WESTERN, False, id="mac-roman"),
    pytest.param("euc-jp", JAPANESE, False, id="euc-jp"),
    pytest.param("shift_jis", JAPANESE, False, id="shift_jis"),
    pytest.param("iso2022_jp", JAPANESE, False, id="an encoding with states"),
    pytest.param("gb18030", JAPANESE, False, id="gb18030"),
]


def spelled(text: str, letters: str) -> str:
    return text.format(**dict(zip("abcd", letters, strict=True)))


def applied(*paths: Path, write: bool = True) -> list[Outcome]:
    return list(engine.apply(list(paths), Settings(), engine.Writing(write=write)))


def in_ascii(text: str, letters: str) -> str:
    """The program with other names of the same length in characters."""
    return text.translate(str.maketrans(letters, "JQWZ"))


@pytest.mark.parametrize(("encoding", "letters", "bom"), ENCODINGS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF and form feeds"])
def test_a_program_is_written_as_it_is_declared(tmp_path: Path, encoding: str, letters: str, bom: bool, newline: str) -> None:
    text = f"# -*- coding: {encoding} -*-\n" + spelled(PROGRAM, letters)
    codec = encoding.removesuffix("-sig")

    def data(text: str) -> bytes:
        if newline == "\r\n":
            text = text.replace("\n\n\ndef", "\n\n\f\ndef").replace("\n", "\r\n")
        return (b"\xef\xbb\xbf" if bom else b"") + text.encode(codec)

    path, plain = tmp_path / "train.py", tmp_path / "plain.py"
    path.write_bytes(data(text))
    plain.write_text(in_ascii(text, letters).replace(encoding, "utf-8"))

    (shown,) = applied(path, write=False)
    (outcome, expected) = applied(path), applied(plain)

    assert [o.status for o in (*outcome, *expected)] == [Status.CHANGED] * 2
    assert shown.after == outcome[0].after
    back = data("").decode("latin-1")  # the BOM
    want = plain.read_text().replace("coding: utf-8", f"coding: {encoding}").translate(str.maketrans("JQWZ", letters))
    assert path.read_bytes().startswith(back.encode("latin-1"))
    assert path.read_bytes() == data(want)


def test_the_diff_can_be_applied_and_the_places_are_counted_in_characters(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(("# coding: latin-1\n" + spelled(PROGRAM, WESTERN)).replace("\n\n\ndef", "\n\n\f\ndef").encode("latin-1"))

    (outcome,) = engine.check([path], Settings())
    lines = changes.patch(applied(path, write=False)[0]).decode("latin-1").split("\n")[:-1]

    (wrap,) = [line for line in report.findings(outcome, report.Style(False), source=False) if "DPM101" in line]
    assert wrap.split(":")[2] == str('    ñ = "ñ"; ä = nn.DataParallel(ä)'.index("nn") + 1)
    old = [line[1:] for line in lines if line[:1] in " -" and not line.startswith("---")]
    kept = path.read_bytes().decode("latin-1").split("\n")
    assert all(line in kept for line in old)  # whole lines, also round a form feed


def test_the_files_of_a_program_may_be_in_different_encodings(tmp_path: Path) -> None:
    body, _, main = spelled(PROGRAM, JAPANESE).partition("def main")
    module = tmp_path / "daten.py"
    module.write_bytes(b"# coding: euc-jp\r\n" + body.replace("\n", "\r\n").encode("euc-jp"))
    script = tmp_path / "train.py"
    main = spelled("def main" + PROGRAM.partition("def main")[2].replace("{b}()", "daten.laden()", 1).replace("{b} = {b}; ", ""), WESTERN)
    script.write_bytes(("# coding: latin-1\nimport torch\nimport torch.nn as nn\nimport daten\n\n\n" + main).encode("latin-1"))
    module.write_bytes(module.read_bytes() + "\r\n\r\ndef laden():\r\n    return 回()\r\n".encode("euc-jp"))

    (outcome,) = applied(script)

    assert (outcome.status, outcome.reason) == (Status.CHANGED, "")
    assert set(outcome.changed) == {str(script), str(module)}
    assert "ddp.wrap(ä)" in script.read_bytes().decode("latin-1")
    assert "batch_size=ddp.local_batch(模size(8))" in module.read_bytes().decode("euc-jp")
    assert re.fullmatch(r"(?:[^\r\n]*\r\n)+", module.read_bytes().decode("euc-jp"))


def source(data: bytes) -> Source:
    got = parse(data, "a.py")
    assert isinstance(got, Source), got
    return got


def test_a_letter_that_the_encoding_lacks_is_refused_by_name() -> None:
    got = source(b"# coding: latin-1\nx = 1\n").encode("# coding: latin-1\nx = '\N{EURO SIGN}'\n")

    assert isinstance(got, Problem) and "encoding iso-8859-1: '\N{EURO SIGN}'" in got.message


def test_bytes_that_would_change_by_themselves_are_refused() -> None:
    data = b"# coding: cp932\nx = '\x87\x90'\n"  # the same letter as 81 e0, which is what Python writes
    file = source(data)

    got = file.encode(file.text + "y = 1\n")

    assert isinstance(got, Problem) and "are not those that Python writes in cp932" in got.message


@pytest.mark.parametrize("codec", ["undefined", "rot13"])
def test_codecs_that_are_none_for_files_are_problems(codec: str) -> None:
    got = parse(f"# coding: {codec}\nx = '\N{LATIN SMALL LETTER E WITH ACUTE}..'\n".encode(), "a.py")

    assert isinstance(got, Problem) and got.line == 1
